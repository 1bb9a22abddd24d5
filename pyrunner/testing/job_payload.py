"""Job payloads for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyrunner.server.queue_source import ID_PLACEHOLDER, TOKEN_PLACEHOLDER


def job_payload(
    script: Iterable[str] = ("echo hello",),
    *,
    variables: Mapping[str, str] | None = None,
    git_info: Mapping[str, Any] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """A payload as GitLab sends it for a job with this script; `fields` replace or add top-level keys.

    Without `git_info` the job has git strategy ``none``.
    """
    own = {
        "CI": "true",
        "CI_JOB_ID": ID_PLACEHOLDER,
        "CI_JOB_TOKEN": TOKEN_PLACEHOLDER,
        "CI_PROJECT_DIR_NAME": "project",
        **({} if git_info else {"GIT_STRATEGY": "none"}),
        **(variables or {}),
    }
    return {
        "allow_git_fetch": True,
        "job_info": {
            "name": "job",
            "stage": "test",
            "project_id": 1,
            "project_name": "project",
            "project_full_path": "group/project",
        },
        "git_info": dict(git_info or {"repo_url": "http://gitlab.invalid/group/project.git", "sha": "0" * 40}),
        "runner_info": {"timeout": 3600},
        "variables": [
            {"key": key, "value": value, "public": True, "masked": False, "file": False, "raw": False}
            for key, value in own.items()
        ],
        "steps": [
            {
                "name": "script",
                "script": list(script),
                "timeout": 3600,
                "when": "on_success",
                "allow_failure": False,
            }
        ],
        "image": None,
        "services": [],
        "artifacts": None,
        "cache": [],
        "credentials": [],
        "dependencies": [],
        "features": {"trace_sections": True, "token_mask_prefixes": ["glpat-"], "failure_reasons": ["script_failure"]},
        **fields,
    }
