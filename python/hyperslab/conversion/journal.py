"""`ConversionJournal`: which slabs of a conversion are finished, so that an interrupted one can go on.

It lies with the unfinished target in a folder beside the target's name. Its first line says what is converted and how;
each later line is a slab, and the last one says that all is done. A line that was cut off by a kill is ignored.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab.errors import FileChanged, UsageError

VERSION = 4
SCRATCH_PREFIX = "between-"  # what else is in the folder meanwhile
Ended = tuple[int, int, str]  # the number of arrays, their bytes, and how they were verified
BOOT = Path("/proc/sys/kernel/random/boot_id")


class Finished(NamedTuple):
    """A slab that was written: its checksum, and the stored bytes and masks of its chunks (for HDF5)."""

    checksum: int
    sizes: npt.NDArray[np.uint64] | None
    masks: npt.NDArray[np.uint32] | None


def folder_of(target: Path) -> Path:
    """The folder of an unfinished conversion to a target."""
    return target.with_name(f".{target.name}.hyperslab-partial")


def remove_unfinished(target: Path) -> None:
    """Remove what a kill left of a conversion to a target, unless another process is at work on it.

    Raises
    ------
    UsageError
        The folder is not ours, or another process is at work.
    """
    if folder_of(target).exists():
        ConversionJournal(target, {}, resume=False, overwrite=True).remove()


class ConversionJournal:
    """The folder of an unfinished conversion.

    Parameters
    ----------
    target : Path
        The name that the result gets at the end.
    header : dict[str, Any]
        What is converted and how. `source` names the version of the source; everything else are settings.
    resume : bool
        Whether to go on with an unfinished conversion, if there is one.
    overwrite : bool
        Whether to remove an unfinished conversion.
    adopted : Collection[str]
        Settings that an unfinished conversion decides, because you did not.

    Attributes
    ----------
    header
        What is converted and how, with what was adopted.
    ended
        What the conversion did, if everything was written and only its name was missing.

    Raises
    ------
    UsageError
        There is an unfinished conversion and you did not say what to do, it had other settings, or another process is
        at work on it.
    FileChanged
        The source has changed since the unfinished conversion began.
    """

    def __init__(
        self, target: Path, header: dict[str, Any], *, resume: bool, overwrite: bool, adopted: Collection[str] = ()
    ) -> None:
        self.folder: Path = folder_of(target)
        self.data: Path = self.folder / target.name
        self._path = self.folder / "journal.jsonl"
        self.finished: dict[tuple[str, int], Finished] = {}
        self._settled: dict[str, int] = {}
        self.header: dict[str, Any] = {
            **header,
            "version": VERSION,
            "boot": BOOT.read_text().strip() if BOOT.exists() else "",
        }
        self.ended: Ended | None = None
        is_there = self.folder.exists()
        if is_there or self.folder.is_symlink():
            self._check_ours()
        self._lock, is_new = -1, False
        try:
            self.folder.mkdir(exist_ok=True)
            self._lock = os.open(self.folder, os.O_RDONLY)
            self._take(target)
            is_new = not is_there
            if is_there and not resume and not overwrite:
                said = f"{self.folder} holds an unfinished conversion"
                raise UsageError(f"{said}: go on with --resume, or start again with --overwrite")
            self.is_resumed: bool = resume and self._load(adopted)
            if not self.is_resumed:
                self.finished.clear()
                self._settled.clear()
                self._clear()
                self._path.write_text(json.dumps(self.header))
            self._file = self._path.open("a")
        except BaseException:
            if is_new:  # Ctrl-C before anything was written
                shutil.rmtree(self.folder, ignore_errors=True)
            if self._lock >= 0:
                os.close(self._lock)
            raise

    def _check_ours(self) -> None:
        """Refuse a folder of this name that holds something else, because starting again clears it."""
        is_ours = self.folder.is_dir() and not self.folder.is_symlink()
        names = {self.data.name, f"{self.data.name}.old", self._path.name}
        inner = self.folder.iterdir() if is_ours else ()
        if not is_ours or any(one.name not in names and not one.name.startswith(SCRATCH_PREFIX) for one in inner):
            raise UsageError(f"{self.folder} is not an unfinished conversion of ours: move it away first")

    def _take(self, target: Path) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"another process is converting to {target}: wait for it, or stop it") from None

    def _load(self, adopted: Collection[str]) -> bool:
        """Read the journal; whether there is anything to go on with."""
        if not self._path.is_file() or not self.data.exists():
            return False
        lines = self._path.read_text().split("\n")
        try:
            first = json.loads(lines[0])
        except ValueError:
            return False
        if not isinstance(first, dict):
            return False
        header = self.header
        if first.get("source") != header["source"]:
            raise FileChanged(f"{header['name']} has changed since this conversion began: start again with --overwrite")
        different = [key for key in header if key != "boot" and key not in adopted and first.get(key) != header[key]]
        if different:
            raise UsageError(
                f"the unfinished conversion has another {different[0]} ({first.get(different[0])!r}, now"
                f" {header[different[0]]!r}): resume it with its own settings, or start again with --overwrite"
            )
        if first.get("boot") != header["boot"]:
            return False  # what was not synced may be lost
        self.header |= {key: first[key] for key in adopted if key in first}
        return self._read(lines[1:])

    def _read(self, lines: list[str]) -> bool:
        """Read the slabs; False if the result has had its name already."""
        for line in lines:
            with suppress(ValueError, KeyError, TypeError, IndexError):  # a line that was cut off
                one = json.loads(line)
                if "ended" in one:
                    # The data may be what had the name before: two folders swap their names.
                    if one["is"] != self.data.stat().st_ino:
                        self.finished.clear()
                        return False
                    self.ended = (one["ended"][0], one["ended"][1], one["ended"][2])
                    continue
                if "settled" in one:
                    self._settled[one["settled"]] = one["as"]
                    continue
                self.finished[one["array"], one["slab"]] = Finished(
                    one["checksum"], _column(one.get("sizes"), np.uint64), _column(one.get("masks"), np.uint32)
                )
        return True

    def add(self, array: str, slab: int, finished: Finished) -> None:
        """Note that a slab is written. Whoever kills this process loses nothing of it."""
        one: dict[str, Any] = {"array": array, "slab": slab, "checksum": finished.checksum}
        if finished.sizes is not None and finished.masks is not None:
            one["sizes"] = base64.b64encode(finished.sizes.tobytes()).decode()
            if finished.masks.any():
                one["masks"] = base64.b64encode(finished.masks.tobytes()).decode()
        self._write(one)
        self.finished[array, slab] = finished

    def settled(self, what: str, value: int) -> int:
        """A number on which finished slabs depend: that of the first run, or this one if there was none."""
        if what not in self._settled:
            self._write({"settled": what, "as": value})
            self._settled[what] = value
        return self._settled[what]

    def end(self, did: Ended) -> None:
        """Note that everything is written and verified, and that the data get their name now."""
        self._write({"ended": did, "is": self.data.stat().st_ino})

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write("\n" + json.dumps(line))  # the line before may be cut off
        self._file.flush()

    def _clear(self) -> None:
        for inner in self.folder.iterdir():
            shutil.rmtree(inner) if inner.is_dir() and not inner.is_symlink() else inner.unlink()

    def remove(self) -> None:
        """Remove the folder: the result has its name, or nothing is worth keeping."""
        shutil.rmtree(self.folder, ignore_errors=True)  # while it is ours: whoever waits for it must begin anew
        self.close()

    def close(self) -> None:
        """Close the journal and let others go on with it."""
        self._file.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _column(text: str | None, dtype: Any) -> Any:
    return None if text is None else np.frombuffer(base64.b64decode(text), dtype)
