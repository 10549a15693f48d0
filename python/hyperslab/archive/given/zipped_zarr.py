"""Zarr in a ZIP file, as zarr-python's `ZipStore` writes it. Chunks that ZIP does not compress are read in place.

Layout: APPNOTE.TXT of PKWARE, sections 4.3.7 (the header before each member) and 4.3.12 (the directory at the end).
"""

from __future__ import annotations

import json
import math
import re
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np

from hyperslab._core import ArchiveFile
from hyperslab.archive.far.remote import SourceResolver
from hyperslab.archive.given.parquet_references import MOST_CHUNKS, NO_FILE, Table
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import DamagedFile, Unsupported
from hyperslab.regular_files import Sparing, open_regular

METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
MOST_METADATA_NBYTES = 256 << 20  # all documents together, expanded
MOST_DIRECTORY_NBYTES = 1 << 30
HEADER = struct.Struct("<4s22xHH")  # signature; lengths of name and extra field
SIGNATURE = b"PK\x03\x04"
IS_ENCRYPTED = 1
UNREADABLE = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError)  # what zipfile raises


class ZippedZarr:
    """The Zarr hierarchy in a ZIP file.

    Parameters
    ----------
    path : str
        The path of the ZIP file.
    members : dict[str, zipfile.ZipInfo]
        All members of the ZIP file by name.
    resolver : SourceResolver
        Opens files, if they are allowed.

    Raises
    ------
    Unsupported
        No member contains Zarr metadata.
    """

    def __init__(self, path: str, members: dict[str, zipfile.ZipInfo], resolver: SourceResolver) -> None:
        self.path = path
        self.resolver = resolver
        self._documents: dict[str, bytes] = {}
        top = min((key for key in members if _name(key) in METADATA), key=lambda key: key.count("/"), default=None)
        if top is None:
            raise Unsupported(f"{path} is a ZIP file without Zarr metadata ({', '.join(METADATA)})")
        prefix = top[: -len(_name(top))]
        self.members = {key.removeprefix(prefix): one for key, one in members.items() if key.startswith(prefix)}

    @staticmethod
    def found(path: str, resolver: SourceResolver) -> ZippedZarr | None:
        """Open the hierarchy in a file whose name ends in `.zip`; return None for other names.

        Raises
        ------
        DamagedFile
            The file is not a ZIP file, or its directory is damaged.
        Unsupported
            The ZIP file does not contain Zarr.
        """
        if not path.lower().endswith(".zip"):
            return None
        try:
            with unzipped(path) as opened:
                return ZippedZarr(path, {one.filename: one for one in opened.infolist() if not one.is_dir()}, resolver)
        except UNREADABLE as error:
            raise DamagedFile(f"{path}: {error}") from error

    def opened(self, chunk_cache_nbytes: int) -> ArchiveFile:
        """Open the archive."""
        keys = [key for key in self.members if _name(key) in METADATA]
        nbytes = sum(self.members[key].file_size for key in keys)
        if nbytes > MOST_METADATA_NBYTES:
            said = f"{self.path}: its {len(keys)} metadata documents expand to {nbytes} bytes"
            raise DamagedFile(f"{said}, but at most {MOST_METADATA_NBYTES} make sense: unpack it, and open the folder")
        try:
            with unzipped(self.path) as opened:
                self._documents = {key: self._document(opened, key) for key in keys}
        except UNREADABLE as error:
            raise DamagedFile(f"{self.path}: {error}") from error
        resolver = self.resolver.for_document(self.path)
        return ArchiveFile.of_tables(self._documents, self.table, self.path, chunk_cache_nbytes, resolver)

    def _document(self, opened: zipfile.ZipFile, key: str) -> bytes:
        try:
            return opened.read(self.members[key])
        except UNREADABLE as error:
            raise DamagedFile(f"{self.path}: {key}: {error}") from error

    def table(self, array: str) -> Table:
        """Find the chunks of an array.

        Parameters
        ----------
        array : str
            The path of the array in the hierarchy.

        Returns
        -------
        Table
            For each chunk the index of its file, and its offset and length in bytes, as arrays of one axis; no inline
            chunks; and the path of the ZIP file.

        Raises
        ------
        DamagedFile
            The metadata do not describe a chunk grid, or an entry of the directory does not lead to a member.
        Unsupported
            A chunk is compressed by ZIP or encrypted, or there are too many chunks.
        """
        grid = self._grid(array)
        count = math.prod(grid)
        if count > MOST_CHUNKS:
            raise Unsupported(f"array {array} of {self.path} has more than {MOST_CHUNKS} chunks")
        files, offsets, lengths = np.full(count, NO_FILE), np.zeros(count, np.uint64), np.zeros(count, np.uint64)
        with open_regular(self.path) as stream:
            for key, member in self.members.items():
                index = _chunk_index(key, array, grid)
                if index is None:
                    continue
                position = int(np.ravel_multi_index(index, grid)) if grid else 0
                if not is_stored(member):
                    said = f"{self.path}: {key} is compressed or encrypted by ZIP"
                    raise Unsupported(f"{said}: unpack the ZIP file, or write it with zarr.storage.ZipStore's defaults")
                files[position], offsets[position] = 0, member_start(stream, self.path, member)
                lengths[position] = member.file_size
        return (files, offsets, lengths, {}), [self.path]

    def _grid(self, array: str) -> tuple[int, ...]:
        try:
            if f"{array}/zarr.json" in self._documents:
                document = json.loads(self._documents[f"{array}/zarr.json"])
                chunks = document["chunk_grid"]["configuration"]["chunk_shape"]
            else:
                document = json.loads(self._documents[f"{array}/.zarray"])
                chunks = document["chunks"]
            return tuple(ceil_div(length, chunk) for length, chunk in zip(document["shape"], chunks, strict=True))
        except (KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError) as error:
            raise DamagedFile(f"array {array} of {self.path}: its metadata do not describe a chunk grid") from error


