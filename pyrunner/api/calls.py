"""One API call: JSON in, a status out, never an exception (facts/runner-api.md 1.5 and 1.6)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from pyrunner.api.endpoint import Endpoint
from pyrunner.api.errors import ClientError, RequestCancelledError, TransportError
from pyrunner.api.http import HttpClient
from pyrunner.api.outcomes import CLIENT_ERROR, NO_ANSWER, ApiRequest
from pyrunner.api.retry import RetryPolicy
from pyrunner.api.status import status_text
from pyrunner.api.tls import TlsFiles
from pyrunner.api.urls import api_base, clean_url

if TYPE_CHECKING:
    from pyrunner.api.exchange import Body, Response
    from pyrunner.base.cancel import CancelToken

Observer = Callable[[ApiRequest], None]

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request to make. `name` is its label in metrics (section 12), empty = not counted."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Body = None
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of a call."""

    #: HTTP status, `CLIENT_ERROR` or `NO_ANSWER`.
    status: int
    #: One line: method, clean URL, status and the server's message; or why there is no answer.
    text: str
    response: Response | None = None
    cancelled: bool = False

    def header(self, name: str) -> str:
        """A header of the answer, empty without one."""
        return self.response.header(name) if self.response else ""

    @property
    def retried(self) -> bool:
        """Whether any attempt met a retriable status."""
        return self.response is not None and self.response.retried

    @property
    def fields(self) -> dict[str, object]:
        """Log fields of every API line."""
        return {"correlation_id": self.response.correlation_id} if self.response else {}

    @property
    def failure_fields(self) -> dict[str, object]:
        """Log fields of lines that tell of a failure."""
        fields = self.fields | {"status": self.text}
        if self.response is not None:
            fields |= {"method": self.response.method, "url": clean_url(self.response.url)}
        return fields


class Api:
    """Makes calls to one endpoint. Safe from any thread."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        connection_max_age: float,
        observer: Observer | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._base = api_base(endpoint.url)
        self._observer = observer
        self._broken = ""
        tls = TlsFiles(endpoint.tls_ca_file, endpoint.tls_cert_file, endpoint.tls_key_file)
        try:
            self.http = HttpClient.of_server(endpoint.url, tls, connection_max_age=connection_max_age, retry=retry)
        except ClientError as error:
            self._broken = str(error)
            self.http = HttpClient(tls)

    def make(self, call: Call, cancel: CancelToken | None = None) -> Result:
        """Make `call`, with the retry layer, redirects and TLS of the endpoint."""
        if self._broken:
            return Result(status=CLIENT_ERROR, text=self._broken)
        begin = time.monotonic()
        try:
            response = self.http.request(call.method, self._base + call.path, call.headers, call.body, cancel=cancel)
        except RequestCancelledError as error:
            return Result(status=NO_ANSWER, text=str(error), cancelled=True)
        except ClientError as error:
            return Result(status=CLIENT_ERROR, text=str(error))
        except TransportError as error:
            return Result(status=NO_ANSWER, text=str(error))
        if self._observer is not None and call.name:
            self._observer(
                ApiRequest(
                    endpoint=call.name,
                    method=call.method.lower(),
                    status=response.status,
                    seconds=time.monotonic() - begin,
                    attempts=response.attempts,
                )
            )
        return Result(status=response.status, text=status_text(response), response=response)


def encode(value: object) -> bytes:
    """JSON of a wire structure."""
    return _encoder.encode(value)
