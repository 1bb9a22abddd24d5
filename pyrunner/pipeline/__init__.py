"""`.gitlab-ci.yml` → jobs: YAML with positions, keywords, `extends`, the graph and its scheduling. Pure: no I/O.

The way through: `yaml_source` (text → tables that know their lines) → `extends` and `reference` (tables → tables) →
`keywords` (tables → typed `job.Job`s, through one reader per keyword) → `graph` (checks, order) → `schedule` (which job
may run now) → `payload` (job → wire structure).
"""
