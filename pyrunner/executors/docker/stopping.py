"""Ends what runs in a container when its stage is cancelled (facts/executors.md 6.4, "Cancellation")."""

from __future__ import annotations

import logging
import time

from pyrunner.base.cancel import CancelToken
from pyrunner.executors.docker.engine.engine import Engine
from pyrunner.executors.docker.engine.errors import EngineError

log = logging.getLogger(__name__)

#: Seconds for the scripts' processes to end on SIGTERM.
TERMINATE_LIMIT = 10.0
#: Seconds for the engine to bring a container down; its own limit is a SIGKILL after ten.
STOP_LIMIT = 120.0

#: SIGTERM to every process but the first and this one, the highest number first, each with up to six seconds to go.
#: Nothing but the shell and ``sleep`` is needed; what is only waiting to be reaped counts as gone.
TERMINATE_ALL = r"""
cd /proc || exit 0
list=
for pid in [0-9] [0-9][0-9] [0-9][0-9][0-9] [0-9][0-9][0-9][0-9] [0-9][0-9][0-9][0-9][0-9] \
    [0-9][0-9][0-9][0-9][0-9][0-9] [0-9][0-9][0-9][0-9][0-9][0-9][0-9]; do
    [ -d "$pid" ] && list="$pid $list"
done
gone() {
    [ -d "$1" ] || return 0
    read -r stat <"$1/stat" || return 0
    case $stat in *") Z "*|*") X "*) return 0 ;; esac
    return 1
}
for pid in $list; do
    [ "$pid" = 1 ] || [ "$pid" = $$ ] && continue
    kill -TERM "$pid" 2>/dev/null || continue
    tries=0
    while ! gone "$pid" && [ $tries -lt 60 ]; do
        tries=$((tries + 1))
        sleep 0.1 2>/dev/null || { sleep 1; tries=$((tries + 9)); }
    done
done
exit 0
"""


def terminate_processes(engine: Engine, container: str, user: str = "") -> None:
    """Ask all processes of a running container but its first to end; returns after `TERMINATE_LIMIT` at the latest.

    Errors are only logged: a container without a shell is stopped the hard way.
    """
    limit = CancelToken()
    limit.expire_in(TERMINATE_LIMIT, TimeoutError("terminate"))
    try:
        stream = engine.start_exec(engine.create_exec(container, ["sh", "-c", TERMINATE_ALL], user=user))
        try:
            stream.pump(lambda data: None, limit)
        finally:
            stream.close()
    except (EngineError, OSError) as error:
        log.debug("Cannot signal processes: %s", error, extra={"action": "terminate_failed", "container": container})
    finally:
        limit.close()


def stop_container(engine: Engine, container: str) -> bool:
    """Stop a container, again every second until it is down; whether it is."""
    deadline = time.monotonic() + STOP_LIMIT
    while True:
        try:
            engine.stop_container(container)
            if not engine.container_state(container).running:
                return True
        except EngineError as error:
            if error.status == 404:
                return True
            log.warning("Cannot stop container: %s", error, extra={"action": "stop_failed", "container": container})
        if time.monotonic() > deadline:
            return False
        time.sleep(1.0)
