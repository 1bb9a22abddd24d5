"""`.gitlab-ci.yml` → jobs: YAML with positions, keywords, `extends`, the graph and its scheduling. Pure: no I/O.

The way through: `yaml_source` (text → tables that know their lines) → `extends` and `reference` (tables → tables) →
`keywords` (tables → typed `job.Job`s, through one reader per keyword) → `graph` (checks, order) → `schedule` (which job
may run now) → `payload` (job → wire structure).
"""

from __future__ import annotations


def job_names(path: str) -> list[str]:
    """Names of the jobs in the file at `path`, for completion; keywords that would be refused do not matter.

    Raises:
        PipelineError: the file is no YAML mapping.
        OSError: the file cannot be read.
    """
    from pyrunner.pipeline.keywords import KEYWORDS, Where
    from pyrunner.pipeline.yaml_source import Table, load_yaml

    with open(path, "rb") as file:
        root = load_yaml(file.read(), path).root
    return [
        name
        for name, value in root.items()
        if isinstance(value, Table)
        and not name.startswith(".")
        and not (name in KEYWORDS and Where.GLOBAL in KEYWORDS[name].where)
    ]
