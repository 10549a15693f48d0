"""What exporting a version wrote, and a version's documents as Zarr has them, without what only the layout wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperslab.archive.array import Array as ArchiveArray
from hyperslab.references.chunks import ChunkTable
from hyperslab.references.export import Document, Language
from hyperslab.versions.layout.names import ARRAY_BOOKKEEPING, VERSION_BOOKKEEPING


@dataclass
class Exported:
    """What was written. Chunks of `encoded_again` could not be copied: those of text of any length, mostly."""

    path: str
    version: str
    array_count: int = 0
    chunk_count: int = 0  # that were copied, or are referenced
    nbytes: int = 0  # of these
    encoded_again: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # arrays that the format cannot express, with the reasons


class UsersOnly:
    """A version of Zarr in which the attributes that the layout of versions wants are not said; text is values."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def group_documents(self, prefix: str, attributes: Mapping[str, Any]) -> dict[str, Document]:
        """As `Language` has it."""
        kept = attributes if prefix else without(attributes, VERSION_BOOKKEEPING)
        return self._language.group_documents(prefix, kept)

    def array_documents(
        self, path: str, array: ArchiveArray, dimensions: list[str], inline_threshold: int
    ) -> tuple[dict[str, Document], ChunkTable]:
        """As `Language` has it."""
        if array.is_text:
            inline_threshold = array.nbytes
        documents, table = self._language.array_documents(path, array, dimensions, inline_threshold)
        for key, document in documents.items():
            said = document if key.endswith(".zattrs") else document.get("attributes", {})
            for name in ARRAY_BOOKKEEPING:
                said.pop(name, None)
        return documents, table


def without(attributes: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Attributes without some."""
    return {name: attributes[name] for name in attributes if name not in names}
