"""Run the suites named on the command line, or all, and print one table."""

from __future__ import annotations

import sys

from benchmarks.measure import REFERENCE_BARE_PYTHON, bare_python, table
from benchmarks.suites import SUITES


def main(names: list[str]) -> int:
    """Print the table of the chosen suites."""
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; one of: {', '.join(SUITES)}", file=sys.stderr)
        return 1
    rows, bare = [], [bare_python()]
    for name in names or SUITES:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows += SUITES[name]()
        bare.append(bare_python())
    pace = sorted(bare)[len(bare) // 2] / REFERENCE_BARE_PYTHON
    print(f"A bare Python starts {pace:.2f} times as slowly here as where the reference was measured.\n")
    print(table(rows, pace))
    return 0


sys.exit(main(sys.argv[1:]))
