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


# What `python -m hyperslab run` is, and what it imports. tests/run/test_run_command.py starts it as users do.
COMMAND = "from hyperslab.__main__ import main; main()"
IMPORTED = ("hyperslab.__main__", "hyperslab.running.command", "hyperslab.running.programs",
            "hyperslab.running.summary", "hyperslab.errors", "json", "resource", "signal")  # fmt: skip


def run(*words: object, cwd: Path | None = None, **environment: str) -> Ran:
    """Run a program under `hyperslab run --json`."""
    around = {**os.environ, **environment}
    return Ran(run_python(COMMAND, "run", "--json", "--", *words, modules=IMPORTED, cwd=cwd, env=around))


def python(code: str, *words: object, **options: Any) -> Ran:
    """Run Python code."""
    return run(sys.executable, "-c", textwrap.dedent(code), *words, **options)


def without(code: str, *words: object) -> subprocess.CompletedProcess[bytes]:
    """Run the same code without us, from a process that has imported h5py and nothing of ours."""
    return run_python(textwrap.dedent(code), *words)
