"""What an export wrote, and a version's Zarr documents without the attributes that only the layout needs."""

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
    """What was written. Chunks of the arrays in `encoded_again` could not be copied, mostly text of any length."""

    path: str
    version: str
    array_count: int = 0
    chunk_count: int = 0  # chunks copied or referenced
    nbytes: int = 0  # bytes of these chunks
    encoded_again: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # arrays that the format cannot express, with the reasons


class UsersOnly:
    """A version of Zarr without the attributes that the layout of versions needs, and with text as values."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def group_documents(self, prefix: str, attributes: Mapping[str, Any]) -> dict[str, Document]:
        """The documents of a group, see `Language`."""
        kept = attributes if prefix else without(attributes, VERSION_BOOKKEEPING)
        return self._language.group_documents(prefix, kept)

    def array_documents(
        self, path: str, array: ArchiveArray, dimensions: list[str], inline_threshold: int
    ) -> tuple[dict[str, Document], ChunkTable]:
        """The documents and chunks of an array, see `Language`."""
        if array.is_text:
            inline_threshold = array.nbytes
        documents, table = self._language.array_documents(path, array, dimensions, inline_threshold)
        for key, document in documents.items():
            said = document if key.endswith(".zattrs") else document.get("attributes", {})
            for name in ARRAY_BOOKKEEPING:
                said.pop(name, None)
        return documents, table


def without(attributes: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The attributes without some names."""
    return {name: attributes[name] for name in attributes if name not in names}
