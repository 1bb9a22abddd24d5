"""``completion``: the completion scripts; each asks this very program at every TAB, so that none can be out of date."""

from __future__ import annotations

import os
import sys

from pyrunner.base.errors import UsageError
from pyrunner.cli.spec import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation

BASH = """\
# bash completion of {program}: source this file, or save it as
# ~/.local/share/bash-completion/completions/{program}
_{function}_complete() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} words=("${{COMP_WORDS[@]:1:COMP_CWORD}}") answer
    COMPREPLY=()
    while IFS= read -r answer; do
        case $answer in
            @files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
            @directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
            *) COMPREPLY+=("$(printf '%q' "$answer")") ;;
        esac
    done < <("${{COMP_WORDS[0]}}" completion words -- "${{words[@]}}" 2>/dev/null)
}}
complete -F _{function}_complete {program}
"""

ZSH = """\
#compdef {program}
# zsh completion of {program}: save this file as _{program} in a directory of $fpath
_{function}_complete() {{
    local -a answers
    answers=("${{(@f)$(${{words[1]}} completion words -- "${{(@)words[2,CURRENT]}}" 2>/dev/null)}}")
    case $answers[1] in
        @files) _files ;;
        @directories) _files -/ ;;
        *) compadd -a answers ;;
    esac
}}
compdef _{function}_complete {program}
"""

FISH = """\
# fish completion of {program}: save this file as ~/.config/fish/completions/{program}.fish
function __{function}_complete
    set -l words (commandline -opc) (commandline -ct)
    for answer in ({program} completion words -- $words[2..] 2>/dev/null)
        switch $answer
            case @files
                __fish_complete_path (commandline -ct)
            case @directories
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $answer
        end
    end
end
complete -c {program} -f -a '(__{function}_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def script(shell: str, program: str) -> str:
    """The completion script for `shell` of the program called `program`."""
    return SCRIPTS[shell].format(program=program, function=program.replace("-", "_"))


def _print_script(shell: str) -> Command:
    def run(call: Invocation) -> int:
        sys.stdout.write(script(shell, call.program))
        return 0

    return Command(shell, f"Print the completion script of {shell}", run)


def _words(call: Invocation) -> int:
    from pyrunner.cli.complete import DIRECTORIES, FILES, candidates

    names = {FILES: "@files", DIRECTORIES: "@directories"}
    sys.stdout.write("".join(f"{names.get(word, word)}{os.linesep}" for word in candidates(call.arguments)))
    return 0


def _run(call: Invocation) -> int:
    raise UsageError(f"{call.program} completion: which shell?", hint=f"one of: {', '.join(SCRIPTS)}")


COMMAND = Command(
    "completion",
    "Print the completion script of a shell",
    _run,
    subcommands={
        **{shell: _print_script(shell) for shell in SCRIPTS},
        "words": Command("words", "Answer the completion scripts", _words, hidden=True, arguments="WORD…"),
    },
    description="""
        Commands, flags, their values, runner names of config.toml and job names of .gitlab-ci.yml are completed. The
        script asks the program at every TAB, so it never has to be made again.
    """,
    examples=[
        ("completion bash > ~/.local/share/bash-completion/completions/pyrunner", "install it for bash"),
        ("completion zsh > ~/.zfunc/_pyrunner", "install it for zsh (with ~/.zfunc in $fpath)"),
        ("completion fish > ~/.config/fish/completions/pyrunner.fish", "install it for fish"),
    ],
)
