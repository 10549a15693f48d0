"""What a version holds, as its commit knows it. The next version is staged from this, without parsing the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.archive.tree.group import Group
from hyperslab.cached import cached_property
from hyperslab.errors import DamagedFile
from hyperslab.versions.commit.chunk_store import ChunkStores
from hyperslab.versions.layout.elements import as_elements, read_chunks
from hyperslab.versions.layout.names import VERSIONS, Array, raw_path
from hyperslab.versions.layout.reading import parsed, version_group
from hyperslab.versions.layout.slots import Slots

Child: TypeAlias = "CommittedGroup | CommittedArray | Group | ArchiveArray"
# Reading more chunks than this in one call needs a parsed table of them.
FEW_CHUNKS = 8


@dataclass(eq=False)
class CommittedVersion:
    """A version that was committed here. Anything that the commit does not know is parsed.

    Parameters
    ----------
    path : str
        The path of the file.
    name : str
        The name of the version.
    stores : ChunkStores
        The chunks of the file's arrays.
    is_held : bool
        Whether it waits for the next commit: then attributes are known as they were set, because none can be parsed.
    """

    path: str
    name: str
    stores: ChunkStores
    is_held: bool = False

    @cached_property
    def _parsed(self) -> Group:
        self.stores.ready_to_parse()
        return version_group(self.path, self.name, 0)

    def parsed(self, path: str) -> Group | ArchiveArray:
        """Parse a group or an array of the version."""
        return self._parsed[path]

    def raw(self, path: str) -> ArchiveArray:
        """All chunks that an array ever had."""
        self.stores.ready_to_parse()
        raw = parsed(self.path, 0, (raw_path(path),))[raw_path(path)]
        if not isinstance(raw, ArchiveArray):
            raise DamagedFile(f"{self.path}: the chunks of {path!r} are not an array")
        return raw


@dataclass(eq=False)
class CommittedArray:
    """An array of a version that was committed here. `slots` is flat, in C order. Unknown attributes are parsed."""

    version: CommittedVersion
    path: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    fill: Any
    slots: Slots
    known_attrs: Mapping[str, Any] | None

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes of the array; they may include those of the layout."""
        return self.version.parsed(self.path).attrs if self.known_attrs is None else self.known_attrs

    def __getitem__(self, key: Any) -> Any:
        array = self.version.parsed(self.path)
        assert isinstance(array, ArchiveArray)
        return array[key]

    def load(self, slots: Slots) -> Array:
        """Stored chunks by their slots, stacked along a new first axis."""
        if len(slots) > FEW_CHUNKS:
            read = read_chunks(self.version.raw(self.path), self.chunks, slots)
        else:
            read = self.version.stores.of_path(self.path).read(slots)
        chunks: Array = as_elements(read, self.dtype).reshape(read.shape)
        return chunks


class CommittedGroup(Mapping[str, "Child"]):
    """A group of a version that was committed here. What the commit did not touch comes from the version before."""

    def __init__(
        self, version: CommittedVersion, path: str, attrs: Mapping[str, Any] | None, children: Mapping[str, Child]
    ) -> None:
        self._version = version
        self._path = path
        self._attrs = attrs
        self._children = dict(sorted(children.items()))

    @property
    def name(self) -> str:
        """The path of the group in the file."""
        return f"/{VERSIONS}/{self._version.name}/{self._path}".rstrip("/")

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes of the group."""
        return self._version.parsed(self._path).attrs if self._attrs is None else self._attrs

    def __getitem__(self, name: str) -> Child:
        return self._children[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._children)

    def __len__(self) -> int:
        return len(self._children)

    def __contains__(self, name: object) -> bool:
        return name in self._children