@contextmanager
def unzipped(path: str) -> Iterator[zipfile.ZipFile]:
    """Open a ZIP file for reading.

    Raises
    ------
    ReadError
        It is not a regular file.
    zipfile.BadZipFile
        It is not a ZIP file.
    """
    with Sparing(path, MOST_DIRECTORY_NBYTES) as stream, zipfile.ZipFile(stream) as opened:
        yield opened


def is_stored(member: zipfile.ZipInfo) -> bool:
    """Whether ZIP neither compresses nor encrypts a member."""
    return member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & IS_ENCRYPTED


def member_start(stream: BinaryIO, path: str, member: zipfile.ZipInfo) -> int:
    """Find the offset of the bytes of a member in a ZIP file.

    Parameters
    ----------
    stream : binary file object
        The ZIP file, open for reading.
    path : str
        The path of the ZIP file, for messages.
    member : zipfile.ZipInfo
        The member.

    Raises
    ------
    DamagedFile
        The member is not where the directory of the ZIP file says.
    """
    stream.seek(member.header_offset)
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size or not header.startswith(SIGNATURE):
        said = f"{member.filename} is not where the directory of the ZIP file says"
        raise DamagedFile(f"{path}: {said}, at {member.header_offset}: get a good copy")
    _, name_nbytes, extra_nbytes = HEADER.unpack(header)
    return int(member.header_offset + HEADER.size + name_nbytes + extra_nbytes)


def _name(key: str) -> str:
    return key.rpartition("/")[2]


def _chunk_index(key: str, array: str, grid: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the index of the chunk that a key names; None if the key does not name a chunk of the array."""
    if not key.startswith(f"{array}/") or _name(key) in METADATA:
        return None
    numbers = re.split(r"[./]", re.sub(r"^c(?=[./]|$)[./]?", "", key[len(array) + 1 :]))
    if not grid:
        return () if numbers in ([""], ["0"]) else None
    if len(numbers) != len(grid) or not all(number.isascii() and number.isdecimal() for number in numbers):
        return None
    index = tuple(map(int, numbers))
    return index if all(one < length for one, length in zip(index, grid, strict=True)) else None
