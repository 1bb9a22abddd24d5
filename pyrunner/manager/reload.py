"""When config.toml is read again: its mtime is looked at every 3 s, and SIGHUP asks for it (facts/config-toml.md 3)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from pyrunner.base.errors import PyrunnerError
from pyrunner.config.model import Config

log = logging.getLogger(__name__)

WATCH_INTERVAL = 3.0


class ConfigWatch:
    """Loads the config and notices that it changed. Used by one thread.

    A config without a path (made in memory) never changes.
    """

    def __init__(self, load: Callable[[], Config]) -> None:
        self._load = load
        self._path = ""
        self._seen = 0.0

    def first(self) -> Config:
        """The config to start with.

        Raises:
            PyrunnerError: it cannot be used.
        """
        config = self._checked()
        self._path, self._seen = config.path, config.mtime
        return config

    def changed(self) -> bool:
        """Whether the file is another one than the one that was loaded or tried last."""
        return bool(self._path) and self._mtime() != self._seen

    def reload(self) -> Config | None:
        """The new config, or None when it is broken: the old one stays in use, and this version is not tried again."""
        self._seen = self._mtime()
        try:
            config = self._checked()
        except (PyrunnerError, OSError) as error:
            log.error("Failed to load config", extra={"action": "config_broken", "error": str(error)})  # noqa: TRY400
            return None
        if config.mtime:
            self._seen = config.mtime
        return config

    def _checked(self) -> Config:
        config = self._load()
        if config.concurrent < 1:
            raise PyrunnerError(f"{config.path}: concurrent is {config.concurrent}, it must be at least 1".lstrip(": "))
        return config

    def _mtime(self) -> float:
        try:
            return os.stat(self._path).st_mtime
        except OSError:
            return 0.0
