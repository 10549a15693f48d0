"""A cell of a calibration or an evaluation: a workload, a layout, a library, and what is cached beforehand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hyperslab.chunk_grid import ceil_div
from hyperslab.model.libraries import Hdf5, HyperslabEngine, Layout, Library, Zarr
from hyperslab.model.workload import Workload

# What is cached before the accesses are made.
#
# cold          nothing of the file is in the page cache; the handle is fresh
# page-warm     the whole file is in the page cache; the handle is fresh
# library-warm  the same handle has just made the same accesses, and its chunk cache holds every chunk (HDF5), or the
#               store is in memory (Zarr): the operating system is not called
# new           the array does not exist yet: it is created, written and synced to the device
Elements = Literal["waves", "uniform", "integers"]  # as in `hyperslab.lab.fields`
CellCache = Literal["cold", "page-warm", "library-warm", "new"]


@dataclass(frozen=True)
class ModelCell:
    """One cell to count, measure and predict. A codec's ratio may be unknown until the cell is measured."""

    workload: Workload
    layout: Layout
    library: Library
    cache: CellCache
    elements: Elements | None = None

    @property
    def field(self) -> Elements:
        """What the array holds. A codec needs compressible data, such as measurements. Without one, noise will do."""
        return self.elements or ("waves" if self.layout.codec else "uniform")

    @property
    def file_key(self) -> str:
        """A key that is equal for cells that can share their files."""
        array, layout = self.workload.array, self.layout
        stored = (layout.chunk_shape, layout.shard_shape, layout.codec, layout.contiguous)
        return repr((array.shape, array.dtype, *stored, self.field))

    @property
    def writes(self) -> bool:
        """Whether anything is written."""
        return any(access.operation == "write" for access in self.workload.accesses)

    @property
    def array_nbytes(self) -> int:
        """Decoded bytes of the array."""
        return int(np.prod(self.workload.array.shape, dtype=np.int64)) * self.workload.array.element_nbytes

    @property
    def chunk_nbytes(self) -> int:
        """Decoded bytes of a whole chunk."""
        return int(np.prod(self.layout.chunk_shape, dtype=np.int64)) * self.workload.array.element_nbytes

    @property
    def contradiction(self) -> str | None:
        """Why no library can make these accesses in this cache state. None if one can."""
        if isinstance(self.library, HyperslabEngine) and self.writes:
            return "our engine only reads"
        if self.cache == "new" and any(access.operation == "read" for access in self.workload.accesses):
            return "a new array has nothing to read"
        if self.cache == "library-warm" and any(access.reopen for access in self.workload.accesses):
            return "a library that is warm keeps its file open: leave `reopen` out, or ask for another cache state"
        if self.cache == "library-warm" and (self.writes or not isinstance(self.library, Hdf5 | Zarr)):
            return "library-warm is only for reads by HDF5 and Zarr"
        return None

    @property
    def opened(self) -> Library:
        """The library with the chunk cache that this cell gives it: large enough for every chunk if the cell is
        library-warm.
        """
        if self.cache != "library-warm" or not isinstance(self.library, Hdf5):
            return self.library
        lengths = zip(self.workload.array.shape, self.layout.chunk_shape, strict=True)
        counts = [ceil_div(length, chunk) for length, chunk in lengths]
        # HDF5 hashes the bits of a chunk's index, axis by axis. With this many slots no two chunks collide.
        slots = 1 << sum(max(1, count - 1).bit_length() for count in counts)
        nbytes = 2 * self.chunk_nbytes * int(np.prod(counts))
        return replace(self.library, chunk_cache_nbytes=nbytes, chunk_cache_slots=slots + 1)

    @property
    def name(self) -> str:
        """The cell's name for people."""
        return f"{self.library.name} {self.pattern}, layout {self.layout}, {self.cache}"

    @property
    def pattern(self) -> str:
        """What the accesses do, in words, without the layout."""
        return ", ".join(f"{access.operation} {access.select}" for access in self.workload.accesses)
