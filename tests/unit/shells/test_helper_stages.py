"""Cache and artifact stages, run for real with a runner command that records how it was called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyrunner.api.wire import Artifact, ArtifactsFile, Cache, Dependency, JobResponse, JobVariable
from pyrunner.base.errors import JobError
from pyrunner.config.cache import CacheConfig
from pyrunner.config.model import RunnerConfig
from pyrunner.shells.loader import shell
from pyrunner.testing.shell_contract import run_script, script_context

_RUNNER = """\
#!/usr/bin/env python3
import json, os, sys
with open(os.environ["CALLS"], "a") as calls:
    wanted = {k: os.environ.get(k) for k in ("CI_JOB_TOKEN", "CACHE_METADATA")}
    calls.write(json.dumps([sys.argv[1:], wanted, os.getcwd()]) + "\\n")
file = sys.argv[sys.argv.index("--file") + 1] if "--file" in sys.argv else ""
sys.exit(1 if any(word in file for word in os.environ["FAIL"].split()) else int(os.environ["CODE"]))
"""


class Helper:
    """A directory with the runner command in it."""

    def __init__(self, shell_name: str, base: Path) -> None:
        self.shell_name = shell_name
        self.base = base
        self.command = str(base / "my runner")
        Path(self.command).write_text(_RUNNER)
        Path(self.command).chmod(0o700)
        self.code = 0
        self.calls: list[list[str]] = []
        self.environments: list[dict[str, str]] = []

    def run(self, stage: str, job: JobResponse, *, fail: str = "", **changes: Any) -> tuple[int, list[str]]:
        changes.setdefault("runner_command", self.command)
        context = script_context(self.base, job=job, **changes)
        Path(context.project_dir).mkdir(parents=True, exist_ok=True)
        script = shell(self.shell_name).script(stage, context)
        assert script is not None
        record = self.base / "calls"
        env = {"CALLS": str(record), "FAIL": fail, "CODE": str(self.code)}
        result = run_script([self.shell_name], script, self.base, env)
        lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
        assert all(directory == context.project_dir for _, _, directory in lines)
        self.calls = [call for call, _, _ in lines]
        self.environments = [env for _, env, _ in lines]
        return result.returncode, result.stdout.decode().splitlines()


@pytest.fixture(params=["bash", "sh"])
def helper(request: pytest.FixtureRequest, tmp_path: Path) -> Helper:
    return Helper(request.param, tmp_path)


GREEN, YELLOW, RESET = "\x1b[32;1m", "\x1b[0;33m", "\x1b[0;m"


def test_the_first_cache_that_exists_is_extracted(helper: Helper) -> None:
    job = JobResponse(cache=[Cache(key="main", paths=["dir/"], fallback_keys=["second", "third"])])
    code, lines = helper.run("restore_cache", job, fail="/main/")
    assert code == 0
    assert lines == [
        f"{GREEN}Checking cache for main...{RESET}",
        f"{YELLOW}Failed to extract cache{RESET}",
        f"{GREEN}Checking cache for second...{RESET}",
        f"{GREEN}Successfully extracted cache{RESET}",
    ]
    up = "../../../../../cache/group/proj"
    assert helper.calls[1] == ["cache-extractor", "--file", f"{up}/second/cache.zip", "--timeout", "10"]


def test_a_missing_cache_never_fails_the_job(helper: Helper) -> None:
    job = JobResponse(cache=[Cache(key="a", paths=["dir"]), Cache(key="b", untracked=True), Cache(key="none")])
    code, lines = helper.run("restore_cache", job, fail="cache.zip")
    assert code == 0
    assert len(helper.calls) == 2
    assert lines[-1] == f"{YELLOW}Failed to extract cache{RESET}"


def test_failed_extractions_clean_up_when_asked(helper: Helper) -> None:
    job = JobResponse(cache=[Cache(key="a", paths=["some dir"])])
    inside = helper.base / "builds/abcdefghi/0/group/proj/some dir"
    inside.mkdir(parents=True)
    flags = {"FF_CLEAN_UP_FAILED_CACHE_EXTRACT": True}
    _, lines = helper.run("restore_cache", job, fail="cache.zip", flags=flags)
    assert lines[-1] == f"{RESET}Removing some dir"
    assert not inside.exists()


def test_caches_are_saved_under_their_main_key(helper: Helper) -> None:
    job = JobResponse(cache=[Cache(key="k$X", paths=["a b", "$VAR/*"], untracked=True, fallback_keys=["z"])])
    config = RunnerConfig(cache=CacheConfig(max_uploaded_archive_size=5))
    variables = [JobVariable(key="X", value="1"), JobVariable(key="CACHE_REQUEST_TIMEOUT", value="3")]
    code, lines = helper.run("archive_cache", job, config=config, variables=variables)
    assert (code, lines) == (0, [f"{GREEN}Creating cache k1...{RESET}", f"{GREEN}Created cache{RESET}"])
    (call,) = helper.calls
    assert call[:3] == ["cache-archiver", "--file", "../../../../../cache/group/proj/k1/cache.zip"]
    assert call[3] == "--alternate-file"
    assert call[5:9] == ["--timeout", "3", "--max-uploaded-archive-size", "5"]
    assert call[9:] == ["--path", "a b", "--path", "$VAR/*", "--untracked"]
    assert json.loads(helper.environments[0]["CACHE_METADATA"]) == {"cachekey": "k1"}


def test_a_cache_that_cannot_be_saved_does_not_fail_the_job(helper: Helper) -> None:
    helper.code = 1
    code, lines = helper.run("archive_cache", JobResponse(cache=[Cache(key="k", paths=["a"])]))
    assert (code, lines[-1]) == (0, f"{YELLOW}Failed to create cache{RESET}")


@pytest.mark.parametrize(
    ("stage", "policy", "line"),
    [
        ("restore_cache", "push", "Not downloading cache k due to policy"),
        ("restore_cache", "$POLICY", "Not downloading cache k due to policy"),
        ("archive_cache", "pull", "Not uploading cache k due to policy"),
    ],
)
def test_policies(helper: Helper, stage: str, policy: str, line: str) -> None:
    job = JobResponse(cache=[Cache(key="k", paths=["a"], policy=policy)])
    code, lines = helper.run(stage, job, variables=[JobVariable(key="POLICY", value="push")])
    assert (code, lines, helper.calls) == (0, [f"{GREEN}{line}{RESET}"], [])


def test_an_unknown_policy_fails_the_job(helper: Helper) -> None:
    with pytest.raises(JobError, match="unknown cache policy sometimes"):
        helper.run("restore_cache", JobResponse(cache=[Cache(key="k", paths=["a"], policy="sometimes")]))


@pytest.mark.parametrize(("key", "cache_dir"), [("..", "/cache"), ("k", "")])
def test_unusable_caches_are_told_and_skipped(helper: Helper, key: str, cache_dir: str) -> None:
    job = JobResponse(cache=[Cache(key=key, paths=["a"])])
    code, lines = helper.run("restore_cache", job, cache_dir=cache_dir)
    reason = "unset cache directory" if not cache_dir else "empty cache key"
    assert (code, lines[-1]) == (0, f"{GREEN}Skipping cache extraction due to {reason}{RESET}")


def test_only_caches_for_the_outcome_are_saved(tmp_path: Path) -> None:
    job = JobResponse(
        cache=[
            Cache(key=when or "default", paths=["a"], when=when) for when in ("", "on_success", "on_failure", "always")
        ]
    )
    context = script_context(tmp_path, job=job)
    success = shell("bash").script("archive_cache", context) or ""
    failure = shell("bash").script("archive_cache_on_failure", context) or ""
    assert [f"Creating cache {key}..." in success for key in ("default", "on_success", "on_failure", "always")] == [
        *(True, True, False, True)
    ]
    assert [f"Creating cache {key}..." in failure for key in ("default", "on_success", "on_failure", "always")] == [
        *(False, False, True, True)
    ]


@pytest.mark.parametrize(
    ("stage", "action"),
    [
        ("restore_cache", "Extracting cache"),
        ("archive_cache", "Creating cache"),
        ("download_artifacts", "Artifacts downloading"),
        ("upload_artifacts_on_success", "Uploading artifacts"),
    ],
)
def test_without_a_runner_command_the_job_goes_on(helper: Helper, stage: str, action: str) -> None:
    job = JobResponse(
        cache=[Cache(key="k", paths=["a"])],
        artifacts=[Artifact(paths=["a"])],
        dependencies=[Dependency(id=1, artifacts_file=ArtifactsFile(filename="a.zip"))],
    )
    code, lines = helper.run(stage, job, runner_command="no-such-runner")
    assert (code, lines) == (0, [f"{YELLOW}Missing no-such-runner. {action} is disabled.{RESET}"])
    code, lines = helper.run(stage, job, runner_command="")
    assert (code, lines) == (0, [f"{YELLOW}{action} is not supported by this executor.{RESET}"])


def test_artifacts_of_dependencies_come_with_their_own_tokens(helper: Helper) -> None:
    job = JobResponse(
        token="mine",
        dependencies=[
            Dependency(id=1, token="t1", name="build it", artifacts_file=ArtifactsFile(filename="a.zip")),
            Dependency(id=2, token="t2", name="nothing"),
            Dependency(id=3, token="t3", name="test", artifacts_file=ArtifactsFile(filename="b.zip")),
        ],
    )
    code, lines = helper.run("download_artifacts", job)
    assert code == 0
    assert lines == [
        f"{GREEN}Downloading artifacts for build it (1)...{RESET}",
        f"{GREEN}Downloading artifacts for test (3)...{RESET}",
    ]
    assert helper.calls[0] == ["artifacts-downloader", "--url", "http://gitlab.example.com", "--id", "1"]
    assert [env["CI_JOB_TOKEN"] for env in helper.environments] == ["t1", "t3"]


def test_a_failed_artifact_transfer_fails_the_stage(helper: Helper) -> None:
    helper.code = 1
    job = JobResponse(
        artifacts=[Artifact(paths=["a"]), Artifact(paths=["b"])],
        dependencies=[Dependency(id=1, artifacts_file=ArtifactsFile(filename="a.zip"))],
    )
    assert helper.run("download_artifacts", job)[0] == 1
    assert helper.run("upload_artifacts_on_success", job)[0] == 1


def test_uploads_pass_everything_on_and_hide_the_token(helper: Helper) -> None:
    entry = Artifact(
        name="my name $X",
        untracked=True,
        paths=["out/", "a*"],
        exclude=["out/*.o"],
        expire_in="1 week",
        artifact_format="gzip",
        artifact_type="junit",
    )
    job = JobResponse(id=7, token="glcbt-secret", artifacts=[entry, Artifact(name="empty")])
    code, lines = helper.run("upload_artifacts_on_success", job)
    assert (code, lines) == (0, [f"{GREEN}Uploading artifacts...{RESET}"])
    (call,) = helper.calls
    assert call == [
        *("artifacts-uploader", "--url", "http://gitlab.example.com", "--id", "7"),
        *("--timeout", "1h0m0s", "--response-header-timeout", "10m0s"),
        *("--path", "out/", "--path", "a*", "--exclude", "out/*.o", "--untracked"),
        *("--name", "my name $X", "--expire-in", "1 week"),
        *("--artifact-format", "gzip", "--artifact-type", "junit"),
    ]
    assert helper.environments[0]["CI_JOB_TOKEN"] == "glcbt-secret"


def test_provenance_flags_only_for_zip_and_only_on_demand(helper: Helper) -> None:
    zipped = Artifact(paths=["a"], artifact_format="zip")
    variables = [JobVariable(key="RUNNER_GENERATE_ARTIFACTS_METADATA", value="true")]
    helper.run("upload_artifacts_on_success", JobResponse(artifacts=[zipped]))
    job = JobResponse(artifacts=[zipped, Artifact(paths=["b"], artifact_format="gzip")])
    times = {"started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:01:00Z"}
    helper.run("upload_artifacts_on_success", job, variables=variables, **times)
    flagged = ["--generate-artifacts-metadata" in call for call in helper.calls]
    assert flagged == [False, True, False]
    call = helper.calls[1]
    assert call[call.index("--metadata-parameter") + 1] == "RUNNER_GENERATE_ARTIFACTS_METADATA"
    assert call[call.index("--schema-version") + 1] == "unknown"
