"""Flags that choose files and how they are packed: artifacts and caches alike (facts/commands.md 14, 15)."""

from __future__ import annotations

from pyrunner.cli.spec import Flag

SELECTION_FLAGS = (
    Flag(
        "path", "list", help="file, directory or glob to take; repeatable", metavar="PATH", complete="file",
        section="Files",
    ),
    Flag("exclude", "list", help="glob of what to leave out; repeatable", metavar="GLOB", section="Files"),
    Flag("untracked", "bool", help="take all files that git does not track", section="Files"),
    Flag("verbose", "bool", help="name every file", section="Files"),
)  # fmt: skip

LEVELS = ("fastest", "fast", "default", "slow", "slowest")
