"""All commands, by name. A command's module is imported when the command is called, not before."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.spec import Command

#: name → (module below `pyrunner.cli.commands`, summary), in the order of the help screen.
COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("list", "List all configured runners"),
    "lint": ("lint", "Check a config.toml"),
    "register": ("register", "Register a new runner"),
    "reset-token": ("reset_token", "Reset a runner's authentication token"),
    "run": ("run", "Run the multi-runner service"),
    "run-single": ("run_single", "Start a single runner"),
    "unregister": ("unregister", "Unregister runners"),
    "verify": ("verify", "Verify all registered runners"),
    "config": ("config", "Show the config schema and the feature flags"),
    "exec": ("exec", "Run the pipeline of this repository here"),
    "coordinator": ("coordinator", "Serve the runner API without GitLab"),
    "docker": ("docker", "Show and remove what docker jobs have made"),
    "artifacts-downloader": ("artifacts_downloader", "Download and extract build artifacts (internal)"),
    "artifacts-uploader": ("artifacts_uploader", "Create and upload build artifacts (internal)"),
    "cache-archiver": ("cache_archiver", "Create and upload cache artifacts (internal)"),
    "cache-extractor": ("cache_extractor", "Download and extract cache artifacts (internal)"),
    "cache-init": ("cache_init", "Change permissions of cache paths (internal)"),
    "health-check": ("health_check", "Check health for a specific address (internal)"),
    "read-logs": ("read_logs", "Read job logs from a file (internal)"),
    "completion": ("completion", "Print the completion script of a shell"),
}

#: Commands of GitLab Runner that are known but not there yet: refused by name with one clear line.
NOT_YET = {
    "wrapper": "the wrapper command",
    "fleeting": "fleeting plugin management",
    "proxy-exec": "proxy-exec",
    "steps": "the step runner service",
    "install": "service installation",
    "uninstall": "service installation",
    "start": "service control",
    "stop": "service control",
    "restart": "service control",
    "status": "service control",
}

#: What the helper binary offers (facts/commands.md 2): logging there is always in the ``runner`` format.
HELPER_COMMANDS = (
    "artifacts-downloader",
    "artifacts-uploader",
    "cache-archiver",
    "cache-extractor",
    "cache-init",
    "health-check",
    "read-logs",
)


def load(name: str) -> Command:
    """Import the module of a command and return its declaration."""
    from importlib import import_module

    module = import_module(f"pyrunner.cli.commands.{COMMANDS[name][0]}")
    command: Command = module.COMMAND
    return command
