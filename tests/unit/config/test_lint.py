"""What `lint` finds, where, and what it says would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrunner.base.errors import ConfigError
from pyrunner.config.lint import Finding, lint_file, lint_text

FINE = """\
concurrent = 4
[[runners]]
  name = "a"
  url = "https://gitlab.example.com"
  token = "$TOKEN"
  executor = "shell"
"""


def only(text: str, words: str) -> Finding:
    """The one finding whose message has `words`."""
    found = [finding for finding in lint_text(text) if words in finding.message]
    assert len(found) == 1, [finding.message for finding in lint_text(text)]
    return found[0]


def test_a_good_file_has_no_findings() -> None:
    assert lint_text(FINE) == []
    assert lint_text("") == []


def test_an_integer_for_a_float_key() -> None:
    text = f"{FINE}  [runners.machine]\n    IdleScaleFactor = 1\n"
    finding = only(text, "toml: cannot load TOML value of type int64 into a Go float")
    assert (finding.severity, finding.line, finding.column) == ("error", 8, 5)
    assert finding.source == "IdleScaleFactor = 1"
    assert finding.fix == "IdleScaleFactor = 1.0"
    assert finding.key == "runners[0].machine.IdleScaleFactor"


@pytest.mark.parametrize(
    ("added", "severity", "line", "words", "fix"),
    [
        ("  Limit = 2", "warning", 7, "the key is spelled limit", "write limit"),
        ("  limt = 2", "error", 7, "unknown key: runners[0].limt", "did you mean limit?"),
        ("  image = 'x'", "error", 7, "unknown key: runners[0].image", "[runners.docker] or [runners.kubernetes]"),
        ("  concurrent = 2", "error", 7, "unknown key", "belongs to the top of the file"),
        ("  [runners.dokcer]\n  image = 'x'", "error", 7, "unknown key: runners[0].dokcer", "did you mean docker?"),
        ("  [runners.machine]\n  idle_count = 1", "error", 8, "unknown key", "did you mean IdleCount?"),
        ("  limit = '3'", "error", 7, "destination has type integer", "limit = 3"),
        ("  unhealthy_interval = '60'", "error", 7, 'invalid duration: "60"', 'unhealthy_interval = "60s"'),
        ("  unhealthy_interval = 60", "warning", 7, "60 nanoseconds", 'unhealthy_interval = "60s"'),
        ("  shell = 'zsh'", "error", 7, 'shell does not know "zsh"', "did you mean sh?"),
        ("  limit = 5", "warning", 7, "more than concurrent = 4", ""),
        ("  request_concurrency = 1", "warning", 7, "long polling", "request_concurrency = 2"),
        ("  limit = 2\n  request_concurrency = 1", "warning", 8, "limit = 2 with request_concurrency = 1", ""),
        ("  environment = ['A=1', 'B']", "warning", 7, "without = is ignored", ""),
        ("  tls-cert-file = 'x'", "error", 7, "needs tls-key-file", ""),
        ("  [runners.docker]\n    image = 'x'", "warning", 7, "has no effect with executor", ""),
        ("  [runners.feature_flags]\n    FF_TIMESTAMP = true", "warning", 8, "FF_TIMESTAMP is not", "FF_TIMESTAMPS?"),
        ("  [runners.feature_flags]\n    FF_SKIP_NOOP_BUILD_STAGES = true", "warning", 8, "no longer exists", ""),
        ("  [runners.cache]\n    Type = 's4'", "error", 8, 'Type does not know "s4"', "one of: s3, gcs, azure"),
        ("  [runners.labels]\n    a = 'b'", "error", 8, "invalid label key", ""),
        (FINE.partition("\n")[2], "warning", 10, "same as those of runners[0]", ""),
    ],
)  # fmt: skip
def test_findings_inside_an_entry(added: str, severity: str, line: int, words: str, fix: str) -> None:
    finding = only(f"{FINE}{added}\n", words)
    assert (finding.severity, finding.line) == (severity, line)
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("executor", "words", "fix"),
    [
        ("dokcer", 'unknown executor "dokcer"', "did you mean docker?"),
        ("qqqqqq", 'unknown executor "qqqqqq"', "one of: shell, docker"),
        ("", "executor is missing", 'executor = "shell"'),
        ("docker", "needs the section [runners.docker]", "[runners.docker]"),
        ("ssh", "needs the section [runners.ssh]", "[runners.ssh]"),
        ("virtualbox", "needs the section [runners.virtualbox]", ""),
        ("custom", "needs the section [runners.custom]", ""),
        ("kubernetes", "needs the section [runners.kubernetes]", ""),
        ("instance", "needs the section [runners.autoscaler]", ""),
        ("docker+machine", "needs the section [runners.machine]", ""),
    ],
)
def test_executor_and_its_section(executor: str, words: str, fix: str) -> None:
    finding = only(FINE.replace('"shell"', f'"{executor}"'), words)
    assert (finding.severity, finding.line, finding.column) == ("error", 6, 3)
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("old", "new", "words", "line"),
    [
        ("concurrent = 4", "concurrent = 0", "concurrent must be at least 1", 1),
        ("concurrent = 4", "log_level = 'loud'", 'log_level does not know "loud"', 1),
        ("concurrent = 4", "[session_server]\nadvertise_address = 'https://x'", "without a scheme", 2),
        ('  token = "$TOKEN"\n', "", "token is missing or empty", 2),
        ("https://gitlab", "ftp://gitlab", "url must start with http", 4),
        ("example.com", "example.com/ci", "deprecated", 4),
    ],
)
def test_findings_about_the_whole(old: str, new: str, words: str, line: int) -> None:
    assert only(FINE.replace(old, new), words).line == line


def test_fewer_jobs_than_runners_is_a_warning() -> None:
    second = FINE.partition("\n")[2].replace("$TOKEN", "$OTHER")
    finding = only(FINE.replace("4", "1") + second, "less than the number of runners (2)")
    assert (finding.severity, finding.fix) == ("warning", "concurrent = 2")


def test_a_wrong_value_is_said_once() -> None:
    findings = lint_text(FINE.replace('"$TOKEN"', "7"))
    assert [finding.message for finding in findings] == [
        "toml: incompatible types: TOML value has type integer; destination has type string"
    ]


def test_a_syntax_error_is_the_only_finding() -> None:
    (finding,) = lint_text(f"{FINE}  limit = \n")
    assert (finding.severity, finding.line) == ("error", 7)
    assert finding.message.startswith('toml: line 7 (last key "runners.executor")')


def test_tokens_are_never_shown() -> None:
    for text in (FINE.replace('"$TOKEN"', "31337"), FINE.replace('"$TOKEN"', '"31337" # x\n  toke = "31337"')):
        shown = "".join(
            f"{finding.message}{finding.fix}{finding.source}" for finding in lint_text(text.replace("toke =", "limt ="))
        )
        assert "31337" not in shown or "limt" in shown


def test_a_file_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(FINE)
    path.chmod(0o644)
    (finding,) = lint_file(str(path)).findings
    assert (finding.severity, finding.fix) == ("warning", "chmod 600")
    path.chmod(0o600)
    assert lint_file(str(path)).findings == ()


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="^config file not found: "):
        lint_file(str(tmp_path / "none.toml"))
