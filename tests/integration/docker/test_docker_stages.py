"""Single stages in build and helper containers, and what can happen to them (facts/executors.md 6.4)."""

from __future__ import annotations

import threading
import time

import pytest

from pyrunner.api.wire import Image
from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobCanceled, JobError, JobFailure
from pyrunner.executors.docker.labels import ObjectType
from pyrunner.testing.docker_scope import DockerScope
from pyrunner.testing.docker_stage import DockerStages


def test_two_containers_serve_all_stages(scope: DockerScope) -> None:
    with DockerStages(scope) as job:
        for _ in range(3):
            assert job.run("echo build\n") == "build\n"
            assert job.run("echo helper\n", helper=True) == "helper\n"
        assert len(scope.belongings(job.engine).containers) == 2


def test_files_stay_between_stages_and_are_shared_on_volumes(scope: DockerScope) -> None:
    with DockerStages(scope) as job:
        job.run("echo of-helper > /builds/file; umask; touch /only-helper\n", helper=True)
        assert (
            job.run("cat /builds/file; echo more >> /builds/file; ls /only-helper 2>/dev/null || :\n") == "of-helper\n"
        )
        assert job.run("ls /only-helper\n", helper=True) == "/only-helper\n"


def test_helper_works_without_umask_so_that_every_user_may_write(scope: DockerScope) -> None:
    with DockerStages(scope, image=Image(name=scope.images.build, executor_opts={"docker": {"user": "tester"}})) as job:
        job.run("mkdir -p /builds/group/project && echo x > /builds/group/project/file\n", helper=True)
        assert (
            job.run("id -un; echo y >> /builds/group/project/file; cat /builds/group/project/file\n")
            == "tester\nx\ny\n"
        )


@pytest.mark.parametrize("helper", [False, True])
def test_stdout_and_stderr_stay_in_order(scope: DockerScope, helper: bool) -> None:
    lines = "".join(f"echo {n}; echo {n}e >&2\n" for n in range(50))
    with DockerStages(scope) as job:
        assert job.run(lines, helper=helper).split() == [f"{n}{s}" for n in range(50) for s in ("", "e")]


@pytest.mark.parametrize("helper", [False, True])
def test_script_larger_than_a_pipe(scope: DockerScope, helper: bool) -> None:
    with DockerStages(scope) as job:
        script = f"eval 'x={'a' * 3_000_000}; echo ${{#x}}' </dev/null; exit $?\n"
        assert job.run(script, helper=helper) == "3000000\n"


@pytest.mark.parametrize("helper", [False, True])
def test_script_that_closes_its_output_runs_to_its_end(scope: DockerScope, helper: bool) -> None:
    with DockerStages(scope) as job, pytest.raises(JobFailure) as caught:
        job.run("exec >&- 2>&-; sleep 0.5; exit 9\n", helper=helper)
    assert caught.value.job_exit_code == 9


def test_background_process_in_the_helper_does_not_hold_its_stage(scope: DockerScope) -> None:
    with DockerStages(scope) as job:
        begin = time.monotonic()
        assert "done" in job.run("sleep 1000 & echo done\n", helper=True)
        assert time.monotonic() - begin < 20


def test_kill_for_lack_of_memory_is_named(scope: DockerScope) -> None:
    with DockerStages(scope, memory="32m", memory_swap="32m", helper_image=scope.images.build) as job:
        with pytest.raises(JobFailure) as caught:
            job.run("x=0123456789abcdef; while :; do x=$x$x; done\n")
        assert caught.value.job_exit_code == 137
        assert str(caught.value) == "exit code 137: a process was killed for lack of memory"


def test_removed_build_container_is_made_again_as_often_as_allowed(scope: DockerScope) -> None:
    with DockerStages(scope, variables={"EXECUTOR_JOB_SECTION_ATTEMPTS": "2"}) as job:
        job.run("true\n")
        gone = job.container(ObjectType.BUILD)
        job.engine.remove_container(gone.id)
        assert "again" in job.run("echo again\n")
        assert f'Container "{gone.id}" not found or removed. Will retry...' in job.trace.text
        assert "Retrying step_script" in job.trace.text


def test_removed_helper_container_ends_the_job_without_further_attempts(scope: DockerScope) -> None:
    with DockerStages(scope) as job:
        job.run("true\n", helper=True)
        job.engine.remove_container(job.container(ObjectType.HELPER).id)
        with pytest.raises(JobError, match="Execution attempts exceeded"):
            job.run("true\n", helper=True)


def test_container_removed_in_the_middle_of_a_stage_is_no_success(scope: DockerScope) -> None:
    with DockerStages(scope) as job:
        remover = threading.Thread(
            target=lambda: (
                job.trace.wait_for("running"),
                job.engine.remove_container(job.container(ObjectType.BUILD).id),
            )
        )
        remover.start()
        with pytest.raises(JobError):
            job.run("echo running; sleep 100\n")
        remover.join()


@pytest.mark.parametrize("helper", [False, True])
def test_cancel_reaches_processes_of_the_script(scope: DockerScope, helper: bool) -> None:
    script = "trap 'echo got it; exit 1' TERM\necho ready\nwhile :; do sleep 0.1; done\n"
    with DockerStages(scope) as job:
        token = CancelToken()
        canceller = threading.Thread(target=lambda: (job.trace.wait_for("ready"), token.cancel(JobCanceled())))
        canceller.start()
        with pytest.raises(JobCanceled):
            job.run(f"sh -c '{script.replace(chr(39), chr(34))}'\n", helper=helper, token=token)
        canceller.join()
        assert "got it" in job.trace.text
        # what comes next finds a clean place
        assert "next" in job.run("echo next\n", helper=helper)


def test_helper_stage_that_ignores_every_signal_is_ended_with_its_container(scope: DockerScope) -> None:
    with DockerStages(scope) as job:
        token = CancelToken()
        canceller = threading.Thread(target=lambda: (job.trace.wait_for("ready"), token.cancel(JobCanceled())))
        canceller.start()
        with pytest.raises(JobCanceled):
            job.run("trap '' TERM; echo ready; while :; do sleep 0.2; done\n", helper=True, token=token)
        canceller.join()


def test_entrypoint_of_the_job_gets_the_shell_as_arguments(scope: DockerScope) -> None:
    entrypoint = ["sh", "-c", 'echo from the entrypoint; exec "$@"', "entry"]
    with DockerStages(scope, image=Image(name=scope.images.build, entrypoint=entrypoint)) as job:
        assert job.run("echo script\n") == "from the entrypoint\nscript\n"


def test_entrypoint_without_a_shell_is_an_error_and_no_success(scope: DockerScope) -> None:
    with DockerStages(scope, image=Image(name=scope.images.build, entrypoint=["/no/such/program"])) as job:
        with pytest.raises(JobError) as caught:
            job.run("echo script\n")
        assert "/no/such/program" in str(caught.value)


def test_image_that_is_not_there_is_an_error_of_the_configuration(scope: DockerScope) -> None:
    job = DockerStages(scope, image=Image(name="pyrunner-test/none:1"))
    try:
        with pytest.raises(JobError) as caught:
            job.prepare()
        assert caught.value.reason == "runner_configuration_error"
    finally:
        job.executor.cleanup()


def test_helper_image_that_cannot_start_is_told(scope: DockerScope) -> None:
    with DockerStages(scope, helper_image=scope.images.build) as job, pytest.raises(JobError) as caught:
        job.run("true\n", helper=True)
    assert "gitlab-runner-build" in str(caught.value)
