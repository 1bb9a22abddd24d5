"""A GitLab with a repository, a runner that is started as a test needs it, and what a test looks at afterwards."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrunner.testing.fake_gitlab import FakeGitLab, FakeJob
from pyrunner.testing.git_repository import GitRepository
from pyrunner.testing.job_payload import job_payload
from pyrunner.testing.runner_service import RunnerService

_STYLE = re.compile(r"\x1b\[[0-9;]*[mK]|section_(?:start|end):[0-9]+:[^\r]*\r")
_GIT_TRACE = re.compile(r"trace: built-in: git (.*)")


@dataclass(frozen=True, kw_only=True)
class Result:
    """A job that is over."""

    job: FakeJob
    raw: str

    @property
    def text(self) -> str:
        """The trace without colours and section marks."""
        return _STYLE.sub("", self.raw)

    @property
    def sections(self) -> list[str]:
        """The sections in order."""
        return re.findall(r"section_start:[0-9]+:([a-z_]+)", self.raw)

    def section(self, name: str) -> str:
        """What one section printed, plain."""
        found = re.search(rf"section_start:[0-9]+:{name}\r(.*?)section_end:[0-9]+:{name}\r", self.raw, re.DOTALL)
        assert found, f"no section {name} in:\n{self.text}"
        return _STYLE.sub("", found[1])


class World:
    """Use as a context manager. Directories of the runner lie below `base`."""

    def __init__(self, base: Path, files: Mapping[str, str | bytes] | None = None, **repository: Any) -> None:
        self.base = base
        (base / "git").mkdir()
        self.repository = GitRepository(base / "git", "group/proj", files=files, **repository)
        self._stack = contextlib.ExitStack()
        self.gitlab = self._stack.enter_context(FakeGitLab(update_interval=1, git_root=self.repository.root))
        self.token = self.gitlab.add_runner("tester")
        self._settings: dict[str, Any] | None = None
        self._runner = contextlib.ExitStack()
        self.git_log = base / "git.log"

    def __enter__(self) -> World:
        return self

    def __exit__(self, *error: object) -> None:
        with self._stack:
            self._runner.close()

    # --- places

    @property
    def builds(self) -> Path:
        """``builds_dir``."""
        return self.base / "builds"

    @property
    def project(self) -> Path:
        """The working copy."""
        return self.builds / self.token.removeprefix("glrt-")[:9] / "0" / "group/proj"

    @property
    def temp(self) -> Path:
        """Home of file variables."""
        return self.project.with_name("proj.tmp")

    @property
    def cache(self) -> Path:
        """Home of the project's local caches."""
        return self.base / "cache/group/proj"

    @property
    def home(self) -> Path:
        """The home directory that login shells of jobs see."""
        return Path.home()

    def path_first(self, directory: Path) -> None:
        """Let jobs find programs in `directory` before all others."""
        (self.home / ".bash_profile").write_text(f'PATH="{directory}:$PATH"\n')

    # --- jobs

    def submit(self, payload: Mapping[str, Any], settings: Mapping[str, Any]) -> int:
        """Queue a job for a runner with these settings, the only one; gives the job's id.

        The job is there before a new runner asks for the first time: it would wait for a second after an empty answer.
        """
        settings = {"token": self.token, **settings}
        new = settings != self._settings
        if new:
            self._runner.close()
        job_id = self.gitlab.submit(payload)
        if new:
            self._runner.enter_context(RunnerService(self.gitlab, self.base, settings, concurrent=1))
            self._settings = settings
        return job_id

    def payload(self, *script: str, after: Iterable[str] = (), **fields: Any) -> dict[str, Any]:
        """The job's payload; `git` changes ``git_info``, `variables` are plain ones, everything else is a field."""
        variables = {
            "FF_TIMESTAMPS": "false",
            "FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY": "false",
            **fields.pop("variables", {}),
        }
        info = {**self.repository.git_info(self.gitlab.url), **fields.pop("git", {})}
        extra = fields.pop("extra_variables", [])
        payload = job_payload(script or ["true"], git_info=info, variables=variables, **fields)
        payload["variables"] += extra
        if after:
            step = {"name": "after_script", "script": list(after), "timeout": 3600, "when": "always"}
            payload["steps"].append({**step, "allow_failure": True})
        return payload

    def run(
        self, *script: str, state: str = "success", runner: Mapping[str, Any] | None = None, **fields: Any
    ) -> Result:
        """Run a job to its end and check in which state that is."""
        job_id = self.submit(self.payload(*script, **fields), runner or {})
        job = self.gitlab.wait_for(job_id, ("success", "failed", "canceled"), timeout=60)
        result = Result(job=job, raw=job.trace.decode())
        assert job.state == state, result.text
        assert job.token not in result.raw
        return result

    def git_commands(self, *script: str, **fields: Any) -> tuple[Result, list[str]]:
        """Run a job; also the git commands that its shells started, in order."""
        self.git_log.write_text("")
        variables = {**fields.pop("variables", {}), "GIT_TRACE": str(self.git_log)}
        result = self.run(*script, variables=variables, **fields)
        return result, _GIT_TRACE.findall(self.git_log.read_text())

    # --- looking

    def git(self, *words: str) -> str:
        """Run git in the working copy."""
        return self.repository._git(self.project, *words)

    def files_with(self, text: str, below: Path | None = None) -> list[Path]:
        """Files that hold `text`."""
        needle = text.encode()
        found = (below or self.builds).rglob("*")
        return [path for path in found if path.is_file() and not path.is_symlink() and needle in path.read_bytes()]
