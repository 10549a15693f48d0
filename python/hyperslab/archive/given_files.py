"""Files that a program has already: bytes, open files, and files of stores that only their own library can read.

Bytes are read where they are. Everything else is read by the object itself, many ranges at a time where it can do that:
`hyperslab.stats()` counts its requests under its kind.
"""

from __future__ import annotations

import errno
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
from hyperslab.archive.remote import OPEN_OPTIONS
from hyperslab.archive.store_options import OF_READING
from hyperslab.errors import UsageError

ACCEPTED = (
    "give a path, a URL, bytes, a file that is open for reading in binary mode, a store of fsspec, obstore or zarr "
    "as it is or as (store, path), references as a dict, or a list of these"
)
# Options of file systems that pickles may hold; everything else may be secret.
NOT_SECRET = OF_READING | OPEN_OPTIONS | {
    "fo", "protocol", "target_protocol", "cache_storage", "cache_check", "check_files", "expiry_time", "compression",
    "host", "port", "org", "repo", "sha", "branch",
}  # fmt: skip
MOST_AT_A_TIME = 16  # requests of a store that makes them side by side
Ranges = list[tuple[int, int]]  # offset and length


class Given:
    """A file that a program has: what it is called, and what opens it."""

    name: str
    options: Mapping[str, Any] = MappingProxyType({})  # for the URLs that it names
    takes_options = False

    def opened(self, chunk_cache_nbytes: int, resolver: DocumentResolver) -> ArchiveFile:
        """The compiled part of the open file."""
        return ArchiveFile.given(self.file(), chunk_cache_nbytes, resolver)

    def file(self) -> GivenFile:
        """What the compiled part reads."""
        raise NotImplementedError


class GivenBytes(Given):
    """Bytes in memory."""

    def __init__(self, data: bytes, name: str = "<bytes>") -> None:
        self.name, self._data = name, data

    def file(self) -> GivenFile:
        """What the compiled part reads: these bytes, not a copy."""
        digest = hashlib.blake2b(self._data, digest_size=16).hexdigest()
        return GivenFile.of_bytes(self.name, digest, self._data)

    def __reduce__(self) -> tuple[Any, ...]:
        return GivenBytes, (self._data, self.name)


