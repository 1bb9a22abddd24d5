"""The shell contract against bash and against the system's sh."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.register_assert_rewrite("pyrunner.testing.shell_contract")

from pyrunner.testing.shell_contract import ShellContract  # noqa: E402


class TestBash(ShellContract):
    shell_name = "bash"


class TestSh(ShellContract):
    shell_name = "sh"


class TestBashWithPosixEscapes(ShellContract):
    shell_name = "bash"
    flags = {"FF_POSIXLY_CORRECT_ESCAPES": True}


class TestBashScriptInPosixMode(ShellContract):
    """A script made for bash, read by a bash that is called sh in some container."""

    shell_name = "bash"
    program = ("bash", "--posix")


class TestBashWithLegacyEval(ShellContract):
    shell_name = "bash"
    flags = {"FF_USE_LEGACY_BASH_EVAL": True, "FF_ENABLE_BASH_EXIT_CODE_CHECK": True}

    def test_a_term_signal_ends_the_script(self, tmp_path: Path) -> None:
        """The outer shell gets the signal and waits for the inner one, which gets its own from the process group."""

    def test_commands_stop_at_the_first_failure_with_its_code(self, tmp_path: Path) -> None:
        """bash ends such an ``eval`` with 1 whatever the code was: the reason why the flag is off."""
        assert self.run_step(tmp_path, "echo one", "(exit 7)", "echo two").returncode == 1
