"""Starts programs under `hyperslab trace`, and compares what they selected with what NumPy selects."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import hyperslab as hs
from command_line import run_hyperslab
from hyperslab.running.command import library
from hyperslab.trace import selection
from hyperslab.trace.table import TracedAccess

SHAPE = (12, 9)
IS_PRELOADED = library() is not None


def traced(folder: Path, *words: str, **named: Any) -> subprocess.CompletedProcess[str]:
    """Run a program under `hyperslab trace -o run.trace`."""
    (folder / "run.trace").unlink(missing_ok=True)
    return run_hyperslab("trace", "-o", "run.trace", "--", *words, cwd=folder, **named)


def traced_python(folder: Path, program: str, *words: str, **named: Any) -> hs.Trace:
    """The trace of a Python program that ends well and says nothing on stderr."""
    (folder / "program.py").write_text(program)
    done = traced(folder, sys.executable, "program.py", *words, **named)
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("hyperslab trace: ") for line in done.stderr.splitlines()), done.stderr
    return hs.Trace.open(folder / "run.trace")


def mask(access: TracedAccess) -> npt.NDArray[np.bool_]:
    """The elements that an access selected."""
    kinds = {name: kind for kind, name in selection.NAMES.items()}
    return selection.mask(kinds[access.selection_kind], np.array(access.selection, np.int64), access.array.shape)


def union(accesses: Iterable[TracedAccess], shape: Sequence[int] = SHAPE) -> npt.NDArray[np.bool_]:
    """The elements that any of them selected."""
    found = np.zeros(tuple(shape), bool)
    for access in accesses:
        found |= mask(access)
    return found


def selected(key: Any, shape: Sequence[int] = SHAPE) -> npt.NDArray[np.bool_]:
    """The elements that NumPy selects."""
    found = np.zeros(tuple(shape), bool)
    found[key] = True
    return found
