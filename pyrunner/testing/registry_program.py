"""The real image registry (Debian's package ``docker-registry``) on loopback, empty, with a password or without."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

PROGRAM = "docker-registry"
USERNAME = "tester"
PASSWORD = "open sesame"
#: bcrypt of `PASSWORD`: the registry takes nothing else.
_HASH = "$2y$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW"


def why_no_registry() -> str:
    """Why tests with the real registry cannot run here; empty when they can."""
    return "" if shutil.which(PROGRAM) else f"{PROGRAM} is not installed"


def auth_config(host: str, username: str = USERNAME, password: str = PASSWORD) -> str:
    """A Docker config with one entry."""
    auth = base64.b64encode(f"{username}:{password}".encode()).decode()
    return json.dumps({"auths": {host: {"auth": auth}}})


class RegistryProgram:
    """A context manager; removes from the engine what came from it."""

    def __init__(self, directory: Path, *, password: bool = True) -> None:
        self._directory = directory
        self._password = password
        self.host = f"127.0.0.1:{_free_port()}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RegistryProgram:
        directory = self._directory
        directory.mkdir(parents=True, exist_ok=True)
        config = {
            "version": 0.1,
            "storage": {"filesystem": {"rootdirectory": str(directory / "data")}},
            "http": {"addr": self.host},
        }
        if self._password:
            passwords = directory / "htpasswd"
            passwords.write_text(f"{USERNAME}:{_HASH}\n")
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(passwords)}}
        # YAML reads JSON.
        (directory / "config.yml").write_text(json.dumps(config))
        with (directory / "log").open("wb") as log:
            command = [PROGRAM, "serve", str(directory / "config.yml")]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._wait()
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(20)
        forget_images(self.host)

    def push(self, image: str, name: str) -> str:
        """Push a new image made of `image` as ``host/name`` and forget it locally; the reference with its digest."""
        reference = f"{self.host}/{name}"
        config = self._directory / "client"
        config.mkdir(exist_ok=True)
        (config / "config.json").write_text(auth_config(self.host))
        # An image of its own: other tests that run meanwhile must not see digests of this registry.
        recipe = f"FROM {image}\nLABEL pyrunner.test={secrets.token_hex(8)}\n"
        self._docker("build", "--quiet", "--tag", reference, "-", text=recipe)
        self._docker("push", "--quiet", reference)
        shown = self._docker("inspect", "--format", "{{range .RepoDigests}}{{println .}}{{end}}", reference)
        forget_images(self.host)
        return next(line for line in shown.splitlines() if line.startswith(self.host))

    def _docker(self, *arguments: str, text: str = "") -> str:
        environment = {**os.environ, "DOCKER_BUILDKIT": "0", "DOCKER_CONFIG": str(self._directory / "client")}
        done = subprocess.run(
            ["docker", *arguments], check=False, input=text, capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _wait(self) -> None:
        host, _, port = self.host.partition(":")
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection((host, int(port)), 1).close()
            except OSError:
                assert self._process is not None
                log = (self._directory / "log").read_text()
                assert self._process.poll() is None, f"the registry ended: {log}"
                assert time.monotonic() < deadline, f"the registry does not start: {log}"
                time.sleep(0.02)
            else:
                return


def forget_images(host: str) -> None:
    """Remove all images of a registry from the engine."""
    listed = subprocess.run(
        ["docker", "images", "--all", "--digests", "--format", "{{.Repository}} {{.Tag}} {{.Digest}} {{.ID}}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = set()
    for line in listed.splitlines():
        repository, tag, digest, _ = line.split()
        if repository.startswith(f"{host}/"):
            names.add(f"{repository}@{digest}" if tag == "<none>" else f"{repository}:{tag}")
    if names:
        subprocess.run(["docker", "rmi", "--force", *sorted(names)], check=False, capture_output=True)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
