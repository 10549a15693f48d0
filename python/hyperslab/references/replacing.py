"""Files that are there whole or not at all: written beside their place, brought to the device, then renamed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hyperslab.errors import UsageError


@contextmanager
def replacing(target: Path, is_folder: bool = False, is_synced: bool = True) -> Iterator[Path]:
    """A path to write to, which takes the target's place when the context ends well, and goes when it does not.

    What is not synced may be torn by a crash of the machine: good where that would be noticed, and made again.

    Raises:
        UsageError: There is no folder to write to, or a folder of another kind is in the way.
    """
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {target.parent} to write {target.name} to")
    if target.is_dir() and not (is_folder and (target / ".zmetadata").is_file()):
        raise UsageError(f"{target} is a folder that holds something else: choose another name")
    if is_folder and target.is_file():
        raise UsageError(f"{target} is a file: remove it, or choose another name")
    beside = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        yield beside
        if is_synced:
            _sync(beside)
        _replace(beside, target)
        if is_synced:
            _sync_one(target.parent)
    finally:
        _remove(beside)


def _replace(beside: Path, target: Path) -> None:
    if not target.is_dir():
        beside.replace(target)
        return
    old = target.with_name(f".{target.name}.{os.getpid()}.old")  # a folder cannot take another's place at once
    target.rename(old)
    try:
        beside.rename(target)
    except BaseException:
        old.rename(target)
        raise
    _remove(old)


def _sync(path: Path) -> None:
    for inner in sorted(path.rglob("*"), reverse=True) if path.is_dir() else []:
        _sync_one(inner)
    _sync_one(path)


def _sync_one(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError:
        if not path.is_dir():  # some file systems sync no folders
            raise
    finally:
        os.close(number)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
