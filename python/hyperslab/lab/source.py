"""Which commit of the source runs, so that a figure can be traced to the code that made it."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit_of_source() -> str | None:
    """The commit of the running source, with `+` if files of it were changed since. None outside a git checkout."""
    here = Path(__file__).parent
    # An installed package may lie in some other repository, which does not track it.
    if _git(here, "ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    commit = _git(here, "rev-parse", "--short=12", "HEAD")
    changed = _git(here, "status", "--porcelain", "--untracked-files=no", "--", ":/python", ":/crates")
    return None if commit is None else f"{commit}+" if changed else commit


def _git(directory: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *words], capture_output=True, text=True, check=False, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
