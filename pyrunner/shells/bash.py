"""bash and sh (facts/job-lifecycle.md section 6).

Scripts are short and start no process that is not needed: tests and output are builtins, ``rm`` and ``mkdir`` run only
when a test says that there is something to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyrunner.shells import quoting
from pyrunner.shells.protocol import ScriptContext, ShellCommandLine, ShellType
from pyrunner.shells.stages import write_stage
from pyrunner.shells.writer import CLEAR, Argument, Joined, Located, Messages, Reference

#: Where git's own programs live when they are not on the PATH.
_GIT_EXEC_DIRS = ("/usr/lib/git-core", "/usr/libexec/git-core")
_CONTAINER_SHELLS = (
    "/usr/local/bin/bash",
    "/usr/bin/bash",
    "/bin/bash",
    "/usr/local/bin/sh",
    "/usr/bin/sh",
    "/bin/sh",
    "/busybox/sh",
)
_SOURCE_ENV = """\
[ -e "$GITLAB_ENV" ] || : >"$GITLAB_ENV"
while IFS= read -r glr_line || [ -n "$glr_line" ]; do \
case $glr_line in [A-Za-z_]*=*) export "$glr_line";; esac; done <"$GITLAB_ENV\""""


class BashWriter(Messages):
    """Writes for bash and for whatever else understands POSIX shell.

    With `posix` nothing beyond POSIX is used: neither ``$'…'`` nor an ``echo`` that takes text literally.
    """

    def __init__(self, *, posix: bool = False, check_exit_codes: bool = False) -> None:
        self._lines: list[str] = []
        self._quote: Callable[[str], str] = quoting.posix if posix else quoting.ansi_c
        self._echo = "printf '%s\\n' " if posix else "echo "
        self._check_exit_codes = check_exit_codes
        self._rooted = False

    def _word(self, argument: Argument) -> str:
        if isinstance(argument, str):
            return self._quote(argument)
        if isinstance(argument, Reference):
            return f'"${argument.name}"'
        if isinstance(argument, Joined):
            return "".join(self._word(part) for part in argument.parts if part != "")
        if argument.path.startswith("/"):
            return self._quote(argument.path)
        self._rooted = True
        return f'"$GLR_ROOT"/{self._quote(argument.path)}'

    def _words(self, arguments: tuple[Argument, ...], env: Mapping[str, str] | None = None) -> str:
        settings = [f"{key}={self._quote(value)}" for key, value in (env or {}).items()]
        return " ".join([*settings, *map(self._word, arguments)])

    def line(self, text: str) -> None:
        """Text of the user, as it is."""
        self._lines.append(text)

    def check_errors(self) -> None:
        """errexit does it, unless FF_ENABLE_BASH_EXIT_CODE_CHECK asks for an explicit test."""
        if self._check_exit_codes:
            self.line("_runner_exit_code=$?; if [ $_runner_exit_code -ne 0 ]; then exit $_runner_exit_code; fi")

    def export(self, key: str, value: Argument) -> None:
        """Set an environment variable."""
        self.line(f"export {key}={self._word(value)}")

    def file_variable(self, key: str, path: Located, content: str) -> None:
        """Write `content` to `path` and export the path as `key`."""
        self.write_file(path, content)
        self.export(key, path)

    def source_env(self) -> None:
        """Read ``GITLAB_ENV`` line by line; nothing in it is evaluated."""
        self.line(_SOURCE_ENV)

    def command(self, *arguments: Argument, env: Mapping[str, str] | None = None) -> None:
        """Run a program."""
        self.line(self._words(arguments, env))

    def feed(self, text: str, *arguments: Argument) -> None:
        """A here-document, which costs no process."""
        self.line(f"{self._words(arguments)} >/dev/null 2>&1 <<'GLR_END' || :\n{text}\nGLR_END")

    def if_command(self, *arguments: Argument, env: Mapping[str, str] | None = None) -> None:
        """Open a block that runs when the program succeeds."""
        self.line(f"if {self._words(arguments, env)}; then")

    def if_silent(self, *arguments: Argument) -> None:
        """Like `if_command`, output thrown away."""
        self.line(f"if {self._words(arguments)} >/dev/null 2>&1; then")

    def if_output_has(self, needle: str, *arguments: Argument) -> None:
        """Open a block that runs when the program's output contains `needle`."""
        self.line(f'glr_found=; case "$({self._words(arguments)} 2>&1)" in *{self._quote(needle)}*) glr_found=1;; esac')
        self.line('if [ -n "$glr_found" ]; then')

    def if_program(self, name: str) -> None:
        """Look the program up with the shell's builtin: running it would cost a process."""
        self.line(f"if command -v {self._quote(name)} >/dev/null 2>&1; then")

    def if_git_extension(self, name: str) -> None:
        """Look for ``git-<name>`` on the PATH and beside git's own programs."""
        tests = [f"command -v git-{name} >/dev/null 2>&1"]
        tests += [f"[ -x {directory}/git-{name} ]" for directory in _GIT_EXEC_DIRS]
        self.line(f"if {' || '.join(tests)}; then")

    def if_directory(self, path: Argument) -> None:
        """Open a block that runs when `path` is a directory."""
        self.line(f"if [ -d {self._word(path)} ]; then")

    def if_file(self, path: Argument) -> None:
        """Open a block that runs when `path` is a file."""
        self.line(f"if [ -f {self._word(path)} ]; then")

    def else_(self) -> None:
        """The other branch."""
        self.line("else")

    def end(self) -> None:
        """Close the block; an empty branch would be a syntax error, so stages leave none."""
        self.line("fi")

    def cd(self, path: Argument) -> None:
        """Change the working directory."""
        self.line(f"cd {self._word(path)}")

    def mkdir(self, path: Argument) -> None:
        """Start ``mkdir`` only when the directory is missing."""
        word = self._word(path)
        self.line(f"[ -d {word} ] || mkdir -p {word}")

    def rm(self, *paths: Argument) -> None:
        """Start one ``rm`` for those that exist, none when none does."""
        if len(paths) == 1:
            word = self._word(paths[0])
            self.line(f"[ ! -e {word} ] || rm -rf {word}")
            return
        self.line(
            f"set --; for glr_path in {self._words(paths)}; do "
            '[ ! -e "$glr_path" ] || set -- "$@" "$glr_path"; done; [ $# = 0 ] || rm -rf "$@"'
        )

    def rm_filled(self, path: Argument) -> None:
        """Start ``rm`` only for a file with something in it."""
        word = self._word(path)
        self.line(f"[ ! -s {word} ] || rm -f {word}")

    def rm_files_matching(self, directory: Argument, *patterns: str) -> None:
        """Delete files below `directory` by name."""
        self._find(directory, "-type f", patterns, "-exec rm -f {} +")

    def rm_directories_matching(self, directory: Argument, *patterns: str) -> None:
        """Delete directories below `directory` by name."""
        self._find(directory, "-type d", patterns, "-prune -exec rm -rf {} +")

    def _find(self, directory: Argument, kind: str, patterns: tuple[str, ...], action: str) -> None:
        word = self._word(directory)
        names = " -o ".join(f"-name {quoting.single(pattern)}" for pattern in patterns)
        self.line(f"[ ! -d {word} ] || find {word} {kind} \\( {names} \\) {action}")

    def write_file(self, path: Argument, *content: Argument, private: bool = False) -> None:
        """Write a file with a builtin, so that its content is in no process's arguments."""
        word = self._word(path)
        write = f"printf %s {self._word(Joined(content)) or repr('')} >{word}"
        self.line(f"(umask 077; [ ! -e {word} ] || rm -f {word}; {write})" if private else write)

    def echo(self, text: str) -> None:
        """Print a line."""
        self.line(f"{self._echo}{self._quote(text)}" if text else "echo")

    def running_on(self, via: str) -> None:
        """bash knows its host name; other shells have to ask."""
        suffix = self._quote(f" via {via}...") if via else "..."
        self.line(f'{self._echo}"Running on ${{HOSTNAME:-$(hostname)}}"{suffix}')

    def section_start(self, name: str, options: str = "") -> None:
        """Print a section marker."""
        self._marker("start", f"{name}[{options}]" if options else name, "")

    def section_end(self, name: str) -> None:
        """Print the marker that ends a section."""
        self._marker("end", name, "\\n")

    def _marker(self, kind: str, name: str, newline: str) -> None:
        self.line(
            f"printf 'section_{kind}:%s:%s{newline}' "
            f'"${{EPOCHSECONDS:-$(date +%s)}}" {self._quote(f"{name}{chr(13)}{CLEAR}")}'
        )

    def finish(self, program: str, *, debug_trace: bool = False, legacy_eval: bool = False) -> str:
        """The whole script.

        The body is one argument of ``eval`` and its input is empty: no command in it can eat the rest of the script,
        and what stands before a syntax error still runs. ``exit $?`` stands on the same line, so nothing is left to
        read when the body runs; it keeps the status of a last command that errexit let pass.
        """
        root = ["GLR_ROOT=$PWD"] if self._rooted else []
        body = self._quote("\n".join([*root, *self._lines]) + "\n")
        lines = [
            f"#!/usr/bin/env {program}",
            "trap 'exit 1' TERM",
            *(["set -o xtrace"] if debug_trace else []),
            # `command` keeps a shell without this option from ending here
            "command set -o pipefail 2>/dev/null || :",
            "set -o errexit",
            "set +o noclobber",
            f": | eval {body}; exit $?" if legacy_eval else f"eval {body} </dev/null; exit $?",
        ]
        return "\n".join(lines) + "\n"


