"""The system id and the feature flags, and the schema for editors."""

from __future__ import annotations

import json
import logging
import os
import re
import stat
from pathlib import Path

import pytest

from pyrunner.config.feature_flags import FEATURE_FLAGS, GONE, resolve
from pyrunner.config.keys import fields_of, names_of
from pyrunner.config.model import Config, RunnerConfig
from pyrunner.config.schema import config_schema
from pyrunner.config.system_id import new_system_id, system_id

PACKAGE = Path(__file__).parents[3] / "pyrunner"


def test_the_system_id_is_made_once_and_private(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = str(tmp_path / "etc" / "config.toml")
    with caplog.at_level(logging.INFO):
        first = system_id(config)
        assert system_id(config) == first
    assert re.fullmatch("[sr]_[0-9a-zA-Z]{12}", first)
    assert [record.message for record in caplog.records] == ["Created missing unique system ID"]
    file = tmp_path / "etc" / ".runner_system_id"
    assert file.read_text() == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_kept_id_may_have_a_newline_and_a_bad_one_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / ".runner_system_id"
    file.write_text("r_abcdefghijkl\n")
    assert system_id(str(tmp_path / "config.toml")) == "r_abcdefghijkl"
    file.write_bytes(b"\xff broken")
    assert system_id(str(tmp_path / "config.toml")) == file.read_text()


def test_the_id_of_a_machine_is_derived_from_its_machine_id(tmp_path: Path) -> None:
    machine = tmp_path / "machine-id"
    machine.write_text("0123456789abcdef0123456789abcdef\n")
    missing = str(tmp_path / "none")
    # HMAC-SHA256, the machine's id as key, `gitlab-runner` as message
    assert new_system_id((missing, str(machine))) == "s_ee3af03959fe"
    machine.write_text(" \n")
    random_id = new_system_id((str(machine),))
    assert random_id.startswith("r_")
    assert random_id != new_system_id((str(machine),))


def test_an_id_that_cannot_be_saved_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    assert re.fullmatch("[sr]_[0-9a-zA-Z]{12}", system_id(str(tmp_path / "file" / "config.toml")))
    assert [record.levelname for record in caplog.records if record.levelname == "WARNING"] == ["WARNING"]


def test_what_the_config_says_beats_the_job_and_the_job_beats_the_default() -> None:
    job = {"FF_TIMESTAMPS": "false", "FF_HASH_CACHE_KEYS": "1", "FF_SCRIPT_SECTIONS": "yes", "FF_CONCRETE": ""}
    states, warnings = resolve({"FF_TIMESTAMPS": True, "FF_UNKNOWN": True}, job.get)
    assert states["FF_TIMESTAMPS"] is True
    assert states["FF_HASH_CACHE_KEYS"] is True
    assert states["FF_SCRIPT_SECTIONS"] is False
    assert states.keys() == FEATURE_FLAGS.keys()
    assert warnings == ["FF_SCRIPT_SECTIONS: could not parse feature flag, expected bool, got yes"]


def test_defaults_of_the_flags() -> None:
    on = {name for name, flag in FEATURE_FLAGS.items() if flag.default}
    assert {"FF_USE_DIRECT_DOWNLOAD", "FF_TIMESTAMPS", "FF_MASK_ALL_DEFAULT_TOKENS"} <= on
    assert len(FEATURE_FLAGS) == 52
    assert not set(GONE) & set(FEATURE_FLAGS)


def test_a_flag_that_the_code_names_is_known_and_marked_as_built() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name in ("config", "testing"):
            continue
        for name in re.findall(r"[\"'](FF_[A-Z0-9_]+)[\"']", path.read_text()):
            assert FEATURE_FLAGS[name].built, f"{path.name}: {name}"


def test_the_schema_knows_every_key_and_takes_the_fresh_file() -> None:
    schema = config_schema()
    assert set(schema["properties"]) == set(names_of(Config))
    runner = schema["$defs"]["RunnerConfig"]["properties"]
    assert set(runner) == set(names_of(RunnerConfig))
    for field in fields_of(RunnerConfig):
        if field.table is not None:
            assert set(schema["$defs"][field.table.__name__]["properties"]) == set(names_of(field.table))
    assert runner["token"] == {"description": "authentication token", "type": "string", "minLength": 1}
    assert set(runner["shell"]["enum"]) == {"bash", "sh", "cmd", "pwsh", "powershell", ""}
    assert runner["feature_flags"]["properties"]["FF_TIMESTAMPS"]["default"] is True
    assert json.loads(json.dumps(schema)) == schema


def test_every_reference_of_the_schema_leads_somewhere() -> None:
    schema = config_schema()
    for name in re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema)):
        assert schema["$defs"][name]["type"] == "object"


def test_the_kept_file_is_not_left_half_written(tmp_path: Path) -> None:
    system_id(str(tmp_path / "config.toml"))
    assert os.listdir(tmp_path) == [".runner_system_id"]
