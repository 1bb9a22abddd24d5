"""One bash for neighbouring stages (docs/architecture.md, "Shells of a job").

A login shell costs more than most predefined stages do. A shared one reads its profile once, tells what it found, and
then forks a subshell for each stage it is given; at last it may become the shell of a user's script itself. Whether a
stage may be run so is the caller's to say; whether *this* shell may, `SharedShell.begin` finds out: a profile that
prints, sets traps or options, or a logout file, shows in every stage's log, so then every stage needs its own.

Scripts reach the shell through the unnamed file that is its standard input and grows, words through a socket::

    runner                                       bash -l
      file: INTRODUCTION  ────────────────────▶  profile, traps, options
      ◀───────────────────────────── "ready hBs"
      file += script, NUL; "stage"  ──────────▶  ( eval script )
      ◀────────────────────────────── exit code
      file += script; ""  ────────────────────▶  reads on, as any shell reads its standard input
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping, Sequence

from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import SystemFailure
from pyrunner.executors.exit_code import check_exit_code
from pyrunner.executors.pipe import PipeOutput
from pyrunner.executors.process import GracePeriods, ProcessGroup
from pyrunner.executors.protocol import ExecutorCommand

#: Descriptor of the socket in the shell: a profile uses low numbers, bash itself 10 and up, and 255.
_CONTROL = HIGHEST_DESCRIPTOR = 198
#: What bash says of its options (``$-``) when nobody has changed any.
_PLAIN_OPTIONS = b"hBs"
#: One line, and the scripts' own first line is left out behind it: the numbers of lines in error messages stay.
#: Neither an option of the profile (xtrace) nor the end of a killed subshell makes a word of it appear in the log. A
#: profile may have put any shell in bash's place; that one passes over it all and ends.
_INTRODUCTION = f"""\
{{ [ -z "${{BASH_VERSION-}}" ] || eval '{{ trap -p; trap "exit 1" TERM; \
for GLR_SCRIPT in "${{HOME-}}/.bash_logout" /etc/bash.bash_logout /etc/bash_logout; do \
[ ! -e "$GLR_SCRIPT" ] || printf "logout\\n"; done; \
GLR_SECONDS=${{SECONDS-}}; printf "ready %s\\n" "$-"; \
while IFS= read -r -u {_CONTROL} GLR_SCRIPT && [ -n "$GLR_SCRIPT" ]; do IFS= read -r -d "" GLR_SCRIPT || :; \
( eval "$GLR_SCRIPT" ) >&196 2>&197 196>&- 197>&- {_CONTROL}>&-; printf "%s\\n" "$?"; done; \
}} 196>&1 197>&9 9>&- >&{_CONTROL}; \
exec {_CONTROL}>&-; SECONDS=$GLR_SECONDS; unset GLR_SECONDS GLR_SCRIPT'; }} 9>&2 2>/dev/null
"""
#: Longer scripts are not passed on by way of a shell variable.
LONGEST_SCRIPT = 65536


class NotSharedError(SystemFailure):
    """A shell that was to be shared ended of itself, without an error."""

    def __init__(self) -> None:
        super().__init__("the stage's shell ended early", reason="runner_system_failure")


class SharedShell:
    """A running shell; ends with `close` or with the script given to `run_inside`. Used by one thread.

    Args:
        arguments: how the shell is started; it must be bash and read its script from stdin.
        environment: of the shell.
        output: the job's output.
        grace: for signals.

    Raises:
        SystemFailure: it cannot be started.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[bytes, bytes],
        output: PipeOutput,
        grace: GracePeriods,
    ) -> None:
        self._output = output
        self._grace = grace
        self._before = output.received
        self._file = self._end = -1
        ours, theirs = socket.socketpair()
        try:
            self._file, self._end = os.memfd_create("script", os.MFD_CLOEXEC), 0
            self._append(_INTRODUCTION)
            self._group = ProcessGroup.start(
                list(arguments),
                stdin=self._file,
                output=output.writer,
                environment=environment,
                extra={_CONTROL: theirs.fileno()},
            )
        except BaseException as error:
            ours.close()
            self._close_file()
            if isinstance(error, OSError):
                raise _no_room(error) from error
            raise
        finally:
            theirs.close()
        self._control = ours
        #: Whether it can be given more.
        self.alive = True

    def begin(self, token: CancelToken) -> bool:
        """Wait for the profile's end; whether more than one stage can run here unnoticed.

        Raises:
            NotSharedError: the profile has ended the shell with success, or put another program in its place.
            JobFailure: the profile has ended the shell.
            BaseException: the token's cause.
        """
        lines = self._next(b"ready ", token).split(b"\n")
        # An ignored signal is ignored in a subshell too, and a manager started by `nohup` or with `&` has some.
        found = [line for line in lines if not line.startswith(b"trap -- '' ")]
        return found == [b"ready " + _PLAIN_OPTIONS] and self._output.received == self._before

    def run_beside(self, command: ExecutorCommand) -> None:
        """Run a stage in a subshell. Raises like `Executor.run`; after a `JobFailure` this shell goes on."""
        self._pass_on(f"{command.script}\0", b"stage\n")
        check_exit_code(int(self._next(b"", command.token)))

    def run_inside(self, command: ExecutorCommand) -> None:
        """Let the shell itself go on with the script, as if it had been started for it. Nothing can follow."""
        self._pass_on(_without_first_line(command.script), b"\n")
        self._control.close()
        self._wait(command.token)

    def close(self) -> None:
        """End the shell; must not be called after `run_inside` or a failure other than `JobFailure`."""
        self._control.close()
        self._close_file()
        self._group.kill_leader()

    def _pass_on(self, script: str, word: bytes) -> None:
        try:
            self._append(script)
        except OSError as error:
            self.close()
            raise _no_room(error) from error
        try:
            self._control.sendall(word)
        except OSError:
            # It has been killed since it spoke last; how, the waiting tells.
            return

    def _append(self, text: str) -> None:
        """At the end, not at the file's own position: that is the shell's too."""
        data = text.encode("utf-8", "surrogateescape")
        while data:
            written = os.pwrite(self._file, data, self._end)
            self._end += written
            data = data[written:]

    def _next(self, start: bytes, token: CancelToken) -> bytes:
        """What the shell says when it is done, all lines; the last one begins with `start`."""
        try:
            return self._answer(start, token)
        except BaseException:
            self._control.close()
            self._close_file()
            self.alive = False
            raise

    def _answer(self, start: bytes, token: CancelToken) -> bytes:
        said = b""
        while not (said.endswith(b"\n") and said.rpartition(b"\n")[0].rpartition(b"\n")[2].startswith(start)):
            piece = b""
            if self._group.wait_for(self._control.fileno(), self._output, token, self._grace):
                with contextlib.suppress(ConnectionResetError):
                    piece = self._control.recv(4096)
            if not piece:
                self._wait(token)
                raise NotSharedError
            said += piece
        return said[:-1]

    def _wait(self, token: CancelToken) -> None:
        self._control.close()
        self._close_file()
        self._group.wait(self._output, token, self._grace)

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _without_first_line(script: str) -> str:
    return script.partition("\n")[2] if script.startswith("#!") else script


def _no_room(error: OSError) -> SystemFailure:
    return SystemFailure(f"cannot store the stage's script: {error.strerror}", reason="runner_system_failure")
