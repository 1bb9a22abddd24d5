"""Typed config.toml: model, loading, editing (comments kept), linting, JSON Schema."""
