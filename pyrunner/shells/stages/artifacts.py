"""``download_artifacts`` and ``upload_artifacts_*`` (facts/cache-artifacts.md section 3).

Job tokens go to the helper in its environment: what is on a command line can be read by every user of the machine.
"""

from __future__ import annotations

from pyrunner.api.wire import Artifact
from pyrunner.base.durations import format_duration
from pyrunner.shells.protocol import ScriptContext
from pyrunner.shells.stages import credentials
from pyrunner.shells.stages.environment import boolean, exports
from pyrunner.shells.stages.runner_command import file_arguments, guarded, outcome_applies
from pyrunner.shells.writer import Located, ScriptWriter

_TOKEN = "CI_JOB_TOKEN"  # noqa: S105  # the name of a variable


def download_artifacts(writer: ScriptWriter, context: ScriptContext) -> bool:
    """Fetch and unpack the archive of each dependency that has one."""
    dependencies = [item for item in context.job.dependencies if item.artifacts_file.filename]
    if not dependencies:
        return False
    exports(writer, context)
    writer.cd(Located(context.project_dir))
    with guarded(writer, context, "Artifacts downloading") as available:
        for item in dependencies if available else ():
            writer.notice(f"Downloading artifacts for {item.name} ({item.id})...")
            writer.command(
                *(context.runner_command, "artifacts-downloader"),
                *("--url", context.config.url, "--id", str(item.id)),
                env={_TOKEN: item.token},
            )
    return True


def upload_on_success(writer: ScriptWriter, context: ScriptContext) -> bool:
    """Upload what a successful job leaves."""
    return _upload(writer, context, success=True)


def upload_on_failure(writer: ScriptWriter, context: ScriptContext) -> bool:
    """Upload what a failed job leaves."""
    return _upload(writer, context, success=False)


def _upload(writer: ScriptWriter, context: ScriptContext, *, success: bool) -> bool:
    entries = [
        (entry, files)
        for entry in context.job.artifacts
        if outcome_applies(entry.when, success=success)
        and (files := file_arguments(entry.paths, entry.exclude, entry.untracked))
    ]
    if not entries:
        return False
    exports(writer, context)
    writer.cd(Located(context.project_dir))
    with guarded(writer, context, "Uploading artifacts") as available:
        for entry, files in entries if available else ():
            writer.notice("Uploading artifacts...")
            writer.command(
                *_uploader(context),
                *_metadata(context, entry),
                *files,
                *_description(entry),
                env={_TOKEN: context.job.token},
            )
    return True


def _uploader(context: ScriptContext) -> list[str]:
    limits = context.config.artifact
    return [
        *(context.runner_command, "artifacts-uploader"),
        *("--url", context.config.url, "--id", str(context.job.id)),
        *("--timeout", format_duration(limits.effective_upload_timeout)),
        *("--response-header-timeout", format_duration(limits.effective_response_header_timeout)),
    ]


def _description(entry: Artifact) -> list[str]:
    flags = {
        "--name": entry.name,
        "--expire-in": entry.expire_in,
        "--artifact-format": entry.artifact_format,
        "--artifact-type": entry.artifact_type,
    }
    return [word for flag, value in flags.items() if value for word in (flag, value)]


def _metadata(context: ScriptContext, entry: Artifact) -> list[str]:
    """Flags for the provenance statement (facts/cache-artifacts.md 3.2), for zip archives that ask for it."""
    if entry.artifact_format != "zip" or not boolean(context, "RUNNER_GENERATE_ARTIFACTS_METADATA"):
        return []
    flags = {
        "--runner-id": context.variables.get("CI_RUNNER_ID"),
        "--repo-url": credentials.without_credentials(context.job.git_info.repo_url).removesuffix(".git"),
        "--repo-digest": context.job.git_info.sha,
        "--job-name": context.job.job_info.name,
        "--executor-name": context.executor,
        "--runner-name": context.runner_name,
        "--started-at": context.started_at,
        "--ended-at": context.ended_at,
        "--schema-version": context.variables.get("SLSA_PROVENANCE_SCHEMA_VERSION") or "unknown",
    }
    arguments = [word for flag, value in flags.items() for word in (flag, value)]
    names = [variable.key for variable in context.variables.last()]
    parameters = [word for name in names for word in ("--metadata-parameter", name)]
    return ["--generate-artifacts-metadata", *arguments, *parameters]
