"""Flags that the two artifact commands share: which job, at which server (facts/commands.md section 14)."""

from __future__ import annotations

from pyrunner.cli.spec import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation
    from pyrunner.helper.server import JobServer

SERVER_FLAGS = (
    Flag("url", help="URL of the server", env=["CI_SERVER_URL"], aliases=["u"], metavar="URL", section="Job"),
    Flag("token", help="token of the job", env=["CI_JOB_TOKEN"], aliases=["t"], metavar="TOKEN", section="Job"),
    Flag("id", "int", help="number of the job", env=["CI_JOB_ID"], section="Job"),
    Flag(
        "tls-ca-file", help="certificates to trust", env=["CI_SERVER_TLS_CA_FILE"], metavar="FILE",
        complete="file", section="Job",
    ),
    Flag(
        "tls-cert-file", help="client certificate", env=["CI_SERVER_TLS_CERT_FILE"], metavar="FILE",
        complete="file", section="Job",
    ),
    Flag(
        "tls-key-file", help="key of the client certificate", env=["CI_SERVER_TLS_KEY_FILE"], metavar="FILE",
        complete="file", section="Job",
    ),
)  # fmt: skip

METER_FLAG = Flag(
    "transfer-meter-frequency", "duration", help="show progress this often, at most once a second; 0 = never",
    env=["TRANSFER_METER_FREQUENCY"],
)  # fmt: skip


def server_of(call: Invocation) -> JobServer:
    """The server and job that the flags name."""
    from pyrunner.helper.server import JobServer

    server = JobServer(call.text("url"), call.number("id"), call.text("token"))
    server.ca_file = call.text("tls-ca-file")
    server.certificate_file = call.text("tls-cert-file")
    server.key_file = call.text("tls-key-file")
    return server
