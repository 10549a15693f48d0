"""Files that your program already has: bytes, open files, and files that only the library of their store can read.

hyperslab reads bytes in place. It reads any other object through the object's own methods, several byte ranges at a
time if the object can do that. `hyperslab.stats()` counts these requests under the type of the object.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Mapping
from threading import Lock
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from hyperslab._core import ArchiveFile, DocumentResolver, GivenFile
from hyperslab.archive.far.remote import OPEN_OPTIONS
from hyperslab.archive.far.store_options import OF_READING
from hyperslab.errors import NoSuchFile, UsageError

ACCEPTED = (
    "give a path, a URL, bytes, a file that is open for reading in binary mode, a store of fsspec, obstore or zarr "
    "alone or as (store, path), references as a dict, or a list of these"
)
# Options of file systems that pickles may contain; any other option may be secret.
NOT_SECRET = OF_READING | OPEN_OPTIONS | {
    "fo", "protocol", "target_protocol", "cache_storage", "cache_check", "check_files", "expiry_time", "compression",
    "host", "port", "org", "repo", "sha", "branch",
}  # fmt: skip
MOST_AT_A_TIME = 16  # requests to a store that can serve them in parallel
Ranges = list[tuple[int, int]]  # offset and length, in bytes


class Given:
    """A file that your program already has. `name` stands for it in messages."""

    name: str
    options: Mapping[str, Any] = MappingProxyType({})  # storage options for the URLs that the file names
    takes_options = False

    def opened(self, chunk_cache_nbytes: int, resolver: DocumentResolver) -> ArchiveFile:
        """Open the file as an archive.

        Parameters
        ----------
        chunk_cache_nbytes : int
            Memory for decoded chunks, in bytes.
        resolver : DocumentResolver
            Opens the files that this file leads to.
        """
        return ArchiveFile.given(self.file(), chunk_cache_nbytes, resolver)

    def file(self) -> GivenFile:
        """Return the object through which the Rust core reads the bytes."""
        raise NotImplementedError


class GivenBytes(Given):
    """Bytes in memory.

    Parameters
    ----------
    data : bytes
        The bytes of a whole file.
    name : str
        The name for messages.
    """

    name: str

    def __init__(self, data: bytes, name: str = "<bytes>") -> None:
        self.name, self._data = name, data

    def file(self) -> GivenFile:
        """Return the object through which the Rust core reads the bytes, without copying them."""
        digest = hashlib.blake2b(self._data, digest_size=16).hexdigest()
        return GivenFile.of_bytes(self.name, digest, self._data)

    def __reduce__(self) -> tuple[Any, ...]:
        return GivenBytes, (self._data, self.name)


class GivenObject(Given):
    """An object with `read` and `seek`. Reading leaves its position as it was, and nothing closes it.

    Parameters
    ----------
    source : file object
        An object that is open for reading bytes.
    """

    def __init__(self, source: Any) -> None:
        self._source, self._lock = source, Lock()
        self.name: str = f"<{type(source).__name__}>"

    def file(self) -> GivenFile:
        """Return the object through which the Rust core reads the bytes."""
        descriptor = regular_descriptor(self._source)
        if descriptor is None:
            nbytes, read, most = self._at_end(), self._read, 1
        else:
            nbytes, read, most = os.fstat(descriptor).st_size, self._read_by_position, MOST_AT_A_TIME
        host = type(self._source).__name__
        return GivenFile.of_reader(self.name, uuid4().hex, host, nbytes, read, most)

    def _at_end(self) -> int:
        with self._lock:
            before = self._source.tell()
            nbytes = self._source.seek(0, os.SEEK_END)
            nbytes = self._source.tell() if nbytes is None else nbytes
            self._source.seek(before)
        return int(nbytes)

    def _read(self, ranges: Ranges) -> list[bytes]:
        with self._lock:
            before = self._source.tell()
            try:
                return [self._part(offset, nbytes) for offset, nbytes in ranges]
            finally:
                self._source.seek(before)

    def _part(self, offset: int, nbytes: int) -> bytes:
        self._source.seek(offset)
        return _filled(lambda _, left: bytes(self._source.read(left)), offset, nbytes)

    def _read_by_position(self, ranges: Ranges) -> list[bytes]:
        descriptor = self._source.fileno()
        return [_filled(lambda at, left: os.pread(descriptor, left, at), *each) for each in ranges]

    def __reduce__(self) -> tuple[Any, ...]:
        return GivenObject, (self._source,)


def _filled(read: Any, offset: int, nbytes: int) -> bytes:
    """Read `nbytes` bytes at an offset. A call of `read` may return fewer bytes than it was asked for, so repeat it."""
    parts, left = [], nbytes
    while left:
        part = read(offset + nbytes - left, left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


class GivenOfFsspec(Given):
    """A file of an fsspec file system that only fsspec can read.

    Parameters
    ----------
    fs : fsspec.AbstractFileSystem
        The file system.
    path : str
        The path of the file in it.
    """

    def __init__(self, fs: Any, path: str) -> None:
        self._fs, self._path = fs, path
        kind = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
        self._host = f"{kind}://"
        self.name: str = f"{kind}://{fs._strip_protocol(path).partition('?')[0].lstrip('/')}"

    def opened(self, chunk_cache_nbytes: int, resolver: DocumentResolver) -> ArchiveFile:
        """Open the file as an archive. If fsspec caches it as a whole, open the local copy."""
        if type(self._fs).__name__ in ("SimpleCacheFileSystem", "WholeFileCacheFileSystem"):
            with self._fs.open(self._path) as copy:
                local = getattr(copy, "name", None)
            if isinstance(local, str) and os.path.isfile(local):  # noqa: PTH113
                return ArchiveFile(local, chunk_cache_nbytes, resolver)
        return super().opened(chunk_cache_nbytes, resolver)

    def file(self) -> GivenFile:
        """Return the object through which the Rust core reads the bytes.

        Raises
        ------
        UsageError
            The path is a folder, or the file system does not know the length of the file.
        """
        if type(self._fs).__name__ == "MemoryFileSystem":
            return GivenBytes(self._fs.cat_file(self._path), self.name).file()
        info = self._fs.info(self._path)
        if info.get("type") == "directory":
            raise UsageError(f"{self.name} is a folder, which hyperslab cannot list: {ACCEPTED}")
        if info.get("size") is None:
            raise UsageError(f"{self.name}: the file system does not know its length; give its bytes (fs.cat_file)")
        if "archive" in str(type(self._fs).__mro__).lower():  # zip and tar cannot read a byte range of a packed file
            return GivenObject(self._fs.open(self._path)).file()
        most = MOST_AT_A_TIME if self._fs.async_impl else 1
        return GivenFile.of_reader(self.name, self._version(info), self._host, info["size"], self._read, most)

    def _version(self, info: Mapping[str, Any]) -> str:
        try:
            return str(self._fs.ukey(self._path))
        except (NotImplementedError, OSError, KeyError, TypeError):
            return f"{info['size']} bytes"

    def _read(self, ranges: Ranges) -> list[bytes]:
        starts, ends = [offset for offset, _ in ranges], [offset + nbytes for offset, nbytes in ranges]
        return list(self._fs.cat_ranges([self._path] * len(ranges), starts, ends, on_error="raise"))

    def __reduce__(self) -> tuple[Any, ...]:
        secret = sorted(secret_options(self._fs.storage_options))
        if secret:
            said = f"{self.name} was opened with {', '.join(secret)}, which may be secret, so it cannot be pickled"
            raise UsageError(f"{said}: open it in the other process")
        return GivenOfFsspec, (self._fs, self._path)


def secret_options(options: Mapping[str, Any]) -> set[str]:
    """Return the names of the options that may be secret, nested ones included.

    A URL counts as secret if it may contain a password or a signature.
    """
    secrets = set()
    for name, value in options.items():
        if isinstance(value, Mapping):
            secrets |= secret_options(value)
        elif name not in NOT_SECRET or (isinstance(value, str) and any(sign in value for sign in "?@")):
            secrets.add(name)
    return secrets


class GivenOfObstore(Given):
    """A file of an obstore store that only obstore can read.

    Parameters
    ----------
    store : obstore store
        The store.
    path : str
        The path of the file in it.
    """

    def __init__(self, store: Any, path: str) -> None:
        self._store, self._path = store, path
        self.name: str = f"<{type(store).__name__}>/{path}"

    def file(self) -> GivenFile:
        """Return the object through which the Rust core reads the bytes.

        Raises
        ------
        FileNotFoundError
            The store has no such file.
        """
        import obstore

        try:
            about = obstore.head(self._store, self._path)
        except FileNotFoundError:
            raise NoSuchFile.at(self.name) from None
        version = about.get("e_tag") or f"{about['size']} bytes of {about.get('last_modified')}"
        host, size = type(self._store).__name__, about["size"]
        return GivenFile.of_reader(self.name, str(version), host, size, self._read, MOST_AT_A_TIME)

    def _read(self, ranges: Ranges) -> list[bytes]:
        import obstore

        starts, lengths = [offset for offset, _ in ranges], [nbytes for _, nbytes in ranges]
        return [bytes(part) for part in obstore.get_ranges(self._store, self._path, starts=starts, lengths=lengths)]

    def __reduce__(self) -> tuple[Any, ...]:
        raise UsageError(f"{self.name}: its obstore store may contain secrets, so it cannot be pickled: give a URL")


def given_of(source: Any) -> str | Given:
    """Wrap bytes or a file object, or find its path.

    Parameters
    ----------
    source : bytes-like or file object
        What your program already has.

    Returns
    -------
    str or Given
        The absolute path, if `source` is an open local file that still has its name; otherwise the wrapped object.

    Raises
    ------
    UsageError
        hyperslab cannot read from it; the message says why, and what you can give instead.
    """
    if isinstance(source, bytes):
        return GivenBytes(source)
    if isinstance(source, bytearray | memoryview):
        return GivenBytes(bytes(source))
    if isinstance(source, io.BytesIO):
        return GivenBytes(source.getvalue(), f"<{type(source).__name__}>")
    kind = type(source).__name__
    if isinstance(source, io.TextIOBase):
        raise UsageError(f"this {kind} is open in text mode: open it in binary mode, open(path, 'rb')")
    if not (callable(getattr(source, "read", None)) and callable(getattr(source, "seek", None))):
        raise UsageError(f"hyperslab cannot open an object of type {kind}: {ACCEPTED}")
    if callable(getattr(source, "readable", None)) and not source.readable():
        raise UsageError(f"this {kind} is not open for reading: open it with mode 'rb'")
    if callable(getattr(source, "seekable", None)) and not source.seekable():
        raise UsageError(f"this {kind} cannot seek, so hyperslab cannot read parts of it: give its bytes, .read()")
    return _path_of(source) or GivenObject(source)


def is_given(source: object) -> bool:
    """Whether `source` is bytes or an object with a method `read`."""
    if isinstance(source, bytes | bytearray | memoryview):
        return True
    return callable(getattr(source, "read", None)) and not isinstance(source, str | os.PathLike)


def regular_descriptor(source: Any) -> int | None:
    """Return the descriptor of an open regular file; None for any other object, such as one that decompresses."""
    if not isinstance(source, io.FileIO | io.BufferedReader | io.BufferedRandom) or not hasattr(os, "pread"):
        return None
    if not isinstance(getattr(source, "raw", source), io.FileIO):
        return None
    try:
        descriptor = source.fileno()
        return descriptor if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except (OSError, ValueError):
        return None


def _path_of(source: Any) -> str | None:
    """Return the absolute path of an open file; None if that path no longer leads to the same file."""
    name, descriptor = getattr(source, "name", None), regular_descriptor(source)
    if descriptor is None or not isinstance(name, str | bytes):
        return None
    try:
        is_same = os.path.samestat(os.fstat(descriptor), os.stat(name))  # noqa: PTH116
    except OSError:
        return None
    return os.path.abspath(os.fsdecode(name)) if is_same else None  # noqa: PTH100
