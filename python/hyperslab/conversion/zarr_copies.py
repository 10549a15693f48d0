"""`ZarrCopy`: an array of a version whose stored chunks become the chunks of a Zarr array, without decoding them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperslab.conversion.meter import Meter
from hyperslab.errors import FileChanged, Refused, RunError
from hyperslab.references import zarr2, zarr3
from hyperslab.references.chunks import ChunkTable

if TYPE_CHECKING:
    from hyperslab.archive.tree.array import Array


@dataclass(frozen=True)
class ZarrCopy:
    """An array to copy.

    Attributes
    ----------
    path
        Its path in the target, for messages.
    source
        The file that holds its chunks.
    folder
        The folder of its chunks.
    separator
        What stands between the numbers in the names of chunks.
    table
        Where its chunks are.
    """

    path: str
    source: str
    folder: Path
    separator: str
    table: ChunkTable

    @property
    def nbytes(self) -> int:
        """Stored bytes of all chunks."""
        return int(self.table.lengths.sum())

    def copy(self, meter: Meter) -> None:
        """Write every chunk.

        Raises
        ------
        FileChanged
            The source is shorter than its chunks.
        """
        made: set[Path] = set()
        for target, chunk in self._chunks():
            if target.parent not in made:
                target.parent.mkdir(parents=True, exist_ok=True)
                made.add(target.parent)
            target.write_bytes(chunk)
            meter.add(self.path, len(chunk))

    def verify(self, meter: Meter) -> None:
        """Compare the bytes of every chunk, file against file.

        Raises
        ------
        RunError
            Some bytes are different.
        """
        for target, chunk in self._chunks():
            if target.read_bytes() != chunk:
                raise RunError(f"{self.path}: its copy is not the same: nothing was put in place, please report it")
            meter.add(f"verifying {self.path}", len(chunk))

    def _chunks(self) -> Iterator[tuple[Path, bytes]]:
        with open(self.source, "rb", buffering=0) as source:
            for key, _, offset, length in self.table.named():
                chunk = os.pread(source.fileno(), length, offset)
                if len(chunk) < length:
                    raise FileChanged("the source became shorter while it was copied: start again")
                yield self.folder / key.replace(".", self.separator), chunk


def stored_array(
    path: str, array: Array, dims: list[str], version: int, folder: Path
) -> tuple[dict[str, dict[str, Any]], ZarrCopy] | None:
    """The documents of an array whose chunks can stay as they are stored, and the copy; None if they cannot.

    Parameters
    ----------
    path : str
        The path of the array in the target.
    array : Array
        The array.
    dims : list[str]
        The names of its dimensions, empty if they have none.
    version : int
        2 or 3.
    folder : Path
        The target.
    """
    try:
        documents, table = (zarr2 if version == 2 else zarr3).array_documents(path, array, dims, 0)
    except Refused:  # it can be encoded again, or the reason comes out there
        return None
    if table.inline or table.used_paths() - {array.filename} or array.dtype.hasobject:
        return None
    if not dims:
        for document in documents.values():
            document.pop("dimension_names", None)
    inner = folder / path
    return documents, ZarrCopy(
        path, array.filename, inner if version == 2 else inner / "c", "." if version == 2 else "/", table
    )
