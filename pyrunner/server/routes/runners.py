"""Registration, verification, removal and token reset of runners (facts/runner-api.md section 3)."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pyrunner.api.wire import RegisterRequest, RunnerCredentials, VerifyRequest
from pyrunner.server.desk import Desk
from pyrunner.server.routes.common import Refused, json_answer, read_json, runner_token
from pyrunner.server.runners import RunnerRecord
from pyrunner.server.tokens import same

_register = msgspec.json.Decoder(RegisterRequest)
_verify = msgspec.json.Decoder(VerifyRequest)


class RunnerEndpoints:
    """Runner management. `registration_token` and `admin_token` open nothing while they are empty."""

    def __init__(self, desk: Desk, *, registration_token: str, admin_token: str) -> None:
        self._desk = desk
        self._registration_token = registration_token
        self._admin_token = admin_token

    def routes(self) -> list[Route]:
        """The endpoints."""
        return [
            Route("/api/v4/runners", self.register, methods=["POST"]),
            Route("/api/v4/runners", self.unregister, methods=["DELETE"]),
            Route("/api/v4/runners/verify", self.verify, methods=["POST"]),
            Route("/api/v4/runners/managers", self.unregister_manager, methods=["DELETE"]),
            Route("/api/v4/runners/reset_authentication_token", self.reset, methods=["POST"]),
            Route("/api/v4/runners/{id:int}/reset_authentication_token", self.reset_by_id, methods=["POST"]),
            Route("/api/v4/runners/router/discovery", self.discovery, methods=["GET"]),
        ]

    async def register(self, request: Request) -> Response:
        """Make a runner with a registration token."""
        asked = await read_json(request, _register)
        if not same(runner_token(request, asked.token or ""), self._registration_token):
            raise Refused(403)
        tags = [tag.strip() for tag in (asked.tag_list or "").split(",") if tag.strip()]
        record = RunnerRecord(
            id=0,
            token="",
            description=asked.description or "",
            tags=tags,
            run_untagged=asked.run_untagged or not tags,
            locked=asked.locked,
            paused=asked.paused,
            access_level=asked.access_level or "",
            maximum_timeout=asked.maximum_timeout or 0,
            maintenance_note=asked.maintenance_note or "",
        )
        self._desk.ledger.save_runner(self._desk.runners.create(record, legacy=True))
        return json_answer(201, _credentials(record))

    async def verify(self, request: Request) -> Response:
        """Is this token known?"""
        asked = await read_json(request, _verify)
        record = self._known(request, asked.token)
        if asked.system_id:
            self._desk.runners.seen(record, asked.system_id)
            self._desk.ledger.save_runner(record)
        return json_answer(200, _credentials(record))

    async def unregister(self, request: Request) -> Response:
        """Remove a runner that came by a registration token."""
        asked = await read_json(request, _verify)
        record = self._known(request, asked.token)
        self._desk.runners.delete(record.id)
        self._desk.ledger.delete_runner(record.id)
        return Response(status_code=204)

    async def unregister_manager(self, request: Request) -> Response:
        """Remove one manager of a runner; the runner stays."""
        asked = await read_json(request, _verify)
        record = self._known(request, asked.token)
        if not asked.system_id:
            raise Refused(400, "system_id is missing")
        if record.managers.pop(asked.system_id, None) is None:
            raise Refused(404)
        self._desk.ledger.save_runner(record)
        return Response(status_code=204)

    async def reset(self, request: Request) -> Response:
        """Renew the token of the runner that asks."""
        asked = await read_json(request, _verify)
        return self._renewed(self._known(request, asked.token))

    async def reset_by_id(self, request: Request) -> Response:
        """Renew a runner's token as an administrator."""
        if not same(request.headers.get("private-token", ""), self._admin_token):
            raise Refused(403)
        record = self._desk.runners.find(request.path_params["id"])
        if record is None:
            raise Refused(404)
        return self._renewed(record)

    async def discovery(self, request: Request) -> Response:
        """There is no job router here."""
        raise Refused(501, "501 Not Implemented")

    def _renewed(self, record: RunnerRecord) -> Response:
        self._desk.runners.renew_token(record)
        self._desk.ledger.save_runner(record)
        return json_answer(201, _credentials(record))

    def _known(self, request: Request, body_token: str) -> RunnerRecord:
        record = self._desk.runners.by_token(runner_token(request, body_token))
        if record is None:
            raise Refused(403)
        return record


def _credentials(record: RunnerRecord) -> dict[str, object]:
    answer = RunnerCredentials(id=record.id, token=record.token)
    return {"id": answer.id, "token": answer.token, "token_expires_at": None}
