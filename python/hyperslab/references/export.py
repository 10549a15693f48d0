"""The content of references in Zarr's terms: which groups and arrays, under which names, and what is left out."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from hyperslab.archive.tree.group import Group, groups_by_path, links_to_nowhere
from hyperslab.errors import DamagedFile, NotAllowed, Refused, Unsupported
from hyperslab.references.chunks import ChunkTable

if TYPE_CHECKING:
    from hyperslab.archive.tree.array import Array

Document = dict[str, Any]


class Language(Protocol):
    """A version of Zarr: the modules `zarr2` and `zarr3`."""

    def group_documents(self, prefix: str, attributes: Mapping[str, Any]) -> dict[str, Document]:
        """The documents of a group by key; the prefix is its path with a slash, or empty for the root."""

    def array_documents(
        self, path: str, array: Array, dimensions: list[str], inline_threshold: int
    ) -> tuple[dict[str, Document], ChunkTable]:
        """The documents of an array by key, and its chunks.

        Raises
        ------
        Refused
            The array cannot be expressed; the message has the reason.
        """


@dataclass
class Export:
    """The settings of an export, and a count of what it wrote."""

    language: Language
    inline_threshold: int
    skip_unsupported: bool
    skipped: Container[str] = ()  # names of arrays to leave out
    left: Callable[[Group | Array], tuple[str, ...]] = lambda _: ()  # attributes of a group or array to leave out
    keeps_text: bool = False  # whether text of variable length is stored as values, whatever its size
    array_count: int = 0
    chunk_count: int = 0
    left_out: dict[str, str] = field(default_factory=dict)

    def items(self, roots: Mapping[str, Group]) -> Iterator[tuple[str, Document | ChunkTable]]:
        """Yield documents under their keys, and the chunk table of each array under the array's name.

        Raises
        ------
        Refused
            An array cannot be expressed in this version of Zarr, and `skip_unsupported` is False.
        """
        if list(roots) != [""]:
            yield from self.language.group_documents("", {}).items()
        for name, root in roots.items():
            yield from self._tree(f"{name}/" if name else "", root)

    def _tree(self, prefix: str, root: Group) -> Iterator[tuple[str, Document | ChunkTable]]:
        dimensions = Dimensions()
        nodes = [("", root), *below(root)]
        for path, node in nodes:
            if isinstance(node, Group):
                for name, reason in links_to_nowhere(node):
                    self.left_out[f"{prefix}{path}/{name}" if path else f"{prefix}{name}"] = reason
                below_it = f"{prefix}{path}/" if path else prefix
                yield from leave_out(self.language.group_documents(below_it, node.attrs), self.left(node)).items()
        for path, node in nodes:
            if isinstance(node, Group) or path.rpartition("/")[2] in self.skipped:
                continue
            if not node.is_dimension_only:
                yield from self._array(prefix + path, node, dimensions)

    def _array(self, path: str, array: Array, dimensions: Dimensions) -> Iterator[tuple[str, Document | ChunkTable]]:
        named = dimensions.of(path, array)
        try:
            most = array.nbytes if self.keeps_text and array.is_text else self.inline_threshold
            documents, table = self.language.array_documents(path, array, named, most)
        except Refused as refused:
            if not self.skip_unsupported:
                if isinstance(refused.__cause__, NotAllowed):
                    raise refused.__cause__ from refused  # as every other command says it
                said = f"array {array.name} of {array.filename} cannot be referenced: {refused}"
                kind = DamagedFile if array.damaged else Unsupported if array.unsupported else Refused
                raise kind(f"{said}; leave out such arrays, or save hyperslab's own references (.hs)") from refused
            self.left_out[path] = str(refused)
            return
        yield from leave_out(documents, self.left(array)).items()
        yield path, table
        self.array_count += 1
        self.chunk_count += len(table.positions) + len(table.inline)


def leave_out(documents: dict[str, Document], names: tuple[str, ...]) -> dict[str, Document]:
    """Remove attributes from documents."""
    for key, document in documents.items():
        attributes = document if key.endswith(".zattrs") else document.get("attributes", {})
        for name in names:
            attributes.pop(name, None)
    return documents


class Dimensions:
    """Names for the axes of arrays: their own, or `phony_dim_0` and so on, one for each length in a group."""

    def __init__(self) -> None:
        self._phony: dict[str, list[int]] = {}

    def of(self, path: str, array: Array) -> list[str]:
        """A name for each axis, all of them different."""
        lengths = self._phony.setdefault(path.rpartition("/")[0], [])
        given = array.dims if array.dims is not None and len(array.dims) == array.ndim else ("",) * array.ndim
        named: list[str] = []
        for name, length in zip(given, array.shape, strict=True):
            named.append(name if name and name not in named else self._next(lengths, length, named))
        return named

    @staticmethod
    def _next(lengths: list[int], length: int, taken: list[str]) -> str:
        for number, known in enumerate(lengths):
            if known == length and f"phony_dim_{number}" not in taken:
                return f"phony_dim_{number}"
        lengths.append(length)
        return f"phony_dim_{len(lengths) - 1}"


def below(root: Group) -> list[tuple[str, Group | Array]]:
    """Everything below a group by path, arrays under each of their names; unreadable entries are left out."""
    nodes: list[tuple[str, Group | Array]] = []
    for path, group in groups_by_path(root):
        nodes += [(path, group)] if path else []
        nodes += [(f"{path}/{name}" if path else name, array) for name, array in group.arrays.items()]
    return nodes
