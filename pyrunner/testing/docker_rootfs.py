"""Root file systems for images, made from files of this machine: no registry, no network, a few seconds."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

_LEFT_OUT = frozenset(
    ("test", "tests", "site-packages", "dist-packages", "idlelib", "tkinter", "ensurepip", "lib2to3", "turtledemo")
)
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")
_PASSWD = (
    b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\ntester:x:1000:1000::/home/tester:/bin/sh\n"
)
_GROUP = b"root:x:0:\nnogroup:x:65534:\ntester:x:1000:\n"


class RootFs:
    """Collects files of this machine, under the same paths, with the libraries that programs among them need."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._buffer, mode="w", format=tarfile.GNU_FORMAT)  # noqa: SIM115
        self._added: set[str] = set()

    def data(self) -> bytes:
        """The whole as a tar archive."""
        self._tar.close()
        return self._buffer.getvalue()

    def text(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """A file with this content."""
        entry = tarfile.TarInfo(path.lstrip("/"))
        entry.size, entry.mode = len(content), mode
        self._tar.addfile(entry, io.BytesIO(content))

    def directory(self, path: str, mode: int = 0o755) -> None:
        """An empty directory."""
        entry = tarfile.TarInfo(path.lstrip("/"))
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        self._tar.addfile(entry)

    def link(self, path: str, target: str) -> None:
        """A symbolic link."""
        entry = tarfile.TarInfo(path.lstrip("/"))
        entry.type, entry.linkname = tarfile.SYMTYPE, target
        self._tar.addfile(entry)

    def busybox(self) -> None:
        """A static busybox with all its names in ``/bin``, and what every system has."""
        program = which("busybox")
        self.file(program, "/bin/busybox")
        names = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout.split()
        for name in names:
            if name != "busybox":
                self.link(f"/bin/{name}", "busybox")
        self.text("/etc/passwd", _PASSWD)
        self.text("/etc/group", _GROUP)
        for path, mode in (("/tmp", 0o1777), ("/root", 0o700), ("/home/tester", 0o777), ("/usr/bin", 0o755)):  # noqa: S108
            self.directory(path, mode)

    def file(self, source: str, path: str = "") -> None:
        """A file of this machine, links followed."""
        target = path or source
        if target not in self._added:
            self._added.add(target)
            self._tar.add(os.path.realpath(source), arcname=target.lstrip("/"), recursive=False)

    def program(self, source: str, path: str = "") -> None:
        """A program or library with all the libraries that it is linked to."""
        self.file(source, path)
        for library in _libraries([source]):
            self.file(library)

    def tree(self, root: str, path: str = "", left_out: Callable[[str], bool] = lambda name: False) -> None:
        """All files below a directory, with the libraries of the shared objects among them."""
        shared: list[str] = []
        for source in _files(root, left_out):
            target = f"{path or root}{source[len(root) :]}"
            if os.path.islink(source):
                self.link(target, os.readlink(source))
                continue
            self.file(source, target)
            if ".so" in source:
                shared.append(source)
        for library in _libraries(shared):
            self.file(library)

    def python(self) -> None:
        """The interpreter that runs this, and its standard library."""
        executable = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        self.program(executable)
        self.link("/usr/bin/python3", executable)
        paths = sysconfig.get_paths(vars={"base": sys.base_prefix, "installed_base": sys.base_prefix})
        for key in ("stdlib", "platstdlib"):
            self.tree(paths[key], left_out=lambda name: name in _LEFT_OUT or name.startswith("config-"))

    def packages(self, target: str, names: Iterable[str]) -> None:
        """Installed packages of this environment."""
        own = sysconfig.get_paths()["platlib"]
        for name in names:
            if os.path.isdir(f"{own}/{name}"):
                self.tree(f"{own}/{name}", f"{target}/{name}")


def site_packages() -> str:
    """Where the interpreter of `RootFs.python` looks for packages."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return f"{sys.base_prefix}/lib/{version}/site-packages"


def which(name: str) -> str:
    """The path of a program of this machine.

    Raises:
        FileNotFoundError: it is not installed.
    """
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"{name} is not installed on this machine")
    return found


def tar_of(files: Mapping[str, bytes], modes: Mapping[str, int] | None = None) -> bytes:
    """An archive of these files."""
    root = RootFs()
    for path, content in files.items():
        root.text(path, content, (modes or {}).get(path, 0o644))
    return root.data()


def _files(root: str, left_out: Callable[[str], bool]) -> Iterator[str]:
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if not left_out(name)]
        for name in [*files, *(name for name in names if os.path.islink(os.path.join(directory, name)))]:
            yield str(Path(directory, name))


def _libraries(programs: Iterable[str]) -> list[str]:
    wanted = list(programs)
    if not wanted:
        return []
    told = subprocess.run(["ldd", *wanted], check=False, capture_output=True, text=True).stdout
    return sorted(set(_LIBRARY.findall(told)))
