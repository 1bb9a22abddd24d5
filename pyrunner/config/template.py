"""``--template-config``: what flags and variables left unset comes from a template (facts/config-toml.md 4)."""

from __future__ import annotations

import copy
import os
from typing import Any, TypeVar

from pyrunner.base.errors import ConfigError
from pyrunner.config.keys import fields_of
from pyrunner.config.load import load_config
from pyrunner.config.model import RunnerConfig
from pyrunner.config.table import Table

AnyTable = TypeVar("AnyTable", bound=Table)

#: `name` is always set by the flag (its default is the host name), and a token belongs to one runner.
_NOT_TAKEN = ("name", "token")


def load_template(path: str) -> RunnerConfig:
    """The one entry of a template file.

    Raises:
        ConfigError: the file is broken or does not hold exactly one entry.
    """
    if not os.path.exists(path):
        raise ConfigError("there is no such template file", path=path)
    config = load_config(path)
    if len(config.runners) != 1:
        raise ConfigError("configuration template must contain exactly one [[runners]] entry", path=path)
    return config.runners[0]


def merge(runner: RunnerConfig, template: RunnerConfig) -> RunnerConfig:
    """`runner` completed from `template`; both stay as they are.

    A template value counts only where the runner's is zero: empty, 0, false or absent. That rule looks through
    tri-state keys and values of maps, so that ``--clean-git-config=false`` does not beat a ``true`` of the template.
    """
    merged = _merge(runner, template)
    for attribute in _NOT_TAKEN:
        setattr(merged, attribute, getattr(runner, attribute))
    return merged


def _merge(own: AnyTable, template: AnyTable) -> AnyTable:
    return type(own)(
        **{
            field.attribute: _chosen(getattr(own, field.attribute), getattr(template, field.attribute))
            for field in fields_of(type(own))
        }
    )


def _chosen(own: Any, template: Any) -> Any:
    if isinstance(own, Table) and isinstance(template, Table):
        return _merge(own, template)
    if isinstance(own, dict) and isinstance(template, dict):
        added = {key: value for key, value in template.items() if not own.get(key)}
        return {**own, **copy.deepcopy(added)}
    # a table that holds nothing is still a table of its own: only absent, zero and empty give way
    if isinstance(own, Table) or own or template is None:
        return copy.deepcopy(own)
    return copy.deepcopy(template)
