"""pwsh and Windows PowerShell (facts/job-lifecycle.md section 6, "PowerShell")."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

from pyrunner.shells.protocol import ScriptContext, ShellCommandLine, ShellType
from pyrunner.shells.stages import write_stage
from pyrunner.shells.writer import CLEAR, Argument, Joined, Located, Messages, Reference

_CONTROL = {"\0": "", "\a": "`a", "\b": "`b", "\t": "`t", "\n": "`n", "\v": "`v", "\f": "`f", "\r": "`r"}
#: Typographic quotes end a string like plain ones do.
_ESCAPES = str.maketrans({**_CONTROL, **{mark: "`" + mark for mark in '`$"\u201c\u201d\u201e'}})
_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:[/\\]")
_CHECK = "if(!$?) { Exit &{if($LASTEXITCODE) {$LASTEXITCODE} else {1}} }"
#: Variables of PowerShell itself that scripts cannot set; they are exported only.
_RESERVED = frozenset(
    (
        *("error", "executioncontext", "false", "home", "host", "pid", "psculture", "pshome"),
        *("psuiculture", "psversiontable", "shellid", "true"),
    )
)
_SOURCE_ENV = """\
if(!(Test-Path -LiteralPath $env:GITLAB_ENV)) { New-Item -ItemType file -Path $env:GITLAB_ENV | Out-Null }
foreach($glr_line in (Get-Content -LiteralPath $env:GITLAB_ENV)) {
$glr_key, $glr_value = $glr_line -split "=", 2
if($glr_key -match "^[A-Za-z_][A-Za-z0-9_]*$" -and $null -ne $glr_value) {
Set-Item -LiteralPath "env:$glr_key" -Value $glr_value
Set-Variable -Name $glr_key -Value $glr_value -ErrorAction SilentlyContinue
}
}"""
_FLAGS = (
    *("-NoProfile", "-NoLogo", "-InputFormat", "text", "-OutputFormat", "text"),
    *("-NonInteractive", "-ExecutionPolicy", "Bypass"),
)
_FILE_FLAGS = ("-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File")
_BYTE_ORDER_MARK = "\ufeff"
SCRIPT_EXTENSION = "ps1"
#: Scripts are handed over as files: exit codes other than 0 and 1 get through.
BY_FILE_FLAG = "FF_DISABLE_POWERSHELL_STDIN"
_UTF8 = "$OutputEncoding = [console]::InputEncoding = [console]::OutputEncoding = New-Object System.Text.UTF8Encoding"


def escaped(text: str) -> str:
    """`text` for the inside of double quotes."""
    return text.translate(_ESCAPES)


class PowerShellWriter(Messages):
    """Writes for PowerShell 5.1 and later."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rooted = False

    def _inner(self, argument: Argument) -> str:
        if isinstance(argument, str):
            return escaped(argument)
        if isinstance(argument, Reference):
            return f"$($env:{argument.name})"
        if isinstance(argument, Joined):
            return "".join(map(self._inner, argument.parts))
        if _ABSOLUTE.match(argument.path):
            return escaped(argument.path)
        self._rooted = True
        return f"$($glr_root)/{escaped(argument.path)}"

    def _word(self, argument: Argument) -> str:
        return f'"{self._inner(argument)}"'

    def _call(self, arguments: tuple[Argument, ...]) -> str:
        return "& " + " ".join(map(self._word, arguments))

    def _set_env(self, env: Mapping[str, str] | None) -> None:
        for key, value in (env or {}).items():
            self.line(f"$env:{key}={self._word(value)}")

    def line(self, text: str) -> None:
        """Text of the user, as it is."""
        self._lines.append(text)

    def check_errors(self) -> None:
        """PowerShell goes on after a failed program: test each time."""
        self.line(_CHECK)

    def export(self, key: str, value: Argument) -> None:
        """Set both the environment variable and PowerShell's own."""
        self.line(f"$env:{key}={self._word(value)}")
        if key.lower() not in _RESERVED:
            self.line(f"${key}=$env:{key}")

    def file_variable(self, key: str, path: Located, content: str) -> None:
        """Write `content` to `path` and export the path as `key`."""
        self.write_file(path, content)
        self.export(key, path)

    def source_env(self) -> None:
        """Read ``GITLAB_ENV`` line by line; nothing in it is evaluated."""
        self.line(_SOURCE_ENV)

    def command(self, *arguments: Argument, env: Mapping[str, str] | None = None) -> None:
        """Run a program."""
        self._set_env(env)
        self.line(self._call(arguments))
        self.check_errors()

    def feed(self, text: str, *arguments: Argument) -> None:
        """Give lines to a program; nothing it does matters."""
        self.line(f"Try {{ {self._word(text)} | {self._call(arguments)} 2>$null | Out-Null }} Catch {{ }}")

    def if_command(self, *arguments: Argument, env: Mapping[str, str] | None = None) -> None:
        """Open a block that runs when the program succeeds."""
        self._set_env(env)
        self._if_call(self._call(arguments))

    def if_silent(self, *arguments: Argument) -> None:
        """Like `if_command`, output thrown away."""
        self._if_call(f"{self._call(arguments)} 2>$null | Out-Null")

    def _if_call(self, call: str) -> None:
        self.line("$glr_failed = $false")
        self.line(f"Try {{ {call}; if($LASTEXITCODE) {{ $glr_failed = $true }} }} Catch {{ $glr_failed = $true }}")
        self.line("if(!$glr_failed) {")

    def if_output_has(self, needle: str, *arguments: Argument) -> None:
        """Open a block that runs when the program's output contains `needle`."""
        self.line(f'if("$({self._call(arguments)} 2>&1)".Contains({self._word(needle)})) {{')

    def if_program(self, name: str) -> None:
        """Open a block that runs when program `name` exists."""
        self.line(f"if(Get-Command {self._word(name)} -ErrorAction SilentlyContinue) {{")

    def if_git_extension(self, name: str) -> None:
        """Open a block that runs when ``git <name>`` works; Git for Windows keeps it off the PATH."""
        self.if_silent("git", name, "version")

    def if_directory(self, path: Argument) -> None:
        """Open a block that runs when `path` is a directory."""
        self.line(f"if(Test-Path -LiteralPath {self._word(path)} -PathType Container) {{")

    def if_file(self, path: Argument) -> None:
        """Open a block that runs when `path` is a file."""
        self.line(f"if(Test-Path -LiteralPath {self._word(path)} -PathType Leaf) {{")

    def else_(self) -> None:
        """The other branch."""
        self.line("} else {")

    def end(self) -> None:
        """Close the block."""
        self.line("}")

    def cd(self, path: Argument) -> None:
        """Change the working directory."""
        self.line(f"Set-Location -LiteralPath {self._word(path)}")
        self.check_errors()

    def mkdir(self, path: Argument) -> None:
        """Make a directory and its parents."""
        self.line(f"New-Item -ItemType directory -Force -Path {self._word(path)} | Out-Null")

    def rm(self, *paths: Argument) -> None:
        """Delete files or trees that exist."""
        words = ", ".join(map(self._word, paths))
        self.line(
            f"foreach($glr_path in {words}) {{ "
            "if(Test-Path -LiteralPath $glr_path) { Remove-Item -LiteralPath $glr_path -Recurse -Force } }"
        )

    def rm_filled(self, path: Argument) -> None:
        """No process is at stake here."""
        self.rm(path)

    def rm_files_matching(self, directory: Argument, *patterns: str) -> None:
        """Delete files below `directory` by name."""
        self._rm_matching(directory, "-File", patterns)

    def rm_directories_matching(self, directory: Argument, *patterns: str) -> None:
        """Delete directories below `directory` by name."""
        self._rm_matching(directory, "-Directory", patterns)

    def _rm_matching(self, directory: Argument, kind: str, patterns: tuple[str, ...]) -> None:
        word = self._word(directory)
        test = " -or ".join(f"$_.Name -like {self._word(pattern)}" for pattern in patterns)
        self.line(
            f"if(Test-Path -LiteralPath {word}) {{ Get-ChildItem -LiteralPath {word} -Recurse -Force {kind} | "
            f"Where-Object {{ {test} }} | Remove-Item -Recurse -Force }}"
        )

    def write_file(self, path: Argument, *content: Argument, private: bool = False) -> None:
        """Write UTF-8 without a byte order mark; a user's directories are private on Windows already."""
        word = self._word(path)
        if private:
            self.rm(path)
        self.line(
            f"[System.IO.File]::WriteAllText({word}, {self._word(Joined(content))}, "
            "(New-Object System.Text.UTF8Encoding($false)))"
        )
        if private:
            self.line(f'if($IsLinux -or $IsMacOS) {{ & "chmod" "600" {word} }}')

    def echo(self, text: str) -> None:
        """Print a line."""
        self.line(f"echo {self._word(text)}")

    def running_on(self, via: str) -> None:
        """Print which host the script runs on."""
        suffix = f" via {escaped(via)}" if via else ""
        self.line(f'echo "Running on $([Environment]::MachineName){suffix}..."')

    def section_start(self, name: str, options: str = "") -> None:
        """Print a section marker."""
        self._marker("start", f"{name}[{options}]" if options else name, "")

    def section_end(self, name: str) -> None:
        """Print the marker that ends a section."""
        self._marker("end", name, "\n")

    def _marker(self, kind: str, name: str, newline: str) -> None:
        tail = escaped(f":{name}\r{CLEAR}{newline}")
        self.line(f'[Console]::Out.Write("section_{kind}:$([DateTimeOffset]::UtcNow.ToUnixTimeSeconds()){tail}")')

    def finish(self, program: str, *, debug_trace: bool = False) -> str:
        """The whole script: one block, so that it is parsed before any of it runs."""
        lines = ["& {"]
        if program == "pwsh":
            lines = ["#!/usr/bin/env pwsh", "& {", '$ErrorActionPreference = "Stop"']
        if debug_trace:
            lines.append("Set-PSDebug -Trace 2")
        if self._rooted:
            lines.append('$glr_root = (Get-Location).Path.Replace("\\", "/")')
        # a blank line ends a block that PowerShell reads from its input
        text = "\n".join([*lines, *self._lines, "}", "", ""])
        return text.replace("\r\n", "\n").replace("\n", "\r\n") if program == "powershell" else text


