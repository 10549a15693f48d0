"""How much of what we export has a type that every checker knows, as `py.typed` promises: `make types`.

`pyright --verifytypes` counts it. basedpyright is the same program, and brings its own Node from the package index.
The status is 1 if it is less than `LEAST`; what lacks a type is then listed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LEAST = 0.98


def counted(pyright: str) -> dict[str, Any]:
    """What the checker found of each exported name."""
    command = [
        pyright,
        "--pythonpath",
        sys.executable,
        "--verifytypes",
        "hyperslab",
        "--ignoreexternal",
        "--outputjson",
    ]
    around = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, cwd=ROOT, env=around, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)["typeCompleteness"]
    return found


def lacking(found: dict[str, Any]) -> Iterator[str]:
    """The names without a type that is known, with the reasons."""
    for one in found["symbols"]:
        if one["isExported"] and one["diagnostics"] and (not one["isTypeKnown"] or one["isTypeAmbiguous"]):
            yield f"{one['name']}: {'; '.join(' '.join(said['message'].split()) for said in one['diagnostics'])}"


def main() -> None:
    """Print the share, and what lacks a type if it is too small."""
    found = counted(sys.argv[1])
    share = found["completenessScore"]
    print(f"{100 * share:.1f} % of {sum(found['exportedSymbolCounts'].values()):,} exported names have a known type")
    if share < LEAST:
        sys.exit("\n".join([*lacking(found), f"at least {100 * LEAST:g} % are wanted"]))


if __name__ == "__main__":
    main()
