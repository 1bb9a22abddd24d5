"""The engine's containers and the processes in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pyrunner.executors.docker.engine.errors import ConflictError, NotFoundError
from pyrunner.executors.docker.engine.hijack import Demultiplexer, Hijacked
from pyrunner.executors.docker.engine.records import ContainerState, Labels, Listed, label_filter
from pyrunner.executors.docker.engine.transport import Transport

_STREAMS = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}


class ContainerCalls:
    """Part of `Engine`."""

    _http: Transport

    def create_container(self, name: str, payload: Mapping[str, Any], platform: str = "") -> str:
        """Create it; the id. `payload` is the body that the Engine API expects."""
        params = {"name": name, **({"platform": platform} if platform else {})}
        created = self._http.call("post", "/containers/create", params=params, body=payload)
        return str(created["Id"])

    def start_container(self, container: str) -> None:
        """Start it; nothing happens when it runs."""
        self._http.call("post", f"/containers/{container}/start")

    def stop_container(self, container: str, timeout: int | None = None) -> None:
        """SIGTERM, and SIGKILL after `timeout` seconds (the engine's default when None). Blocks as long."""
        self._http.call("post", f"/containers/{container}/stop", params={} if timeout is None else {"t": timeout})

    def kill_container(self, container: str) -> None:
        """SIGKILL; one that does not run any more is fine."""
        try:
            self._http.call("post", f"/containers/{container}/kill")
        except ConflictError:
            return

    def remove_container(self, container: str, *, volumes: bool = True) -> None:
        """Kill and remove it, with its anonymous volumes if `volumes`; one that is not there is fine."""
        params = {"force": "true", "v": "true" if volumes else "false"}
        try:
            self._http.call("delete", f"/containers/{quote(container)}", params=params)
        except NotFoundError:
            return
        except ConflictError as error:
            if "already in progress" not in str(error):
                raise

    def container_state(self, container: str) -> ContainerState:
        """How it is now."""
        told = self._http.call("get", f"/containers/{container}/json")
        state = told["State"]
        networks = (told.get("NetworkSettings") or {}).get("Networks") or {}
        return ContainerState(
            running=bool(state.get("Running")),
            exit_code=int(state.get("ExitCode") or 0),
            out_of_memory=bool(state.get("OOMKilled")),
            error=state.get("Error") or "",
            addresses={name: network.get("IPAddress") or "" for name, network in networks.items() if network},
        )

    def attach(self, container: str) -> Hijacked:
        """Stdin and output of a container, from now on; attach first, then start."""
        return self._http.hijack(f"/containers/{container}/attach", params=_STREAMS)

    def logs(self, container: str, limit: int, *, timestamps: bool = False) -> bytes:
        """The beginning of its output so far, up to `limit` bytes of it."""
        params = {"stdout": 1, "stderr": 1, "timestamps": int(timestamps)}
        return Demultiplexer().feed(self._http.head(f"/containers/{container}/logs", limit, params=params))

    def containers(self, labels: Labels) -> list[Listed]:
        """All that carry `labels` (an empty value means: with any value)."""
        params = {"all": "true", "filters": label_filter(labels)}
        return [
            Listed(
                id=item["Id"],
                name=(item.get("Names") or [""])[0].lstrip("/"),
                labels=item.get("Labels") or {},
                created=float(item.get("Created") or 0),
                running=item.get("State") == "running",
            )
            for item in self._http.call("get", "/containers/json", params=params)
        ]

    def create_exec(self, container: str, command: Sequence[str], *, user: str = "", stdin: bool = False) -> str:
        """Prepare a process in a running container; the exec's id."""
        body: dict[str, Any] = {"Cmd": list(command), "AttachStdout": True, "AttachStderr": True, "AttachStdin": stdin}
        if user:
            body["User"] = user
        return str(self._http.call("post", f"/containers/{container}/exec", body=body)["Id"])

    def start_exec(self, exec_id: str) -> Hijacked:
        """Start the process; its stream."""
        return self._http.hijack(f"/exec/{exec_id}/start", body={"Detach": False, "Tty": False})

    def exec_exit_code(self, exec_id: str) -> int | None:
        """Exit code; None while it runs."""
        told = self._http.call("get", f"/exec/{exec_id}/json")
        return None if told.get("Running") or told.get("ExitCode") is None else int(told["ExitCode"])