class PowerShell:
    """`Shell` for ``pwsh`` and ``powershell``; scripts come on stdin, or by file with `BY_FILE_FLAG`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def command_line(self, kind: ShellType, user: str = "", *, by_file: bool = False) -> ShellCommandLine:
        """Login and normal shells are the same here."""
        # the file of a script is its owner's only: another user gets it on stdin
        by_file = by_file and not user
        through_stdin = [self.name, *_FLAGS, *self._source()]
        arguments = [self.name, *_FILE_FLAGS] if by_file else through_stdin
        if user:
            arguments = ["su", "-s", f"/usr/bin/{self.name}", user, "-c", " ".join(arguments)]
        return ShellCommandLine(
            arguments=arguments, container_command=through_stdin, pass_file=by_file, extension=SCRIPT_EXTENSION
        )

    def _source(self) -> list[str]:
        """pwsh first has to be told that its input is UTF-8."""
        if self.name == "powershell":
            return ["-Command", "-"]
        bootstrap = f"{_UTF8}\r\n{self.name} {' '.join(_FLAGS)} -Command -\r\nexit $LASTEXITCODE\r\n"
        return ["-EncodedCommand", base64.b64encode(bootstrap.encode("utf-16-le")).decode("ascii")]

    def script(self, stage: str, context: ScriptContext) -> str | None:
        """The script of `stage`; None when there is nothing to do."""
        writer = PowerShellWriter()
        if not write_stage(writer, stage, context):
            return None
        script = writer.finish(self.name, debug_trace=context.debug_trace)
        return _BYTE_ORDER_MARK + script if self._needs_mark(context) else script

    def _needs_mark(self, context: ScriptContext) -> bool:
        """Windows PowerShell takes a file without the mark for text in the system's code page."""
        by_file = context.executor == "custom" or context.flags.get(BY_FILE_FLAG, False)
        return self.name == "powershell" and by_file
