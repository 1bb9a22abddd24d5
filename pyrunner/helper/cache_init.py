"""The work of ``cache-init``: make fresh cache volumes writable for whoever the job runs as."""

from __future__ import annotations

import os

from pyrunner.base.errors import PyrunnerError
from pyrunner.base.light_log import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

log = Log(__name__)


def open_permissions(paths: Sequence[str]) -> int:
    """chmod 0777 for each path; one that cannot be changed is logged. Returns the exit code.

    Raises:
        PyrunnerError: there is no path.
    """
    if not paths:
        raise PyrunnerError("No arguments passed, at least 1 path is required.")
    for path in paths:
        try:
            # jobs of any user share the volume: that is what it is for
            os.chmod(path, 0o777)  # noqa: S103
        except OSError as error:
            log.error("failed to chmod path", extra={"path": path, "error": error.strerror})  # noqa: TRY400
    return 0
