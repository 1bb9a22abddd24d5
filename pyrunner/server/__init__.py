"""The server side of the runner API over asyncio; where jobs come from is behind `JobSource`."""
