"""What the executor asks of an engine, typed. Paths and field names are those of the Engine API."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import IO, Any
from urllib.parse import quote

from pyrunner.base.cancel import CancelToken
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.errors import ConflictError, EngineError, NotFoundError
from pyrunner.executors.docker.engine.hijack import Demultiplexer, Hijacked
from pyrunner.executors.docker.engine.records import ContainerState, EngineFacts, ImageFacts, Labels, Listed, moment
from pyrunner.executors.docker.engine.transport import NEWEST_API, Transport

_STREAMS = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}


class Engine:
    """One engine; every instance has its own connections and belongs to one thread. All methods raise `EngineError`."""

    def __init__(self, address: EngineAddress, facts: EngineFacts | None = None) -> None:
        self.address = address
        self._http = Transport(address)
        self.facts = facts or self._negotiate()
        self._http.version = "{}.{}".format(*self.facts.api)

    def sibling(self) -> Engine:
        """The same engine for another thread; to be closed by it."""
        return Engine(self.address, self.facts)

    def close(self) -> None:
        """Close the connections; may be called twice."""
        self._http.close()

    def _negotiate(self) -> EngineFacts:
        told = self._http.call("get", "/version")
        api = _api(told["ApiVersion"])
        return EngineFacts(
            api=min(api, NEWEST_API),
            version=told.get("Version", ""),
            os=told.get("Os", ""),
            arch=told.get("Arch", ""),
            kernel=told.get("KernelVersion", ""),
        )

    # --- containers -------------------------------------------------------------------------------------------

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
        params = {"all": "true", "filters": _label_filter(labels)}
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

    # --- processes in containers ------------------------------------------------------------------------------

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

    # --- images -----------------------------------------------------------------------------------------------

    def image(self, reference: str) -> ImageFacts:
        """A present image.

        Raises:
            NotFoundError: it is not here.
        """
        told = self._http.call("get", f"/images/{quote(reference)}/json")
        config = told.get("Config") or {}
        return ImageFacts(
            id=told["Id"],
            digests=told.get("RepoDigests") or (),
            entrypoint=config.get("Entrypoint") or (),
            user=config.get("User") or "",
            exposed_ports=tuple(config.get("ExposedPorts") or ()),
            environment=config.get("Env") or (),
        )

    @contextmanager
    def pull(
        self, reference: str, auth: Mapping[str, str] | None, token: CancelToken, platform: str = ""
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """Pull an image; progress as the engine tells it, errors as objects with a key ``error``.

        `auth` has ``username``, ``password`` and so on. The engine ends the pull when the block is left early or
        `token` is cancelled; then the sequence raises its cause.
        """
        params = {"fromImage": reference, **({"platform": platform} if platform else {})}
        headers = {}
        if auth:
            headers["X-Registry-Auth"] = base64.urlsafe_b64encode(json.dumps(auth).encode()).decode()
        with self._http.stream("/images/create", token, params=params, headers=headers) as progress:
            yield progress

    def import_image(self, archive: IO[bytes], repository: str, tag: str, changes: Sequence[str] = ()) -> None:
        """Make an image from a file system (tar, may be xz or gzip); `changes` are lines of a Dockerfile."""
        params = {"fromSrc": "-", "repo": repository, "tag": tag, "changes": list(changes)}
        _checked(self._http.upload("/images/create", archive, params=params))

    def load_image(self, archive: IO[bytes]) -> str:
        """Take over what ``docker save`` wrote; name or id of the image."""
        steps = _checked(self._http.upload("/images/load", archive))
        told = "".join(str(step.get("stream", "")) for step in steps)
        for line in told.splitlines():
            words, _, name = line.partition(": ")
            if words in ("Loaded image", "Loaded image ID"):
                return name.strip()
        raise EngineError("the archive holds no image")

    def tag_image(self, image: str, repository: str, tag: str) -> None:
        """Give a present image another name."""
        self._http.call("post", f"/images/{quote(image)}/tag", params={"repo": repository, "tag": tag})

    def remove_image(self, image: str) -> None:
        """Take a name from an image, and the image with its last name; one that is not there is fine."""
        try:
            self._http.call("delete", f"/images/{quote(image)}")
        except NotFoundError:
            return

    # --- volumes and networks ---------------------------------------------------------------------------------

    def create_volume(
        self, name: str, labels: Labels, driver: str = "", options: Mapping[str, str] | None = None
    ) -> None:
        """Create a named volume; one that exists stays as it is."""
        body = {"Name": name, "Labels": dict(labels), "Driver": driver or "local", "DriverOpts": dict(options or {})}
        self._http.call("post", "/volumes/create", body=body)

    def volume_labels(self, name: str) -> Labels | None:
        """Labels of a volume; None when there is no such volume."""
        try:
            return dict(self._http.call("get", f"/volumes/{quote(name)}").get("Labels") or {})
        except NotFoundError:
            return None

    def remove_volume(self, name: str) -> None:
        """Remove it; one that is not there is fine."""
        try:
            self._http.call("delete", f"/volumes/{quote(name)}", params={"force": "true"})
        except NotFoundError:
            return

    def volumes(self, labels: Labels) -> list[Listed]:
        """All that carry `labels`."""
        told = self._http.call("get", "/volumes", params={"filters": _label_filter(labels)})
        return [
            Listed(
                id=item["Name"],
                name=item["Name"],
                labels=item.get("Labels") or {},
                created=moment(item.get("CreatedAt")),
            )
            for item in told.get("Volumes") or ()
        ]

    def create_network(self, name: str, payload: Mapping[str, Any]) -> str:
        """Create a network; its id."""
        body = {"CheckDuplicate": True, **payload, "Name": name}
        return str(self._http.call("post", "/networks/create", body=body)["Id"])

    def remove_network(self, network: str) -> None:
        """Remove it; one that is not there is fine."""
        try:
            self._http.call("delete", f"/networks/{quote(network)}")
        except NotFoundError:
            return

    def disconnect(self, network: str, container: str) -> None:
        """Take a container off a network by force; one that is not there is fine."""
        try:
            body = {"Container": container, "Force": True}
            self._http.call("post", f"/networks/{quote(network)}/disconnect", body=body)
        except NotFoundError:
            return

    def network_containers(self, network: str) -> list[str]:
        """Ids of the containers on a network."""
        try:
            return list(self._http.call("get", f"/networks/{quote(network)}").get("Containers") or {})
        except NotFoundError:
            return []

    def networks(self, labels: Labels) -> list[Listed]:
        """All that carry `labels`."""
        told = self._http.call("get", "/networks", params={"filters": _label_filter(labels)})
        return [
            Listed(
                id=item["Id"],
                name=item["Name"],
                labels=item.get("Labels") or {},
                created=moment(item.get("Created")),
            )
            for item in told
        ]


def connect(address: EngineAddress) -> Engine:
    """The engine there.

    Raises:
        EngineError: it cannot be reached, or runs containers of another kind.
        MissingExtraError: the ``docker`` package is not installed.
    """
    engine = Engine(address)
    if engine.facts.os not in ("linux", "windows", "freebsd"):
        engine.close()
        raise EngineError(f'the engine runs containers for "{engine.facts.os}", expected linux, windows or freebsd')
    return engine


def opened(address: EngineAddress) -> AbstractContextManager[Engine]:
    """`connect` for a ``with`` block."""
    from contextlib import closing

    return closing(connect(address))


def _api(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def _checked(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for step in steps:
        if error := step.get("error"):
            raise EngineError(str(error))
    return steps


def _label_filter(labels: Labels) -> str:
    return json.dumps({"label": [f"{key}={value}" if value else key for key, value in labels.items()]})
