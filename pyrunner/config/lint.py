"""Everything that can be said about a config file without running it: what `lint` prints.

Errors are what cannot work; warnings are what will surprise. `advice` has the rules between keys.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Literal

from pyrunner.base.errors import ConfigError
from pyrunner.base.printable import printable
from pyrunner.config.advice import Advice, Severity, advise
from pyrunner.config.decode import Decoded, Path, decode
from pyrunner.config.keys import fields_of, names_of
from pyrunner.config.load import decoded_text, is_secret, parse_toml
from pyrunner.config.model import Config, RunnerConfig
from pyrunner.config.positions import Outline, dotted, outline
from pyrunner.config.rules import broken_rules
from pyrunner.config.table import Table


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing to say.

    `key` is dotted (``runners[0].docker.image``), `line` and `column` count from 1 and are 0 for the file as a whole,
    `source` is the line as the file has it (empty when it holds a secret), `fix` what would be right.
    """

    severity: Severity
    key: str
    line: int
    column: int
    message: str
    fix: str = ""
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """All findings about one file, in its order."""

    path: str
    findings: tuple[Finding, ...]

    def count(self, severity: Literal["error", "warning"]) -> int:
        """How many findings are of this severity."""
        return sum(finding.severity == severity for finding in self.findings)


def lint_file(path: str) -> Report:
    """Look at a file.

    Raises:
        ConfigError: there is no such file, or it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read()
    except FileNotFoundError:
        raise ConfigError(f"config file not found: {path}") from None
    except OSError as error:
        raise ConfigError(f"accessing config file: {path}: {error.strerror}") from error
    try:
        findings = lint_text(decoded_text(content, path))
    except ConfigError as error:
        findings = [_failed(error)]
    if b"token" in content and stat.S_IMODE(mode) & 0o077:
        findings.insert(0, _open_to_others(stat.S_IMODE(mode)))
    return Report(path=path, findings=tuple(findings))


def lint_text(text: str) -> list[Finding]:
    """The findings about a TOML text, in its order."""
    try:
        values = parse_toml(text, "")
    except ConfigError as error:
        return [_failed(error)]
    notes = Decoded()
    config = decode(Config, values, notes)
    places = outline(text)
    # what a value of the wrong type leads to is not worth saying as well
    wrong = {dotted(problem.path).casefold() for problem in notes.problems}
    further = [*advise(config, values), *(_rule(broken.path, broken.message) for broken in broken_rules(config))]
    advices = [*_decoding(notes), *(advice for advice in further if dotted(advice.path).casefold() not in wrong)]
    findings = [_finding(advice, places) for advice in advices]
    return sorted(dict.fromkeys(findings), key=lambda finding: (finding.line, finding.column, finding.severity))


def _decoding(notes: Decoded) -> list[Advice]:
    wrong = [
        Advice(severity="error", path=problem.path, message=f"toml: {problem.message}", fix=problem.fix)
        for problem in notes.problems
    ]
    unknown = [
        Advice(severity="error", path=path, message=f"unknown key: {dotted(path)}", fix=_nearest(path, table))
        for path, table in notes.unknown
    ]
    respelled = [
        Advice(
            severity="warning",
            path=path,
            message=f"{path[-1]} is accepted, but the key is spelled {name}",
            fix=f"write {name}",
        )
        for path, name in notes.respelled
    ]
    return [*wrong, *unknown, *respelled]


def _rule(path: Path, message: str) -> Advice:
    return Advice(severity="error", path=path, message=message)


def _finding(advice: Advice, places: Outline) -> Finding:
    line, column = places.locate(advice.path)
    hidden = not line or any(is_secret(path) for path in places.paths_on(line))
    fix = "" if hidden and line and is_secret(advice.path) else advice.fix
    return Finding(
        severity=advice.severity,
        key=printable(dotted(advice.path)),
        line=line,
        column=column,
        message=printable(advice.message),
        fix=printable(fix),
        source="" if hidden else printable(places.line(line).strip()[:200]),
    )


def _nearest(path: Path, table: type[Table]) -> str:
    from difflib import get_close_matches

    name = str(path[-1])
    known = names_of(table)
    by_letters = {_letters(key): key for key in known}
    if (same := by_letters.get(_letters(name))) is not None:
        return f"did you mean {same}?"
    if near := get_close_matches(name.casefold(), [key.casefold() for key in known], 1, 0.7):
        return f"did you mean {next(key for key in known if key.casefold() == near[0])}?"
    return _elsewhere(name)


def _letters(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def _elsewhere(name: str) -> str:
    """The table in which a key would be known: most unknown keys stand under the wrong header."""
    if name in names_of(RunnerConfig):
        return f"{name} belongs to [[runners]]"
    if name in names_of(Config):
        return f"{name} belongs to the top of the file, before the first header"
    homes = [
        f"[runners.{field.name}]"
        for field in fields_of(RunnerConfig)
        if field.kind == "table" and field.table is not None and name in names_of(field.table)
    ]
    return f"{name} belongs to {' or '.join(homes)}" if homes and len(homes) < 4 else ""


def _failed(error: ConfigError) -> Finding:
    message = error.message.removeprefix("decoding configuration file: ")
    return Finding(severity="error", key="", line=error.line, column=error.column, message=message)


def _open_to_others(mode: int) -> Finding:
    return Finding(
        severity="warning",
        key="",
        line=0,
        column=0,
        message=f"others on this machine can read the tokens in it (mode {mode:04o})",
        fix="chmod 600",
    )