class PosixShell:
    """`Shell` for ``bash`` and ``sh``. ``sh`` may be any POSIX shell, so it gets POSIX quoting only."""

    def __init__(self, name: str) -> None:
        self.name = name

    def command_line(self, kind: ShellType, user: str = "", *, by_file: bool = False) -> ShellCommandLine:
        """``bash [-l]``, through ``su`` for another user (facts/executors.md section 2); always reads its input."""
        login = kind is ShellType.LOGIN
        arguments = [self.name, "-l"] if login else [self.name]
        if user:
            arguments = ["su", "-s", f"/bin/{self.name}", user, "-c", " ".join(arguments)]
        return ShellCommandLine(arguments=arguments, container_command=["sh", "-c", _detection(login)])

    def script(self, stage: str, context: ScriptContext) -> str | None:
        """The script of `stage`; None when there is nothing to do."""
        writer = BashWriter(
            posix=self.name != "bash" or context.flags.get("FF_POSIXLY_CORRECT_ESCAPES", False),
            check_exit_codes=context.flags.get("FF_ENABLE_BASH_EXIT_CODE_CHECK", False),
        )
        if not write_stage(writer, stage, context):
            return None
        return writer.finish(
            self.name,
            debug_trace=context.debug_trace,
            legacy_eval=context.flags.get("FF_USE_LEGACY_BASH_EVAL", False),
        )


def _detection(login: bool) -> str:
    """Start the first shell there is; the container needs nothing but some ``sh``."""
    flag = " -l" if login else ""
    tests = [f"if [ -x {path} ]; then exec {path}{flag}; fi" for path in _CONTAINER_SHELLS]
    return "\n".join([*tests, "echo shell not found", "exit 1"]) + "\n"
