"""Files with absurd numbers give a value or one of our errors, quickly and in little memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import absurd_files
import pytest
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.cli import app
from hyperslab.errors import HyperslabError

MOST_SECONDS = 10  # of processors: other programs may run too
MOST_NBYTES = (
    3 << 30
)  # address space, most of which the interpreter and the stacks of its threads reserve without using it


def asked(path: Path, troubles: list[str], name: str) -> None:
    """Do everything that people do with a file."""

    def told(what: str, do: Callable[[], Any]) -> Any:
        start = time.process_time()
        try:
            return do()
        except HyperslabError:
            return None
        except BaseException as error:
            troubles.append(f"{name}: {what}: {type(error).__name__}: {str(error)[:200]}")
            return None
        finally:
            if time.process_time() - start > MOST_SECONDS:
                troubles.append(f"{name}: {what}: {time.process_time() - start:.0f} seconds")

    root = told("open", lambda: hs.open(path))
    if root is None:
        return
    told("repr", lambda: repr(root))
    told("attributes", lambda: repr(root.attrs))
    for array in told("walk", lambda: list(root.walk())) or []:
        for of in ("dtype", "shape", "nbytes", "size", "chunks", "chunk_lengths", "codecs", "fill_value", "attrs"):
            told(of, lambda of=of, array=array: getattr(array, of))
        for of in ("max_shape", "chunk_count", "stored_chunk_count", "stored_nbytes", "dims", "is_text", "damaged"):
            told(of, lambda of=of, array=array: repr(getattr(array, of)))
        told("plan", lambda array=array: repr(array.plan()))
        told("repr of an array", lambda array=array: repr(array))
        shape = told("shape", lambda array=array: array.shape) or ()
        if 0 not in shape:
            told("first", lambda array=array, shape=shape: array[(0,) * len(shape)])
            told("last", lambda array=array, shape=shape: array[(-1,) * len(shape)])
        told("all", lambda array=array: array[...])
    told("close", root.close)


def shown(path: Path, troubles: list[str], name: str) -> None:
    for command in (["info"], ["info", "--json"]):
        done = CliRunner().invoke(app, [*command, str(path)])
        if done.exit_code not in (0, 1, 2) or not isinstance(done.exception, SystemExit | HyperslabError | None):
            troubles.append(f"{name}: {' '.join(command)}: {done.exit_code} {done.exception!r}")


def tried(folder: Path, kind: str) -> list[str]:
    """The files of a kind that end in anything but a value or one of our errors."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_NBYTES, MOST_NBYTES))
    troubles: list[str] = []
    for number, (name, path) in enumerate(absurd_files.make(folder, kind)):
        asked(path, troubles, name)
        if number % 7 == 0:
            shown(path, troubles, name)
    return troubles


@pytest.mark.slow
@pytest.mark.parametrize("kind", absurd_files.KINDS)
def test_absurd_numbers_are_named_or_read(tmp_path: Path, kind: str) -> None:
    """Run in a separate process with limited memory, so that a crash is noticed."""
    command = [sys.executable, __file__, str(tmp_path), kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, "tried all"), done.stderr[-2000:]


if __name__ == "__main__":
    found = tried(Path(sys.argv[1]), sys.argv[2])
    print("\n".join(found) or "tried all", end="")
