"""What the outbox keeps of a job beside its log."""

from __future__ import annotations

import msgspec

from pyrunner.api.wire import Info


class Sender(msgspec.Struct, kw_only=True, frozen=True):
    """Which runner has a job's end to tell, and how it reaches the server; the runner's token is not kept."""

    url: str
    #: As logs show it (`pyrunner.api.tokens.short_token`).
    short_token: str
    name: str = ""
    tls_ca_file: str = ""
    tls_cert_file: str = ""
    tls_key_file: str = ""


class Letter(msgspec.Struct, kw_only=True, frozen=True):
    """How one job ended, with all that telling it needs (facts/runner-api.md 6.1)."""

    sender: Sender
    job_id: int
    job_token: str
    info: Info
    debug_trace: bool = False
    #: ``success`` or ``failed``.
    state: str
    failure_reason: str = ""
    exit_code: int = 0
    #: Of the whole log, as the server must end up with it.
    size: int
    checksum: str
    #: Bytes of the log that the server had when this was written; where it really is, it says itself.
    offset: int = 0
    #: Unix time.
    decided_at: float

    def __repr__(self) -> str:
        return f"Letter(job_id={self.job_id}, state={self.state!r})"


encode = msgspec.json.Encoder().encode
#: Raises `msgspec.DecodeError`.
decode = msgspec.json.Decoder(Letter).decode
