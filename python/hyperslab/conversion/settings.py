"""`Settings` of a conversion and `Conversion`, what it did; what it refuses, and how it verifies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.views import display_html
from hyperslab.conversion.encoding import Box, Bytes
from hyperslab.conversion.filling import Filler, Filling
from hyperslab.conversion.reading import BoxReader
from hyperslab.conversion.wishes import Wish
from hyperslab.errors import Refused
from hyperslab.quantities import nbytes_text, seconds_text
from hyperslab.storage.hdf5_plugins import h5py_with_plugins

if TYPE_CHECKING:
    from hyperslab.progress import Progress

Format: TypeAlias = Literal["hdf5", "netcdf4", "zarr2", "zarr3"]
Verify: TypeAlias = Literal["checksum", "library", "none"]
MOST_NAMED = 12


@dataclass
class Conversion:
    """What a conversion did.

    Attributes
    ----------
    target
        The path of the result.
    format
        Its format.
    array_count
        How many arrays it has.
    nbytes, stored_nbytes
        Bytes of their elements, and of the whole result on disk.
    seconds
        How long it took.
    predicted_seconds
        How long it was predicted to take; None if nobody asked.
    verified
        How it was verified.
    is_resumed
        Whether it went on with an interrupted conversion.
    is_unchanged
        Whether the file suited its purpose as it was, so that nothing was written.
    notes
        What is different in the copy, by path.
    losses
        What is not in the copy, by path; only with `skip_unsupported`.
    """

    target: Path
    format: str
    array_count: int = 0
    nbytes: int = 0
    stored_nbytes: int = 0
    seconds: float = 0.0
    predicted_seconds: float | None = None
    verified: str = "none"
    is_resumed: bool = False
    is_unchanged: bool = False
    notes: list[tuple[str, str]] = field(default_factory=list)
    losses: list[tuple[str, str]] = field(default_factory=list)

    def _repr_html_(self) -> str:
        known = [("format", self.format), ("arrays", f"{self.array_count:,}"), ("elements", nbytes_text(self.nbytes))]
        known += [("on disk", nbytes_text(self.stored_nbytes)), ("took", seconds_text(self.seconds))]
        known += [] if self.predicted_seconds is None else [("was predicted", seconds_text(self.predicted_seconds))]
        known += [("verified by", self.verified)]
        known += [("the file suited its purpose", "nothing was written")] if self.is_unchanged else []
        known += [(f"different in {path}", said) for path, said in self.notes]
        known += [(f"not in the copy: {path}", said) for path, said in self.losses]
        return display_html.facts("hyperslab.Conversion", str(self.target), known)


@dataclass(frozen=True)
class Settings:
    """How to convert."""

    format: Format
    wish: Wish
    relayout: bool
    memory: int
    threads: int | None
    verify: Verify
    skip_unsupported: bool
    is_synced: bool
    progress: Progress | None
    scheduler: Any = None
    predicted: Callable[[float], None] | None = None
    source_paths: tuple[str, ...] = ()


def check_losses(losses: list[tuple[str, str]], settings: Settings, done: Conversion) -> None:
    """Refuse to begin if something would be lost, unless you allowed that.

    Raises
    ------
    Refused
        Something would be lost; the message names it.
    """
    done.losses = losses
    if losses and not settings.skip_unsupported:
        named = "; ".join(f"{path}: {reason}" for path, reason in losses[:MOST_NAMED])
        more = f"; and {len(losses) - MOST_NAMED} more" if len(losses) > MOST_NAMED else ""
        raise Refused(f"{named}{more}: leave this out with --skip-unsupported, or choose another format")


def verified(filler: Filler, fillings: list[Filling], settings: Settings, data: Path) -> None:
    """Read everything back, as the settings say, and compare.

    Raises
    ------
    RunError
        Something reads differently.
    """
    if settings.verify == "none" or not fillings:
        return
    if settings.verify == "library":
        with _by_library(data, settings.format) as opened:
            filler.verify(fillings, lambda path: _library_reader(opened[path]))
        return
    with open_archive(data) as again:
        filler.verify(fillings, lambda path: BoxReader(again[path], settings.threads))


@contextmanager
def _by_library(data: Path, format: str) -> Iterator[Any]:
    """The result, opened by h5py or zarr-python."""
    if format not in ("hdf5", "netcdf4"):
        import zarr

        opened = zarr.open(str(data), mode="r")
        yield {"": opened} if isinstance(opened, zarr.Array) else opened
        return
    with h5py_with_plugins().File(data, "r") as opened:
        yield opened


def _library_reader(array: Any) -> Callable[[Box, Bytes], None]:
    def read(box: Box, out: Bytes) -> None:
        elements = np.ascontiguousarray(np.asarray(array[box] if box else array[()]))
        out[:] = elements.reshape(-1).view(np.uint8)

    return read
