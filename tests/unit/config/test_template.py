"""``--template-config`` and what an executor's new entry holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrunner.base.errors import ConfigError
from pyrunner.config.model import (
    Config,
    DockerConfig,
    KubernetesConfig,
    MachineConfig,
    Referees,
    RunnerConfig,
    ServiceConfig,
    SshConfig,
)
from pyrunner.config.save import config_text
from pyrunner.config.sections import fit_to_executor
from pyrunner.config.template import load_template, merge


def test_the_template_fills_only_what_is_unset() -> None:
    given = RunnerConfig(name="host", token="mine", limit=2, environment=["A=1"], clean_git_config=False)
    given.feature_flags = {"FF_A": False, "FF_B": True}
    template = RunnerConfig(
        name="other",
        token="theirs",
        limit=9,
        output_limit=5,
        environment=["B=2"],
        clean_git_config=True,
        safe_directory_checkout=False,
        feature_flags={"FF_A": True, "FF_B": False, "FF_C": True},
        docker=DockerConfig(image="alpine", services=[ServiceConfig(name="redis")]),
    )
    merged = merge(given, template)
    assert (merged.name, merged.token, merged.limit, merged.output_limit) == ("host", "mine", 2, 5)
    assert merged.environment == ["A=1"]
    # a template's true cannot be turned off from the command line: GitLab Runner's rule
    assert merged.clean_git_config is True
    assert merged.safe_directory_checkout is False
    assert merged.feature_flags == {"FF_A": True, "FF_B": True, "FF_C": True}
    assert merged.docker == template.docker
    assert merged.docker is not template.docker


def test_tables_merge_key_by_key() -> None:
    given = RunnerConfig(docker=DockerConfig(image="mine", volumes=["/a"]))
    given.cache.type = "s3"
    template = RunnerConfig(docker=DockerConfig(image="theirs", privileged=True, volumes=["/b"]))
    template.cache.s3.bucket_name = "b"
    merged = merge(given, template)
    assert merged.docker == DockerConfig(image="mine", privileged=True, volumes=["/a"])
    assert (merged.cache.type, merged.cache.s3.bucket_name) == ("s3", "b")
    assert given.docker == DockerConfig(image="mine", volumes=["/a"])


def test_merging_an_empty_template_changes_nothing() -> None:
    runner = RunnerConfig(name="a", token="t", clean_git_config=False, kubernetes=KubernetesConfig(image="x"))
    assert merge(runner, RunnerConfig()) == runner


@pytest.mark.parametrize("count", [0, 2])
def test_a_template_has_exactly_one_entry(tmp_path: Path, count: int) -> None:
    path = tmp_path / "template.toml"
    path.write_text(config_text(Config(runners=[RunnerConfig()] * count)))
    with pytest.raises(ConfigError, match="configuration template must contain exactly one"):
        load_template(str(path))


def test_a_template_is_read_with_all_checks(tmp_path: Path) -> None:
    path = tmp_path / "template.toml"
    path.write_text("[[runners]]\n[runners.labels]\na = 'x'\n")
    with pytest.raises(ConfigError, match="invalid label key"):
        load_template(str(path))


def test_tables_of_other_executors_are_dropped() -> None:
    runner = RunnerConfig(executor="shell", docker=DockerConfig(), ssh=SshConfig(), referees=Referees())
    fit_to_executor(runner)
    assert runner == RunnerConfig(executor="shell")


@pytest.mark.parametrize(
    ("executor", "tables"),
    [
        ("docker", {"docker"}),
        ("docker+machine", {"docker", "machine"}),
        ("docker-autoscaler", {"docker"}),
        ("kubernetes", {"kubernetes"}),
        ("ssh", {"ssh"}),
        ("parallels", {"ssh", "parallels"}),
        ("virtualbox", {"ssh", "virtualbox"}),
        ("custom", {"custom"}),
        ("instance", set()),
    ],
)
def test_tables_of_a_new_entry(executor: str, tables: set[str]) -> None:
    runner = RunnerConfig(executor=executor)
    fit_to_executor(runner)
    every = {"docker", "machine", "kubernetes", "ssh", "parallels", "virtualbox", "custom", "autoscaler", "instance"}
    assert {name for name in every if getattr(runner, name) is not None} == tables


@pytest.mark.parametrize(
    ("executor", "before", "after"),
    [
        ("docker", [], ["/cache"]),
        ("docker", ["/data:/cache"], ["/data:/cache"]),
        ("docker", ["/cache"], ["/cache"]),
        ("docker", ["/a"], ["/a", "/cache"]),
        ("docker-windows", [], ["c:\\cache"]),
    ],
)
def test_docker_gets_a_cache_volume(executor: str, before: list[str], after: list[str]) -> None:
    runner = RunnerConfig(executor=executor, docker=DockerConfig(volumes=list(before)))
    fit_to_executor(runner)
    assert runner.docker is not None
    assert runner.docker.volumes == after


def test_a_docker_without_cache_gets_no_volume() -> None:
    runner = RunnerConfig(executor="docker", docker=DockerConfig(disable_cache=True))
    fit_to_executor(runner)
    assert runner.docker == DockerConfig(disable_cache=True)


def test_machine_numbers_are_written() -> None:
    runner = RunnerConfig(executor="docker+machine")
    fit_to_executor(runner)
    assert runner.machine == MachineConfig()
    text = config_text(Config(runners=[runner]))
    assert "    IdleCount = 0\n    IdleScaleFactor = 0.0\n    IdleCountMin = 0\n" in text
    assert '    MachineDriver = ""\n    MachineName = ""\n' in text


def test_a_template_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such template file"):
        load_template(str(tmp_path / "nowhere.toml"))
