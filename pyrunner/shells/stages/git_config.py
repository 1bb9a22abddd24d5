"""The two git config files that pyrunner writes itself instead of starting ``git config`` for each key.

The *template* config becomes ``.git/config`` of a fresh repository and includes the *external* config. The token is in
the external one only, outside of the project directory (facts/job-lifecycle.md 7.2 c to e, 7.3).
"""

from __future__ import annotations

from collections.abc import Iterator

from pyrunner.shells.protocol import ScriptContext
from pyrunner.shells.stages import credentials
from pyrunner.shells.stages.environment import in_temp_dir
from pyrunner.shells.writer import Argument, Located, ScriptWriter

EXTERNAL_FILE = ".gitlab-runner.ext.conf"
GLOBAL_FILE = ".glr.gconf"
TEMPLATE_DIR = "git-template"
#: Exported for submodules and for the user's own scripts.
EXTERNAL_VARIABLE = "GLR_EXT_GIT_CONFIG_PATH"

_TEMPLATE = """\
[init]
\tdefaultBranch = none
[fetch]
\trecurseSubmodules = false
[credential]
\tinteractive = never
[gc]
\tautoDetach = false
[include]
\tpath = """

_TLS_KEYS = (
    ("sslCAInfo", "CI_SERVER_TLS_CA_FILE"),
    ("sslCert", "CI_SERVER_TLS_CERT_FILE"),
    ("sslKey", "CI_SERVER_TLS_KEY_FILE"),
)
#: The password comes from the environment when git asks, so it is in no file at all.
_HELPER = '!f() { [ \\"$1\\" != get ] || echo \\"password=$CI_JOB_TOKEN\\"; }; f'


def tls_files(context: ScriptContext) -> list[tuple[str, Located]]:
    """git's ``http.*`` keys and the file variables that hold their values."""
    return [(key, in_temp_dir(context, name)) for key, name in _TLS_KEYS if context.variables.get(name)]


def write_git_configs(writer: ScriptWriter, context: ScriptContext) -> None:
    """Template and external config; exports the path of the latter."""
    template = Located(f"{context.temp_dir}/{TEMPLATE_DIR}")
    external = in_temp_dir(context, EXTERNAL_FILE)
    writer.mkdir(template)
    # containers' users differ between stages and all need the file; on a shared host nobody else may read it
    writer.write_file(external, *_external(context), private=context.shared_environment)
    if _correlation(context):
        writer.notice(f"Gitaly correlation ID: {context.correlation_id}")
    writer.write_file(Located(f"{template.path}/config"), _TEMPLATE, '"', *_path(external), '"\n')
    writer.export(EXTERNAL_VARIABLE, external)
    if context.flags.get("FF_GIT_URLS_WITHOUT_TOKENS", False):
        _write_global(writer, context, external)


def _write_global(writer: ScriptWriter, context: ScriptContext, external: Located) -> None:
    """A global config that includes the user's own and ours, for git commands outside of the repository."""
    path = in_temp_dir(context, GLOBAL_FILE)
    includes = "[include]\n\tpath = ~/.config/git/config\n\tpath = ~/.gitconfig\n\tpath = "
    writer.write_file(path, includes, '"', *_path(external), '"\n')
    writer.export("GIT_CONFIG_GLOBAL", path)


def _correlation(context: ScriptContext) -> bool:
    return bool(context.correlation_id) and context.flags.get("FF_USE_GITALY_CORRELATION_ID", True)


def _external(context: ScriptContext) -> Iterator[Argument]:
    scope = credentials.credential_scope(context)
    if _correlation(context):
        header = quoted(f"X-Gitaly-Correlation-ID: {context.correlation_id}")
        yield f"[http]\n\textraHeader = {header}\n"
    if context.flags.get("FF_USE_GIT_BUNDLE_URIS", True):
        yield "[transfer]\n\tbundleURI = true\n"
    if context.flags.get("FF_USE_GIT_PROACTIVE_AUTH", False):
        yield "[http]\n\tproactiveAuth = basic\n"
    if context.shared_environment and scope:
        for key, path in tls_files(context):
            yield f'[http {quoted(scope)}]\n\t{key} = "'
            yield from _path(path)
            yield '"\n'
    if context.flags.get("FF_GIT_URLS_WITHOUT_TOKENS", False) and scope:
        yield f'[credential {quoted(scope)}]\n\tusername = {credentials.USERNAME}\n\thelper = "{_HELPER}"\n'
    for url, prefix in credentials.instead_of_rules(context):
        yield f"[url {quoted(url)}]\n\tinsteadOf = {quoted(prefix)}\n"


def _path(path: Located) -> Iterator[Argument]:
    """`path` for the inside of a quoted value."""
    yield Located(_escaped(path.path))


def quoted(text: str) -> str:
    """`text` as a quoted value or subsection of a git config file."""
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
