"""Results on disk: a row can be measured again, but rows of another machine or other libraries never mix."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from hyperslab.lab.environment import Environment


def begun(path: Path, environment: dict[str, Any], whole_run: bool, **about: Any) -> dict[str, Any]:
    """The results to add rows to: those of before, if they are of this machine and these libraries."""
    new = {**about, "environment": environment, "rows": {}}
    if whole_run or not path.exists():
        return new
    old: dict[str, Any] = json.loads(path.read_text())
    alike = [*Environment.MUST_AGREE, "python", "libraries"]
    differing = [name for name in alike if old["environment"].get(name) != environment[name]]
    if differing:
        sys.exit(f"{path.name} was made with another {', '.join(differing)}: measure all rows anew, without --only")
    return old


def keep(path: Path, results: dict[str, Any], made: dict[str, Any], order: list[str]) -> None:
    """Put one row among the results, in the order of the groups, and write them."""
    measured = results["rows"] | {made["key"]: made}
    results["rows"] = dict(sorted(measured.items(), key=lambda row: order.index(row[1]["group"])))
    path.write_text(json.dumps(results, indent=1) + "\n")
