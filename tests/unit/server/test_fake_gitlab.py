"""The fake GitLab: what runners see of it, and its faults."""

from __future__ import annotations

import base64
import gzip
import http.client
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrunner.testing import faults
from pyrunner.testing.api_caller import FEATURES, Caller
from pyrunner.testing.fake_gitlab import FakeGitLab
from pyrunner.testing.git_repository import GitRepository
from pyrunner.testing.job_payload import job_payload


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    with FakeGitLab() as fake:
        yield fake


@pytest.fixture
def call(gitlab: FakeGitLab) -> Iterator[Caller]:
    caller = Caller(gitlab.url)
    yield caller
    caller.connection.close()


def test_a_job_from_queue_to_verdict(gitlab: FakeGitLab, call: Caller) -> None:
    token = gitlab.add_runner("r")
    job_id = gitlab.submit(job_payload(["true"]))
    assert gitlab.job(job_id).state == "pending"
    job = call.take(token)
    assert job["id"] == job_id
    assert {v["key"]: v["value"] for v in job["variables"]}["CI_JOB_TOKEN"] == job["token"]
    assert gitlab.job(job_id).state == "reserved"
    assert call("PUT", f"jobs/{job_id}", {"token": job["token"], "state": "running"})[0] == 200
    trace = b"hello\n"
    status, headers, _ = call(
        "PATCH",
        f"jobs/{job_id}/trace",
        trace,
        {"JOB-TOKEN": job["token"], "Content-Range": f"0-{len(trace) - 1}"},
    )
    assert (status, headers["range"], headers["job-status"]) == (202, f"0-{len(trace)}", "running")
    output = {"checksum": f"crc32:{zlib.crc32(trace):08x}", "bytesize": len(trace)}
    final = {"token": job["token"], "state": "failed", "output": output, "exit_code": 3}
    status, headers, body = call("PUT", f"jobs/{job_id}", final)
    assert (status, headers["job-status"], body) == (200, "failed", b"200")
    done = gitlab.wait_for(job_id, "failed")
    assert done.trace == trace
    assert done.trace_matches is True
    assert done.verdict is not None
    assert done.verdict.exit_code == 3
    assert (done.verdicts, done.final_updates) == (1, 1)
    assert done.states == ["reserved", "running", "failed"]


def test_a_dict_goes_out_with_its_mistakes(gitlab: FakeGitLab, call: Caller) -> None:
    token = gitlab.add_runner()
    gitlab.submit({"id": 77, "token": "mine", "variables": "nonsense", "brand_new": 1})
    job = call.take(token)
    assert job == {"id": 77, "token": "mine", "variables": "nonsense", "brand_new": 1}


def test_bytes_that_are_no_json_go_out(gitlab: FakeGitLab, call: Caller) -> None:
    token = gitlab.add_runner()
    gitlab.submit_raw(b'{"id": 5, "token"', job_id=5)
    status, _, body = call("POST", "jobs/request", {"token": token, "info": {}})
    assert (status, body) == (201, b'{"id": 5, "token"')


def test_status_faults_strike_as_often_as_told(gitlab: FakeGitLab, call: Caller) -> None:
    token = gitlab.add_runner()
    hit = gitlab.inject("POST", "/jobs/request", faults.status(429, {"Retry-After": "1"}), times=2, skip=1)
    seen = [call("POST", "jobs/request", {"token": token, "info": {}}) for _ in range(4)]
    assert [status for status, _, _ in seen] == [204, 429, 429, 204]
    assert seen[1][1]["retry-after"] == "1"
    assert hit.count == 2
    assert [request.status for request in gitlab.requests] == [204, 429, 429, 204]
    assert gitlab.requests[0].json["token"] == token


@pytest.mark.parametrize("fault", [faults.drop(), faults.drop(handled=True), faults.cut(), faults.cut_request()])
def test_broken_connections(gitlab: FakeGitLab, fault: faults.Fault) -> None:
    token = gitlab.add_runner()
    job_id = gitlab.submit(job_payload())
    gitlab.inject("POST", "/jobs/request", fault)
    caller = Caller(gitlab.url)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        caller("POST", "jobs/request", {"token": token, "info": {"features": FEATURES}})
    caller.connection.close()
    assert gitlab.job(job_id).state == ("reserved" if fault.handled else "pending")


def test_an_answer_after_the_clients_patience_took_effect(gitlab: FakeGitLab) -> None:
    token = gitlab.add_runner()
    job_id = gitlab.submit(job_payload())
    gitlab.inject("POST", "/jobs/request", faults.slow(30, handled=True))
    caller = Caller(gitlab.url, timeout=0.2)
    with pytest.raises(TimeoutError):
        caller("POST", "jobs/request", {"token": token, "info": {"features": FEATURES}})
    caller.connection.close()
    gitlab.wait_for(job_id, "reserved")


def test_server_that_was_down_goes_on_where_it_was(gitlab: FakeGitLab) -> None:
    token = gitlab.add_runner("r")
    job_id = gitlab.submit(job_payload(["true"]))
    first = Caller(gitlab.url)
    job = first.take(token)
    assert first("PUT", f"jobs/{job_id}", {"token": job["token"], "state": "running"})[0] == 200
    for _ in range(2):
        gitlab.go_down()
        later_id = gitlab.submit(job_payload(["true"]))
        with pytest.raises(OSError, match="refused"):
            Caller(gitlab.url)("GET", "version")
        gitlab.come_back()
    second = Caller(gitlab.url)
    assert second("PUT", f"jobs/{job_id}", {"token": job["token"], "state": "success"})[0] == 200
    assert gitlab.job(job_id).states == ["reserved", "running", "success"]
    assert second.take(token)["id"] != job_id
    assert second.take(token)["id"] == later_id
    first.connection.close()
    second.connection.close()


