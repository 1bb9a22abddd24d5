"""``.runner_system_id`` beside config.toml: which machine a runner entry runs on (facts/config-toml.md 3)."""

from __future__ import annotations

import contextlib
import logging
import os
import re

_LOG = logging.getLogger(__name__)
_VALID = re.compile(r"[sr]_[0-9a-zA-Z]{12}")
_MACHINE_ID_FILES = ("/var/lib/dbus/machine-id", "/etc/machine-id")
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
FILE_NAME = ".runner_system_id"


def system_id(config_path: str) -> str:
    """The system id kept beside a config file; made and saved when there is none or an unusable one.

    A directory that cannot be written costs a warning, not the command.
    """
    directory = os.path.dirname(os.path.abspath(config_path))
    path = os.path.join(directory, FILE_NAME)
    with contextlib.suppress(OSError, UnicodeDecodeError), open(path, encoding="utf-8") as file:
        kept = file.read(1024).strip()
        if _VALID.fullmatch(kept):
            return kept
    made = new_system_id()
    if (saved := _saved(path, directory, made)) == made:
        _LOG.info("Created missing unique system ID", extra={"system_id": made})
    return saved


def new_system_id(machine_id_files: tuple[str, ...] = _MACHINE_ID_FILES) -> str:
    """``s_…`` derived from the machine's id, or a random ``r_…`` where it has none."""
    for path in machine_id_files:
        with contextlib.suppress(OSError, UnicodeDecodeError), open(path, encoding="utf-8") as file:
            if machine_id := file.read().strip():
                import hashlib
                import hmac

                return f"s_{hmac.new(machine_id.encode(), b'gitlab-runner', hashlib.sha256).hexdigest()[:12]}"
    import secrets

    return "r_" + "".join(secrets.choice(_ALPHABET) for _ in range(12))


def _saved(path: str, directory: str, made: str) -> str:
    from pyrunner.base.errors import ConfigError
    from pyrunner.config.edit import write_atomically

    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        write_atomically(path, made.encode())
    except (OSError, ConfigError) as error:
        _LOG.warning("Couldn't save new system ID on state file", extra={"error": str(error)})
    return made
