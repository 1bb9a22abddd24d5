"""JSON Schema of config.toml, for editors: from the model, so that it knows every key."""

from __future__ import annotations

from typing import Any

from pyrunner.base.durations import format_duration
from pyrunner.config.feature_flags import FEATURE_FLAGS
from pyrunner.config.keys import Field, fields_of
from pyrunner.config.model import Config
from pyrunner.config.rules import LABEL_KEY, LABEL_VALUE
from pyrunner.config.table import Table

_DURATION = r"^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"
_PLAIN: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "float": {"type": "number"},
    "duration": {"anyOf": [{"type": "string", "pattern": _DURATION}, {"type": "integer"}]},
    "datetime": {"type": "string", "format": "date-time"},
    "list": {"type": "array", "items": {"type": "string"}},
    "list-int": {"type": "array", "items": {"type": "integer"}},
    "list-float": {"type": "array", "items": {"type": "number"}},
    "map": {"type": "object", "additionalProperties": {"type": "string"}},
    "map-bool": {"type": "object", "additionalProperties": {"type": "boolean"}},
    "map-int": {"type": "object", "additionalProperties": {"type": "integer"}},
    "map-list": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
    "free": {"type": "object"},
}


def config_schema() -> dict[str, Any]:
    """The schema (draft 2020-12); tables are definitions named after their structures."""
    definitions: dict[str, Any] = {}
    root = _table(Config, definitions)
    definitions["RunnerConfig"]["properties"]["feature_flags"] = {
        **definitions["RunnerConfig"]["properties"]["feature_flags"],
        "properties": {
            flag.name: {"type": "boolean", "default": flag.default, "description": flag.description}
            for flag in FEATURE_FLAGS.values()
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "config.toml of GitLab Runner and pyrunner",
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def _table(table: type[Table], definitions: dict[str, Any]) -> dict[str, Any]:
    properties = {field.name: _key(field, table(), definitions) for field in fields_of(table)}
    return {
        "type": "object",
        "description": (table.__doc__ or "").split("\n")[0].strip(),
        "properties": properties,
        "additionalProperties": False,
    }


def _key(field: Field, defaults: Table, definitions: dict[str, Any]) -> dict[str, Any]:
    described = {"description": field.key.help}
    if field.table is not None:
        name = field.table.__name__
        if name not in definitions:
            # the name is taken before its keys are looked at: a table may hold itself
            definitions[name] = {}
            definitions[name] = _table(field.table, definitions)
        reference = {"$ref": f"#/$defs/{name}"}
        return {**described, **(reference if field.kind == "table" else {"type": "array", "items": reference})}
    return {**described, **_shape(field), **_default(field, getattr(defaults, field.attribute))}


def _shape(field: Field) -> dict[str, Any]:
    if field.kind == "policies":
        item = {"type": "string", "enum": list(field.key.choices)}
        return {"anyOf": [item, {"type": "array", "items": item}]}
    if field.name == "labels":
        return {
            "type": "object",
            "propertyNames": {"pattern": LABEL_KEY},
            "additionalProperties": {"type": "string", "pattern": LABEL_VALUE},
        }
    shape = dict(_PLAIN[field.kind])
    if field.key.choices and field.kind == "text":
        shape["enum"] = [*field.key.choices, ""]
    elif field.key.choices:
        shape["items"] = {**shape["items"], "enum": list(field.key.choices)}
    if field.name in ("url", "token"):
        shape["minLength"] = 1
    return shape


def _default(field: Field, value: Any) -> dict[str, Any]:
    if value in (None, "", [], {}):
        return {}
    return {"default": format_duration(value) if field.kind == "duration" else value}