def test_stopping_does_not_wait_for_slow_answers() -> None:
    with FakeGitLab() as gitlab:
        gitlab.inject("GET", "/", faults.slow(60))
        caller = Caller(gitlab.url)
        errors: list[BaseException] = []

        def ask() -> None:
            try:
                caller("GET", "anything")
            except (OSError, http.client.HTTPException) as error:
                errors.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        gitlab.wait_for_requests("GET", "/anything")
        began = time.monotonic()
    assert time.monotonic() - began < 1
    thread.join()
    caller.connection.close()


@pytest.mark.parametrize(("packed", "chunked"), [(False, False), (True, False), (True, True)])
def test_git_takes_packed_and_chunked_requests(tmp_path: Path, packed: bool, chunked: bool) -> None:
    repository = GitRepository(tmp_path)
    with FakeGitLab(git_root=repository.root) as gitlab, Caller(gitlab.url) as caller:
        gitlab.submit(job_payload())
        job = caller.take(gitlab.add_runner())
        password = base64.b64encode(f"gitlab-ci-token:{job['token']}".encode()).decode()
        want = f"0032want {repository.sha}\n00000009done\n".encode()
        body = gzip.compress(want) if packed else want
        headers = {
            "Authorization": f"Basic {password}",
            "Content-Type": "application/x-git-upload-pack-request",
            **({"Content-Encoding": "gzip"} if packed else {}),
        }
        content = iter([body[:10], body[10:]]) if chunked else body
        path = "/group/project.git/git-upload-pack"
        caller.connection.request("POST", path, content, headers)
        answer = caller.connection.getresponse()
        assert answer.status == 200
        assert b"PACK" in answer.read()
        for outside in ("/../../etc.git/info/refs", "/group/%2e%2e/%2e%2e/x.git/info/refs", "/no/such.git/info/refs"):
            caller.connection.request("GET", outside + "?service=git-upload-pack", None, headers)
            answer = caller.connection.getresponse()
            answer.read()
            assert answer.status == 404


def test_git_is_served_to_running_jobs_only(gitlab: FakeGitLab, tmp_path: Any) -> None:
    repository = GitRepository(tmp_path, files={"a.txt": "one\n"})
    repository.commit({"b.txt": "two\n" * 10000})
    with FakeGitLab(git_root=repository.root) as served:
        token = served.add_runner()
        job_id = served.submit(job_payload(git_info=repository.git_info(served.url)))
        caller = Caller(served.url)
        job = caller.take(token)
        url = job["git_info"]["repo_url"]
        subprocess.run(["git", "clone", "--quiet", "--depth=1", url, tmp_path / "clone"], check=True)
        assert (tmp_path / "clone" / "b.txt").read_text() == "two\n" * 10000
        fetch_any = ["git", "-C", tmp_path / "clone", "fetch", "--quiet", "origin", repository.first_sha]
        subprocess.run(fetch_any, check=True)
        pushed = subprocess.run(
            ["git", "-C", tmp_path / "clone", "push", "origin", "HEAD:x"], capture_output=True, check=False
        )
        assert pushed.returncode != 0
        caller("PUT", f"jobs/{job_id}", {"token": job["token"], "state": "success"})
        caller.connection.close()
        refused = subprocess.run(
            ["git", "-c", "core.askPass=true", "ls-remote", url],
            capture_output=True,
            check=False,
            env={"GIT_TERMINAL_PROMPT": "0", "PATH": "/usr/bin:/bin"},
        )
        assert refused.returncode != 0


@pytest.mark.parametrize("version", ["0", "1", "2"])
def test_git_speaks_all_protocol_versions(tmp_path: Path, version: str) -> None:
    repository = GitRepository(tmp_path)
    with FakeGitLab(git_root=repository.root) as gitlab, Caller(gitlab.url) as caller:
        gitlab.submit(job_payload(git_info=repository.git_info(gitlab.url)))
        url = caller.take(gitlab.add_runner())["git_info"]["repo_url"]
        git = ["git", "-c", f"protocol.version={version}"]
        listed = subprocess.run([*git, "ls-remote", url, "refs/heads/*"], check=True, capture_output=True, text=True)
        assert listed.stdout.split()[0] == repository.sha
        # what is remembered must not outlive a change
        sha = repository.commit({"new.txt": "new\n"})
        subprocess.run([*git, "clone", "--quiet", url, tmp_path / "clone"], check=True)
        found = subprocess.run(["git", "-C", tmp_path / "clone", "rev-parse", "HEAD"], check=True, capture_output=True)
        assert found.stdout.decode().strip() == sha


def test_git_refuses_what_is_no_request_for_a_pack(tmp_path: Path) -> None:
    repository = GitRepository(tmp_path)
    with FakeGitLab(git_root=repository.root) as gitlab, Caller(gitlab.url) as caller:
        gitlab.submit(job_payload())
        job = caller.take(gitlab.add_runner())
        password = base64.b64encode(f"gitlab-ci-token:{job['token']}".encode()).decode()
        basic = {"Authorization": f"Basic {password}"}
        packed = {**basic, "Content-Type": "application/x-git-upload-pack-request", "Content-Encoding": "gzip"}
        for method, path, headers, status in (
            ("GET", "info/refs", basic, 403),
            ("GET", "info/refs?service=git-receive-pack", basic, 403),
            ("POST", "git-receive-pack", basic, 403),
            ("POST", "git-upload-pack", basic, 415),
            ("POST", "git-upload-pack", packed, 200),
        ):
            caller.connection.request(method, f"/group/project.git/{path}", b"damaged", headers)
            answer = caller.connection.getresponse()
            assert (answer.status, b"PACK" in answer.read()) == (status, False)
