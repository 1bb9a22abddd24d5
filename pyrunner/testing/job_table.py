"""Runs all rows of a table at once (see `job_life`)."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyrunner.api.tokens import short_token
from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.git_repository import GitRepository
from pyrunner.testing.job_checks import Result, plain_log, sections_of
from pyrunner.testing.job_life import FILES, SOURCES, Place, Row, Strike, When, fill
from pyrunner.testing.runner_service import RunnerService

#: Jobs at once, beside the requests that the runners hold open.
_AT_ONCE = 8


def run_rows(
    rows: Sequence[Row], place: Place, directory: Path, texts: Mapping[str, str] | None = None
) -> dict[str, Result]:
    """Run all `rows` at once; the results by id. `texts` are further placeholders.

    The environment of jobs must be clean already.
    """
    repository = GitRepository(directory, files=FILES)
    server = FakeGitLab(update_interval=1, long_poll=2, host=place.host(), git_root=repository.root)
    with place.around(), server as gitlab:
        table = _Table(rows, place, gitlab, repository, directory)
        table.know(texts or {})
        return table.run()


class _Table:
    """Rows on their way."""

    def __init__(
        self, rows: Sequence[Row], place: Place, gitlab: FakeGitLab, repository: GitRepository, directory: Path
    ) -> None:
        self._rows = rows
        self._place = place
        self._gitlab = gitlab
        self._repository = repository
        self._directory = directory
        self._ids = {row.id: number for number, row in enumerate(rows, 1001)}
        assert len(self._ids) == len(rows), "two rows have the same id"
        self._late: set[str] = set()
        self._texts: dict[str, dict[str, str]] = {}
        self._tags: dict[str, str] = {}
        self.entries: list[Mapping[str, Any]] = []
        by_setting: dict[str, tuple[str, dict[str, Any]]] = {}
        for row in rows:
            key = json.dumps(row.runner, sort_keys=True)
            if key not in by_setting:
                by_setting[key] = self._add_runner(row, len(by_setting))
            self._tags[row.id], entry = by_setting[key]
            self._texts[row.id] = self._place_texts(row, entry)

    def _add_runner(self, row: Row, number: int) -> tuple[str, dict[str, Any]]:
        tag = f"runner-{number}"
        home = self._directory / tag
        home.mkdir()
        token = self._gitlab.add_runner(tag, [tag], run_untagged=False)
        entry: dict[str, Any] = {"name": tag, "url": self._gitlab.url, "token": token, "executor": self._place.name}
        extra = json.loads(fill(json.dumps(row.runner), {"@HOME@": str(home)}))
        # a request that is held occupies a worker, so runners of single rows get one
        entry |= {**self._place.entry(home), "request_concurrency": 1 if row.runner else 4, **extra}
        self.entries.append(entry)
        return tag, entry

    def _place_texts(self, row: Row, entry: Mapping[str, Any]) -> dict[str, str]:
        slug = f"group/row-{self._ids[row.id]}"
        short = short_token(str(entry["token"]))
        builds = str(entry.get("builds_dir", ""))
        room = self._directory / f"room-{self._ids[row.id]}"
        room.mkdir()
        return {
            "@ID@": str(self._ids[row.id]),
            "@BUILDS@": builds,
            "@HOME@": str(self._directory / str(entry["name"])),
            "@SHORT@": short,
            "@SLUG@": slug,
            "@PROJECT@": self._place.project_dir(builds, short, slug),
            "@ROOM@": str(room),
            "@EXIT@": self._place.exit_code,
            "@PLACE@": self._place.name,
        }

    def know(self, texts: Mapping[str, str]) -> None:
        """Further placeholders."""
        for own in self._texts.values():
            own.update(texts)

    def run(self) -> dict[str, Result]:
        """What came of the rows."""
        workers = len(self.entries) + 3 + _AT_ONCE
        service = RunnerService(
            self._gitlab,
            self._directory,
            runners=self.entries,
            options=self._place.options,
            concurrent=workers,
            check_interval=1,
        )
        with _runner_log() as records, service:
            self._submit()
            self._wait(records)
        return {row.id: self._result(row, records) for row in self._rows}

    def _submit(self) -> None:
        """Hand all rows to the server."""
        for row in self._rows:
            texts = self._texts[row.id]
            for deed in row.server:
                if isinstance(deed, Strike):
                    path = fill(deed.path, texts)
                    self._gitlab.inject(deed.method, path, deed.fault, times=deed.times, skip=deed.skip)
            for path, text in row.before.items():
                file = Path(fill(path, texts))
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(fill(text, texts))
            payload = self._payload(row, texts)
            self._gitlab.submit(payload, tags=[self._tags[row.id]])

    def _payload(self, row: Row, texts: Mapping[str, str]) -> dict[str, Any]:
        in_json = {name: json.dumps(text)[1:-1] for name, text in texts.items()}
        payload: dict[str, Any] = json.loads(fill(json.dumps(row.job), in_json))
        payload["id"] = self._ids[row.id]
        payload["job_info"]["project_id"] = self._ids[row.id]
        slug = texts["@SLUG@"]
        if payload["git_info"] == SOURCES:
            info = self._repository.git_info(self._gitlab.url)
            link = self._repository.root / f"{slug}.git"
            link.symlink_to(self._repository.bare)
            payload["git_info"] = {**info, "repo_url": info["repo_url"].replace(self._repository.project, slug)}
        elif payload["git_info"].get("repo_url", "").endswith("/group/project.git"):
            payload["git_info"]["repo_url"] = f"http://gitlab.invalid/{slug}.git"
        return payload

    def _wait(self, records: list[logging.LogRecord]) -> None:
        """Let the server do its deeds until every row is through, or time is up."""
        deadline = time.monotonic() + self._place.in_time
        deeds = [
            (self._ids[row.id], replace(deed, request=fill(deed.request, self._texts[row.id])))
            for row in self._rows
            for deed in row.server
            if isinstance(deed, When)
        ]
        left = set(self._ids.values())
        while left and time.monotonic() < deadline:
            deeds = [(number, deed) for number, deed in deeds if not self._done(number, deed)]
            left -= {number for number in left if self._over(number, records)}
            time.sleep(0.02)
        self._late = {row for row, number in self._ids.items() if number in left}

    def _done(self, number: int, deed: When) -> bool:
        if deed.text:
            due = deed.text.encode() in self._gitlab.server.trace(number)
        else:
            due = bool(self._gitlab.requests_to("*", deed.request))
        if due:
            deed.then(self._gitlab, number)
        return due

    @staticmethod
    def _over(number: int, records: list[logging.LogRecord]) -> bool:
        return any(
            record.msg == "Removed job from processing list" and getattr(record, "job", 0) == number
            for record in list(records)
        )

    def _result(self, row: Row, records: list[logging.LogRecord]) -> Result:
        """What came of `row`."""
        number = self._ids[row.id]
        found = self._gitlab.job(number)
        own = [record.getMessage() for record in records if getattr(record, "job", number) == number]
        trace = found.trace
        return Result(
            job=found,
            log=plain_log(trace),
            sections=sections_of(trace),
            runner_log=own,
            place_texts=self._texts[row.id],
            failure=f"not through after {self._place.in_time:g} s: {found.state}" if row.id in self._late else "",
        )


@contextmanager
def _runner_log() -> Iterator[list[logging.LogRecord]]:
    """Everything that the runner logs from now on."""
    records: list[logging.LogRecord] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    logger, handler = logging.getLogger("pyrunner"), Collect()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield records
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
