"""Programs under `hyperslab run`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from command_line import run_python
from hyperslab.running import command

if command.library() is None:
    pytest.skip("no library to preload: crates/hyperslab-preload/build.sh", allow_module_level=True)


class Ran:
    """What a program did."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.status = done.returncode
        self.out = done.stdout
        *rest, last = done.stderr.decode().splitlines() or [""]
        self.is_counted = last.startswith("{")
        self.counts: dict[str, Any] = json.loads(last) if self.is_counted else {}
        self.errors = "\n".join(rest if self.is_counted else [*rest, last])

    @property
    def served(self) -> int:
        return self.counts["served"]["reads"]

    def passed(self, reason: str) -> int:
        return self.counts["passed"]["reasons"].get(reason, {"reads": 0})["reads"]


def run(*words: object, cwd: Path | None = None, **environment: str) -> Ran:
    """Run a program under `hyperslab run --json`."""
    line = [sys.executable, "-m", "hyperslab", "run", "--json", "--", *map(str, words)]
    return Ran(subprocess.run(line, capture_output=True, cwd=cwd, env={**os.environ, **environment}, timeout=240))


def python(code: str, *words: object, **options: Any) -> Ran:
    """Run Python code."""
    return run(sys.executable, "-c", textwrap.dedent(code), *words, **options)


def without(code: str, *words: object) -> subprocess.CompletedProcess[bytes]:
    """Run the same code without us, from a process that has imported h5py and nothing of ours."""
    return run_python(textwrap.dedent(code), *words)
