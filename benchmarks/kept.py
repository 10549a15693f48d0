"""Results on disk. You can measure single rows again, but rows of other machines or libraries are never mixed in."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from hyperslab.lab.environment import Environment, agree


def begun(path: Path, environment: dict[str, Any], whole_run: bool, **about: Any) -> dict[str, Any]:
    """The results to add rows to: earlier ones if they have the same machine and libraries."""
    new = {**about, "environment": environment, "rows": {}}
    if whole_run or not path.exists():
        return new
    old: dict[str, Any] = json.loads(path.read_text())
    alike = [*Environment.MUST_AGREE, "python", "libraries"]
    differing = [name for name in alike if not agree(name, old["environment"].get(name), environment[name])]
    if differing:
        sys.exit(
            f"{path.name} was measured with another {', '.join(differing)}: measure all rows again, without --only"
        )
    return old


def keep(path: Path, results: dict[str, Any], made: dict[str, Any], order: list[str]) -> None:
    """Put one row into the results, in the order of the groups, and save them."""
    measured = results["rows"] | {made["key"]: made}
    results["rows"] = dict(sorted(measured.items(), key=lambda row: order.index(row[1]["group"])))
    path.write_text(json.dumps(results, indent=1) + "\n")
