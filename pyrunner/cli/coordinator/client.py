"""Talks to the running coordinator: finds it through its data directory, opens it with its admin token."""

from __future__ import annotations

import json
import os

from pyrunner.api.errors import TransportError
from pyrunner.api.http import HttpClient
from pyrunner.base.errors import ApiError, PyrunnerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pyrunner.api.exchange import Response
    from pyrunner.cli.parse import Invocation


class CoordinatorClient:
    """Calls below ``/api/v4/coordinator`` of the coordinator that serves from `data_dir`.

    Raises:
        PyrunnerError: none serves from there, or its files cannot be read.
    """

    def __init__(self, data_dir: str) -> None:
        self.data_dir = data_dir
        self.url = _read(data_dir, "address")
        if not self.url:
            raise _not_running(data_dir)
        self._token = _read(data_dir, "admin_token")
        self._http = HttpClient()

    def call(self, method: str, path: str, content: object = None) -> Any:
        """The JSON of the answer, None for an empty one.

        Raises:
            ApiError: the coordinator refused, with its words, or does not answer.
        """
        body = None if content is None else json.dumps(content).encode()
        response = self.send(method, path, body)
        return json.loads(response.body) if response.body else None

    def send(self, method: str, path: str, body: bytes | None = None, sink: Any = None) -> Response:
        """The answer; a body goes to `sink` when there is one.

        Raises:
            ApiError: see `call`.
        """
        headers = {"PRIVATE-TOKEN": self._token}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = self._http.request(method, f"{self.url}/api/v4/coordinator/{path}", headers, body, sink=sink)
        except TransportError as error:
            raise ApiError(f"the coordinator at {self.url} does not answer: {error}") from error
        if response.status >= 400:
            raise ApiError(_message(response), status=response.status)
        return response

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def __enter__(self) -> CoordinatorClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def data_dir_of(call: Invocation) -> str:
    """The directory that ``--data-dir`` names, or the default one."""
    return call.text("data-dir") or default_data_dir()


def default_data_dir() -> str:
    """``/var/lib/pyrunner/coordinator`` for root, below the user's data directory else."""
    from pyrunner.base.host import is_root

    if is_root():
        return "/var/lib/pyrunner/coordinator"
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(base, "pyrunner", "coordinator")


def _read(data_dir: str, name: str) -> str:
    try:
        with open(os.path.join(data_dir, name), encoding="utf-8") as file:
            return file.read().strip()
    except FileNotFoundError:
        raise _not_running(data_dir) from None


def _not_running(data_dir: str) -> PyrunnerError:
    return PyrunnerError(
        f"no coordinator serves from {data_dir}",
        hint="start one with: pyrunner coordinator serve, or name its directory with --data-dir",
    )


def _message(response: Response) -> str:
    try:
        message = json.loads(response.body).get("message")
    except (ValueError, AttributeError):
        message = None
    return str(message or f"the coordinator answered {response.status}")