class GivenObject(Given):
    """An object with `read` and `seek`. It keeps its position, and is never closed."""

    def __init__(self, source: Any) -> None:
        self._source, self._lock = source, Lock()
        self.name = f"<{type(source).__name__}>"

    def file(self) -> GivenFile:
        """What the compiled part reads."""
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
    """Bytes from an offset on: one call of `read` may bring fewer than are wanted."""
    parts, left = [], nbytes
    while left:
        part = read(offset + nbytes - left, left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


class GivenOfFsspec(Given):
    """A file of a file system of fsspec that only this one can read."""

    def __init__(self, fs: Any, path: str) -> None:
        self._fs, self._path = fs, path
        kind = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
        self._host = f"{kind}://"
        self.name = f"{kind}://{fs._strip_protocol(path).partition('?')[0].lstrip('/')}"

    def opened(self, chunk_cache_nbytes: int, resolver: DocumentResolver) -> ArchiveFile:
        """The compiled part of the open file; of a file that is kept here as a whole, of that copy."""
        if type(self._fs).__name__ in ("SimpleCacheFileSystem", "WholeFileCacheFileSystem"):
            with self._fs.open(self._path) as copy:
                local = getattr(copy, "name", None)
            if isinstance(local, str) and os.path.isfile(local):  # noqa: PTH113
                return ArchiveFile(local, chunk_cache_nbytes, resolver)
        return super().opened(chunk_cache_nbytes, resolver)

    def file(self) -> GivenFile:
        """What the compiled part reads."""
        if type(self._fs).__name__ == "MemoryFileSystem":
            return GivenBytes(self._fs.cat_file(self._path), self.name).file()
        info = self._fs.info(self._path)
        if info.get("type") == "directory":
            raise UsageError(f"{self.name} is a folder that hyperslab cannot list: {ACCEPTED}")
        if info.get("size") is None:
            raise UsageError(f"{self.name}: its file system does not say how long it is; give its bytes (fs.cat_file)")
        if "archive" in str(type(self._fs).__mro__).lower():  # zip and tar: no range of a packed file is read alone
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
            said = f"{self.name} was opened with {', '.join(secret)}, which may be secret: pickles hold none of that"
            raise UsageError(f"{said}; open it in the other process")
        return GivenOfFsspec, (self._fs, self._path)


def secret_options(options: Mapping[str, Any]) -> set[str]:
    """The names of options that may be secret, and of those in them; URLs may hold a password or a signature."""
    found = set()
    for name, value in options.items():
        if isinstance(value, Mapping):
            found |= secret_options(value)
        elif name not in NOT_SECRET or (isinstance(value, str) and any(sign in value for sign in "?@")):
            found.add(name)
    return found


class GivenOfObstore(Given):
    """A file of a store of obstore that only obstore can read."""

    def __init__(self, store: Any, path: str) -> None:
        self._store, self._path = store, path
        self.name = f"<{type(store).__name__}>/{path}"

    def file(self) -> GivenFile:
        """What the compiled part reads."""
        import obstore

        try:
            found = obstore.head(self._store, self._path)
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.name) from None
        version = found.get("e_tag") or f"{found['size']} bytes of {found.get('last_modified')}"
        host, size = type(self._store).__name__, found["size"]
        return GivenFile.of_reader(self.name, str(version), host, size, self._read, MOST_AT_A_TIME)

    def _read(self, ranges: Ranges) -> list[bytes]:
        import obstore

        starts, lengths = [offset for offset, _ in ranges], [nbytes for _, nbytes in ranges]
        return [bytes(part) for part in obstore.get_ranges(self._store, self._path, starts=starts, lengths=lengths)]

    def __reduce__(self) -> tuple[Any, ...]:
        raise UsageError(f"{self.name}: a store of obstore may hold secrets, pickles hold none: give a URL")


def given_of(source: Any) -> str | Given:
    """What a program has, or the path of the same file where it has a name.

    Raises
    ------
    UsageError
        Nothing can be read from it.
    """
    if isinstance(source, bytes):
        return GivenBytes(source)
    if isinstance(source, bytearray | memoryview):
        return GivenBytes(bytes(source))
    if isinstance(source, io.BytesIO):
        return GivenBytes(source.getvalue(), f"<{type(source).__name__}>")
    kind = type(source).__name__
    if isinstance(source, io.TextIOBase):
        raise UsageError(f"{kind} is open in text mode: open it in binary mode, open(path, 'rb')")
    if not (callable(getattr(source, "read", None)) and callable(getattr(source, "seek", None))):
        raise UsageError(f"hyperslab cannot open a {kind}: {ACCEPTED}")
    if callable(getattr(source, "readable", None)) and not source.readable():
        raise UsageError(f"{kind} is not open for reading: open it with mode 'rb'")
    if callable(getattr(source, "seekable", None)) and not source.seekable():
        raise UsageError(f"{kind} can be read from its start to its end only: give its bytes, .read()")
    return _path_of(source) or GivenObject(source)


def is_given(source: object) -> bool:
    """Whether it is bytes, or an object that is read like a file."""
    if isinstance(source, bytes | bytearray | memoryview):
        return True
    return callable(getattr(source, "read", None)) and not isinstance(source, str | os.PathLike)


def regular_descriptor(source: Any) -> int | None:
    """The descriptor of an open file whose bytes are those of a regular file; None of what unpacks or decodes them."""
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
    """The path of an open file, if it still leads to that file."""
    name, descriptor = getattr(source, "name", None), regular_descriptor(source)
    if descriptor is None or not isinstance(name, str | bytes):
        return None
    try:
        is_same = os.path.samestat(os.fstat(descriptor), os.stat(name))  # noqa: PTH116
    except OSError:
        return None
    return os.path.abspath(os.fsdecode(name)) if is_same else None  # noqa: PTH100
