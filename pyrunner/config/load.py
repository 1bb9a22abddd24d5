"""config.toml → `Config`: reading, decoding, expansion, defaults and the checks that block (facts/config-toml.md 1, 2).

Every error is a `ConfigError` that says file, line and column, in the words that GitLab Runner's users know.
"""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from pyrunner.base.errors import ConfigError
from pyrunner.base.printable import printable
from pyrunner.config.decode import Decoded, Path, Problem, decode
from pyrunner.config.model import Config

if TYPE_CHECKING:
    from pyrunner.config.positions import Outline

_DECODING = "decoding configuration file: toml: "
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_VARIABLE = re.compile(r"\$(?:\{([^}]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
#: `connection_max_age` of a file that does not say, seconds.
CONNECTION_MAX_AGE = 900.0
#: A config of megabytes is a wrong path, not a config.
_LARGEST = 16 * 1024 * 1024

#: Columns of a quoted line.
_WIDEST = 120


def default_config_path() -> str:
    """``/etc/gitlab-runner/config.toml`` for root, else below the home directory, else here."""
    directory = default_config_directory()
    return os.path.join(directory, "config.toml") if directory else "config.toml"


def default_config_directory() -> str:
    """The directory of the default config file and of ``certs/``; empty = the working directory."""
    if os.name == "nt":
        return ""
    if os.geteuid() == 0:
        return "/etc/gitlab-runner"
    home = os.path.expanduser("~")
    return os.path.join(home, ".gitlab-runner") if os.path.isabs(home) else ""


def load_config(path: str, *, environment: Mapping[str, str] | None = None) -> Config:
    """Read a config file; one that does not exist gives the defaults.

    Args:
        path: of the file.
        environment: for ``$VAR`` in url and token, and ``SENTRY_DSN``; default is that of the process.

    Raises:
        ConfigError: it cannot be read, is no TOML, has a value of a wrong type, or breaks a rule.
    """
    try:
        with open(path, "rb") as file:
            mtime = os.fstat(file.fileno()).st_mtime
            content = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return _completed(Config(path=path), os.environ if environment is None else environment)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=path) from error
    except ValueError as error:
        raise ConfigError(f"the path of the config file is not usable: {error}") from error
    config = parse_config(decoded_text(content, path), path=path, environment=environment)
    config.mtime = mtime
    return config


def decoded_text(content: bytes, path: str) -> str:
    """The text of a config file.

    Raises:
        ConfigError: it is too large or not UTF-8.
    """
    if len(content) > _LARGEST:
        raise ConfigError(f"larger than {_LARGEST // 1024 // 1024} MiB: this is no config file", path=path)
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise ConfigError(f"{_DECODING}line {line}: invalid UTF-8 byte", path=path, line=line, column=column) from None


def parse_config(text: str, *, path: str = "", environment: Mapping[str, str] | None = None) -> Config:
    """The config that a TOML text describes; see `load_config`."""
    values = parse_toml(text, path)
    notes = Decoded()
    config = decode(Config, values, notes)
    if notes.problems:
        _refuse(text, path, notes.problems)
    config.path = path
    if config.connection_max_age is None:
        config.connection_max_age = CONNECTION_MAX_AGE
    _completed(config, os.environ if environment is None else environment)

    from pyrunner.config.rules import first_broken_rule

    if (broken := first_broken_rule(config)) is not None:
        _refuse(text, path, [broken], prefix="")
    return config


def parse_toml(text: str, path: str) -> dict[str, Any]:
    """The plain values of a TOML text.

    Raises:
        ConfigError: with line, column and the last key before the mistake.
    """
    try:
        return _plain_values(text)
    except tomllib.TOMLDecodeError as error:
        _syntax_error(text, path, str(error))
    except RecursionError:
        raise ConfigError(f"{_DECODING}nested too deeply", path=path) from None
    except (ValueError, OverflowError) as error:
        # Python's own limits, e.g. an integer of thousands of digits
        raise ConfigError(f"{_DECODING}{error}", path=path) from None


def _plain_values(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        from pyrunner.config.toml11 import as_toml10

        older = as_toml10(text)
        if older == text:
            raise
        with contextlib.suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(older)
        # the message must speak of the text as it stands in the file
        raise


def located(text: str, path: str, problem: Problem, *, prefix: str = _DECODING) -> ConfigError:
    """The error that shows a problem where it stands."""
    from pyrunner.config.positions import go_key, outline

    places = outline(text)
    line, column = places.locate(problem.path)
    where = f'line {line} (last key "{go_key(problem.path)}"): ' if prefix and line and not problem.bare else ""
    return ConfigError(
        printable(f"{prefix}{where}{problem.message}"),
        path=path,
        line=line,
        column=column,
        hint=_shown(places, line, problem),
    )


def _refuse(text: str, path: str, problems: list[Problem], *, prefix: str = _DECODING) -> NoReturn:
    from pyrunner.config.positions import outline

    places = outline(text)
    raise located(text, path, min(problems, key=lambda problem: places.locate(problem.path)), prefix=prefix)


def _shown(places: Outline, line: int, problem: Problem) -> str:
    """The line in question and what would be right; nothing of a line that holds a secret is shown."""
    if line and any(is_secret(path) for path in places.paths_on(line)):
        return ""
    quoted = places.line(line).strip() if line else ""
    if len(quoted) > _WIDEST:
        quoted = f"{quoted[:_WIDEST]}…"
    fix = f"should be: {problem.fix}" if problem.fix else ""
    return "\n  ".join(printable(part) for part in (quoted, fix) if part)


def is_secret(path: Path) -> bool:
    """Whether the value at `path` must not be shown: its line stays out of messages."""
    from pyrunner.config.keys import field_of, folded_names_of
    from pyrunner.config.table import Table

    table: type[Table] | None = Config
    for part in path:
        if isinstance(part, int):
            continue
        name = folded_names_of(table).get(part.casefold()) if table else None
        if table is None or name is None:
            return False
        declared = field_of(table, name)
        if declared.key.secret:
            return True
        table = declared.table
    return False


def _syntax_error(text: str, path: str, message: str) -> NoReturn:
    from pyrunner.config.positions import go_key, outline

    places = outline(text)
    if (match := _AT.search(message)) is None or match[1] is None:
        line, column = places.place(len(text.rstrip()))
    else:
        line, column = int(match[1]), int(match[2])
    reason = _AT.sub("", message)
    last = go_key(places.last_key(line))
    key = f' (last key "{last}")' if last else ""
    raise ConfigError(printable(f"{_DECODING}line {line}{key}: {reason}"), path=path, line=line, column=column)


def _completed(config: Config, environment: Mapping[str, str]) -> Config:
    if config.sentry_dsn is None:
        config.sentry_dsn = environment.get("SENTRY_DSN")
    for runner in config.runners:
        runner.url = expand(runner.url, environment)
        runner.token = expand(runner.token, environment)
    return config


def expand(text: str, environment: Mapping[str, str]) -> str:
    """`text` with ``$VAR`` and ``${VAR}`` replaced; an unset variable is empty."""
    if "$" not in text:
        return text
    return _VARIABLE.sub(lambda match: environment.get(match[1] or match[2] or "", ""), text)
