"""``get_sources`` and ``clear_worktree`` (facts/job-lifecycle.md section 7)."""

from __future__ import annotations

from pyrunner.base import host
from pyrunner.base.version import CLIENT_NAME, GITLAB_RUNNER_VERSION
from pyrunner.shells.protocol import ScriptContext
from pyrunner.shells.stages import credentials, git_config, submodules
from pyrunner.shells.stages.environment import boolean, exports, words
from pyrunner.shells.stages.user_script import hook
from pyrunner.shells.writer import Located, Reference, ScriptWriter, joined

DEFAULT_CLEAN_FLAGS = "-ffdx"
_LOCKS = ("index.lock", "shallow.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "hooks/post-checkout")


def get_sources(writer: ScriptWriter, context: ScriptContext) -> bool:
    """Bring the project directory to the job's commit, as the git strategy says."""
    if context.git_strategy in ("none", "empty"):
        _without_git(writer, context)
    else:
        exports(writer, context)
        _git_environment(writer, context)
        hook(writer, context, "pre_clone_script", *_hooks(context, "pre_get_sources_script"))
        _fetch(writer, context)
        _checkout(writer, context)
        submodules.update(writer, context)
        hook(writer, context, "post_clone_script", *reversed(_hooks(context, "post_get_sources_script")))
        reject_credentials(writer, context)
    return True


def _without_git(writer: ScriptWriter, context: ScriptContext) -> None:
    """No hooks, no process: the directory is all there is to do."""
    project = Located(context.project_dir)
    if context.git_strategy == "empty":
        writer.notice("Skipping Git repository setup and creating an empty build directory")
        writer.rm(project)
    else:
        writer.notice("Skipping Git repository setup")
    writer.mkdir(project)
    writer.notice("Skipping Git checkout")
    writer.notice("Skipping Git submodules setup")


def _hooks(context: ScriptContext, name: str) -> list[list[str]]:
    """The runner's hook (one text), then the job's; the latter runs closest to the user's script."""
    own: str = getattr(context.config, name)
    job = next((hook.script for hook in context.job.hooks if hook.name == name), [])
    return [[own] if own else [], job]


def _git_environment(writer: ScriptWriter, context: ScriptContext) -> None:
    writer.export("GIT_TERMINAL_PROMPT", "0")
    writer.export("GCM_INTERACTIVE", "Never")
    scope = credentials.credential_scope(context)
    if scope and not context.shared_environment:
        for key, path in git_config.tls_files(context):
            writer.command("git", "config", "--global", f"http.{scope}.{key}", path)


def _fetch(writer: ScriptWriter, context: ScriptContext) -> None:
    """Steps 2 to j: a repository whose origin has no token in it, with the job's refs fetched."""
    project = Located(context.project_dir)
    if not boolean(context, "GIT_LFS_SKIP_SMUDGE"):
        writer.export("GIT_LFS_SKIP_SMUDGE", "1")
    if context.git_strategy == "clone":
        writer.rm(project)
    remove_leftovers(writer, context)
    if context.safe_directory:
        writer.command("git", "config", "--global", "--add", "safe.directory", project)
    git_config.write_git_configs(writer, context)
    if context.git_strategy == "clone" and context.flags.get("FF_USE_GIT_NATIVE_CLONE", False):
        writer.if_output_has("--[no-]revision", "git", "clone", "-h")
        _native_clone(writer, context)
        writer.else_()
        _init_and_fetch(writer, context)
        writer.end()
    else:
        _init_and_fetch(writer, context)


def remove_leftovers(writer: ScriptWriter, context: ScriptContext) -> None:
    """Steps a and b: what a killed git left, and what a job may have planted for the next one."""
    # the template is the runner's own: a hook in it was planted, whatever `clean_git_config` says of the repository
    template = f"{context.temp_dir}/{git_config.TEMPLATE_DIR}"
    planted = [f"{template}/hooks", f"{template}/config"] if context.clean_git_config else [f"{template}/hooks"]
    git = f"{context.project_dir}/.git"
    planted += [f"{git}/{name}" for name in _LOCKS]
    if context.clean_git_config:
        planted += [f"{git}/config", f"{git}/hooks"]
        # a file in its place names a repository elsewhere
        writer.if_file(Located(git))
        writer.rm(Located(git))
        writer.end()
    writer.rm(*map(Located, planted))
    writer.rm_files_matching(Located(f"{git}/refs"), "*.lock")
    if submodules.strategy(context) != "none":
        _remove_submodule_leftovers(writer, context, Located(f"{git}/modules"))


def _remove_submodule_leftovers(writer: ScriptWriter, context: ScriptContext, modules: Located) -> None:
    names = [name.rpartition("/")[2] for name in _LOCKS]
    if context.clean_git_config:
        writer.rm_directories_matching(modules, "hooks")
        names.append("config")
    writer.rm_files_matching(modules, *names)


def user_agent() -> str:
    """How git introduces itself to the server."""
    return f"http.userAgent={CLIENT_NAME} {GITLAB_RUNNER_VERSION} {host.goos()}/{host.goarch()}"


def _init_arguments(context: ScriptContext) -> list[str | Located]:
    arguments: list[str | Located] = ["--template", Located(f"{context.temp_dir}/{git_config.TEMPLATE_DIR}")]
    object_format = context.job.git_info.repo_object_format
    if object_format not in ("", "sha1"):
        arguments += ["--object-format", object_format]
    return arguments


def _init_and_fetch(writer: ScriptWriter, context: ScriptContext) -> None:
    depth = context.job.git_info.depth
    project = Located(context.project_dir)
    suffix = f" with git depth set to {depth}" if depth > 0 else ""
    writer.notice(f"Fetching changes{suffix}...")
    writer.command("git", "init", project, *_init_arguments(context))
    writer.cd(project)
    _set_origin(writer, context)
    fetch = ["git", "-c", user_agent(), "fetch", "origin", "--no-recurse-submodules"]
    fetch += context.job.git_info.refspecs
    flags = words(context, "GIT_FETCH_EXTRA_FLAGS", "--prune --quiet")
    if depth > 0:
        writer.command(*fetch, "--depth", str(depth), *flags)
        return
    writer.if_file(".git/shallow")
    writer.command(*fetch, "--unshallow", *flags)
    writer.else_()
    writer.command(*fetch, *flags)
    writer.end()


def _set_origin(writer: ScriptWriter, context: ScriptContext) -> None:
    """Setting the URL first is one process less for a repository that is there already."""
    url = credentials.remote_url(context)
    writer.if_silent("git", "remote", "set-url", "origin", url)
    writer.command("git", "config", "--replace-all", "include.path", Reference(git_config.EXTERNAL_VARIABLE))
    writer.else_()
    writer.if_silent("git", "remote", "add", "origin", url)
    writer.notice("Created fresh repository.")
    writer.else_()
    # a remote with several URLs can be neither set nor added
    writer.command("git", "remote", "remove", "origin")
    writer.command("git", "remote", "add", "origin", url)
    writer.notice("Created fresh repository.")
    writer.end()
    writer.end()


def _native_clone(writer: ScriptWriter, context: ScriptContext) -> None:
    info = context.job.git_info
    suffix = f" with git depth set to {info.depth}" if info.depth > 0 else ""
    writer.notice(f"Cloning repository for {info.ref}{suffix}...")
    what = ["--revision", info.ref] if info.ref.startswith("refs/") else ["--branch", info.ref]
    depth = ["--depth", str(info.depth)] if info.depth > 0 else []
    project = Located(context.project_dir)
    # the template is not in force while the URL is looked up, so the rules are given here
    include = joined("include.path=", Reference(git_config.EXTERNAL_VARIABLE))
    writer.command(
        *("git", "-c", user_agent(), "-c", include, "clone", "--no-checkout"),
        *(credentials.remote_url(context), project),
        *("--template", Located(f"{context.temp_dir}/{git_config.TEMPLATE_DIR}")),
        *depth,
        *what,
        *words(context, "GIT_CLONE_EXTRA_FLAGS", "none"),
    )
    writer.cd(project)


def clean_flags(context: ScriptContext) -> list[str]:
    """Flags of ``git clean``; empty = do not clean."""
    return words(context, "GIT_CLEAN_FLAGS", DEFAULT_CLEAN_FLAGS)


def _checkout(writer: ScriptWriter, context: ScriptContext) -> None:
    info = context.job.git_info
    if not boolean(context, "GIT_CHECKOUT", default=True):
        writer.notice("Skipping Git checkout")
        return
    writer.notice(f"Checking out {info.sha[:8]} as detached HEAD (ref is {info.ref})...")
    writer.command("git", "-c", "submodule.recurse=false", "checkout", "-f", "-q", info.sha)
    flags = clean_flags(context)
    if flags:
        writer.command("git", "clean", *flags)
    if not boolean(context, "GIT_LFS_SKIP_SMUDGE"):
        writer.if_git_extension("lfs")
        writer.command("git", "lfs", "pull")
        writer.empty()
        writer.end()


def reject_credentials(writer: ScriptWriter, context: ScriptContext) -> None:
    """Make credential helpers forget the job's token (7.4), as far as there are any."""
    scope = credentials.credential_scope(context)
    if scope:
        writer.feed(f"url={scope}\nusername={credentials.USERNAME}\n", "git", "credential", "reject")


def clear_worktree(writer: ScriptWriter, context: ScriptContext) -> bool:
    """Make room before sources are fetched again."""
    exports(writer, context)
    writer.notice("Deleting tracked and untracked files...")
    writer.if_directory(Located(f"{context.project_dir}/.git"))
    writer.cd(Located(context.project_dir))
    writer.command("git", "rm", "-rf", "--ignore-unmatch", "--quiet", ".")
    writer.command("git", "clean", "-ffdx", "-q")
    writer.end()
    return True
