"""Before a tag is pushed: whether version, changelog and citation agree, and whether the tag is new.

`make release-check` runs it; the workflow of releases does so with the tag in GITHUB_REF_NAME.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def faults(root: Path, tag: str | None, tags: list[str]) -> Iterator[str]:
    """What stands against a release of the files in `root`.

    Parameters
    ----------
    root : Path
        The folder of the repository.
    tag : str | None
        The tag that asks for the release; None if there is none yet.
    tags : list[str]
        The tags that are there already.
    """
    version = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    changelog = (root / "CHANGELOG.md").read_text()
    dated = re.search(rf"^## \[?{re.escape(version)}\]? - (\d{{4}}-\d\d-\d\d)$", changelog, re.MULTILINE)
    if dated is None:
        yield f"CHANGELOG.md has no heading '## {version} - YEAR-MONTH-DAY'"
    cited = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text(), re.MULTILINE)
    if cited is None or cited[1] != version:
        yield f"CITATION.cff names version {cited[1] if cited else 'nothing'}, and Cargo.toml {version}"
    if tag is not None and tag != f"v{version}":
        yield f"the tag is {tag}, and Cargo.toml says {version}: tag v{version}"
    if tag is None and f"v{version}" in tags:
        yield f"v{version} is released: raise the version in Cargo.toml"


def main() -> None:
    """Print what stands against a release; the exit status is 1 if anything does."""
    name = os.environ.get("GITHUB_REF_NAME", "")
    tags = subprocess.run(["git", "tag"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    found = list(faults(ROOT, name if name.startswith("v") else None, tags))
    for fault in found:
        print(fault, file=sys.stderr)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
