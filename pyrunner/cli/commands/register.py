"""``register``: make a runner known to a server and add it to config.toml (facts/commands.md 5)."""

from __future__ import annotations

import logging

from pyrunner.base.errors import PyrunnerError, UsageError
from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation
    from pyrunner.cli.registration.flow import Registration
    from pyrunner.config.model import Config, RunnerConfig

log = logging.getLogger(__name__)

_ACCESS_LEVELS = ("", "not_protected", "ref_protected")


def flags() -> list[Flag]:
    """The command's own flags, then one for every key of ``[[runners]]``."""
    from pyrunner.cli.runner_flags import runner_flags

    return [*_OWN_FLAGS, *runner_flags()]


def run(call: Invocation) -> int:
    """Register; nothing is saved, and nothing stays at the server, unless every step succeeded."""
    from pyrunner.cli.notice import runtime_platform, user_mode
    from pyrunner.cli.signals import as_interrupts
    from pyrunner.config.load import default_config_path, load_config

    runtime_platform()
    user_mode(hint=True)
    if call.text("access-level") not in _ACCESS_LEVELS:
        raise UsageError(
            "Given access-level is not valid. Refer to gitlab-runner register -h for the correct options.",
            hint=f"one of: {', '.join(_ACCESS_LEVELS[1:])}",
        )
    config = load_config(call.text("config") or default_config_path())
    registration = _prepare(call, config)
    try:
        with as_interrupts():
            registration.run()
            _complete(registration)
    except BaseException as error:
        # panics, end of input, Ctrl-C, a closed terminal, a file that cannot be written: the server must not keep a
        # runner nobody has
        if not call.flag("leave-runner"):
            registration.take_back()
        if isinstance(error, KeyboardInterrupt):
            raise PyrunnerError(f"RECEIVED SIGNAL: {str(error) or 'interrupt'}") from None
        raise
    log.info(
        "Runner registered successfully. "
        "Feel free to start it, but if it's running already the config should be automatically reloaded!\n"
    )
    log.info('Configuration (with the authentication token) was saved in "%s"', config.path)
    return 0


def _prepare(call: Invocation, config: Config) -> Registration:
    from pyrunner.cli.registration.flow import Registration, ServerOptions
    from pyrunner.cli.registration.prompts import Prompter
    from pyrunner.cli.runner_flags import apply_flags

    runner = apply_flags(call)
    if template := call.text("template-config"):
        runner = _merged(runner, template)
    prompter = Prompter(interactive=not call.flag("non-interactive"))
    if not prompter.interactive:
        from pyrunner.cli.registration.executor import check_executor

        # known to fail later: fail before the server is asked
        check_executor(runner.executor.strip())
    return Registration(
        runner=runner,
        config=config,
        prompter=prompter,
        options=ServerOptions(
            tag_list=call.text("tag-list"),
            run_untagged=call.flag("run-untagged"),
            locked=call.flag("locked"),
            access_level=call.text("access-level"),
            maximum_timeout=call.number("maximum-timeout"),
            paused=call.flag("paused"),
            maintenance_note=call.text("maintenance-note"),
        ),
        registration_token=call.text("registration-token"),
    )


def _merged(runner: RunnerConfig, path: str) -> RunnerConfig:
    from pyrunner.base.errors import ConfigError
    from pyrunner.config.template import load_template, merge

    log.info('Merging configuration from template file "%s"', path)
    try:
        return merge(runner, load_template(path))
    except ConfigError as error:
        raise PyrunnerError(
            f"Could not handle configuration merging from template file: {error}", hint=error.hint
        ) from None


def _complete(registration: Registration) -> None:
    from pyrunner.cli.registration.executor import choose_executor
    from pyrunner.config.edit import edit_config

    runner, config = registration.runner, registration.config
    choose_executor(runner, registration.prompter)
    for what, value in (("job concurrency", runner.limit), ("request concurrency", runner.request_concurrency)):
        if value > config.concurrent:
            log.warning(
                "The specified runner %s limit (%d) is larger than current global concurrency limit (%d). "
                "The global concurrent limit will not be increased and takes precedence.",
                what,
                value,
                config.concurrent,
            )
    with edit_config(config.path) as editor:
        editor.append_runner(runner)
    # saved: from here on nothing may take it back
    registration.done = False


_OWN_FLAGS = (
    Flag("config", help="config file", env=["CONFIG_FILE"], aliases=["c"], metavar="FILE", complete="file"),
    Flag(
        "template-config",
        help="take what is not given here from the one runner of this file",
        env=["TEMPLATE_CONFIG_FILE"],
        metavar="FILE",
        complete="file",
    ),
    Flag("tag-list", help="comma-separated tags", env=["RUNNER_TAG_LIST"], metavar="A,B"),
    Flag("non-interactive", "bool", "never ask", env=["REGISTER_NON_INTERACTIVE"], aliases=["n"]),
    Flag(
        "leave-runner",
        "bool",
        "do not remove the runner from the server when a later step fails",
        env=["REGISTER_LEAVE_RUNNER"],
    ),
    Flag(
        "registration-token",
        help="registration token (deprecated by GitLab; see --token)",
        env=["REGISTRATION_TOKEN"],
        aliases=["r"],
        metavar="TOKEN",
    ),
    Flag("run-untagged", "bool", "also take jobs without tags", env=["REGISTER_RUN_UNTAGGED"]),
    Flag("locked", "bool", "lock the runner to its project", env=["REGISTER_LOCKED"], default=True),
    Flag(
        "access-level",
        help="which refs the runner serves",
        env=["REGISTER_ACCESS_LEVEL"],
        choices=_ACCESS_LEVELS[1:],
    ),
    Flag("maximum-timeout", "int", "longest job in seconds", env=["REGISTER_MAXIMUM_TIMEOUT"], metavar="SECONDS"),
    Flag("paused", "bool", "start paused", env=["REGISTER_PAUSED"]),
    Flag("maintenance-note", help="note for administrators", env=["REGISTER_MAINTENANCE_NOTE"]),
)

COMMAND = Command(
    "register",
    "Register a new runner",
    run,
    flags=flags,
    description=(
        "Makes a runner known to a GitLab server and adds it to the config file, whose other content is left as it is. "
        "With --token glrt-… (made in GitLab's UI or API) the runner is verified; with --registration-token it is "
        "created. Whatever is not given by flags, variables or --template-config is asked for, unless "
        "--non-interactive. When a step fails, the runner is removed from the server again, unless --leave-runner."
    ),
    examples=[
        ("pyrunner register", "ask for everything"),
        (
            "pyrunner register --non-interactive --url https://gitlab.example.com --token glrt-… --executor shell",
            "for scripts",
        ),
    ],
)
