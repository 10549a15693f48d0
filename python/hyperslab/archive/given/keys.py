"""Zarr hierarchies that have neither a folder nor a URL: in a ZIP file, in memory, or in a store of your program.

In a ZIP file, uncompressed members are read in place. The keys of any other store are read into memory when you open
the store, at most `MOST_NBYTES` in total.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable
from typing import Any

from hyperslab._core import GivenFile
from hyperslab.archive.given.files import Given, secret_options
from hyperslab.archive.given.zipped_zarr import UNREADABLE, is_stored, member_start, unzipped
from hyperslab.errors import DamagedFile, Unsupported, UsageError
from hyperslab.regular_files import open_regular

MOST_NBYTES = 256 << 20
Target = bytes | tuple[str, int, int]  # the value of a key, or the file, offset and length where it is


class GivenKeys(Given):
    """The keys of a Zarr hierarchy with their values.

    Parameters
    ----------
    name : str
        The name for messages.
    version : str
        Changes when the hierarchy changes.
    collect : callable
        Returns the value of each key, or the file, offset and length where it is.
    again : tuple
        A function and its arguments, which open the hierarchy in the process that unpickles it.
    """

    name: str

    def __init__(
        self, name: str, version: str, collect: Callable[[], dict[str, Target]], again: tuple[Any, ...]
    ) -> None:
        self.name, self._version, self._collect, self._again = name, version, collect, again

    def file(self) -> GivenFile:
        """Return the object through which the Rust core reads the hierarchy: references, as kerchunk writes them."""
        references = {key: _reference(target) for key, target in self._collect().items()}
        document = json.dumps({"version": 1, "refs": references}).encode()
        digest = hashlib.blake2b(self._version.encode() + document, digest_size=16).hexdigest()
        return GivenFile.of_bytes(self.name, digest, document)

    def __reduce__(self) -> tuple[Any, ...]:
        make, *arguments = self._again
        return make, tuple(arguments)

    @staticmethod
    def of_zip(path: str, prefix: str = "") -> GivenKeys:
        """Open the hierarchy in the folder `prefix` of a ZIP file."""
        path = os.path.abspath(path)  # noqa: PTH100
        about = os.stat(path)  # noqa: PTH116
        again = (GivenKeys.of_zip, path, prefix)
        return GivenKeys(path, f"{about.st_size} {about.st_mtime_ns}", lambda: _entries(path, prefix), again)

    @staticmethod
    def of_zarr(store: Any, path: str = "") -> GivenKeys:
        """Open the hierarchy below a path of a zarr-python store."""
        kind = type(store).__name__
        if kind == "ZipStore":
            return GivenKeys.of_zip(os.fspath(store.path), path)
        again = (GivenKeys.of_zarr, store, path) if kind == "MemoryStore" else (_unpickled, kind)
        return GivenKeys(f"<{kind}>", "", lambda: _of_store(store, path), again)

    @staticmethod
    def of_fsspec(fs: Any, path: str) -> GivenKeys:
        """Open the hierarchy in a folder of an fsspec file system."""
        archive = getattr(getattr(fs, "zip", None), "filename", None)
        if isinstance(archive, str) and os.path.isfile(archive):  # noqa: PTH113
            return GivenKeys.of_zip(archive, path)
        kind = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
        is_secret = secret_options(fs.storage_options)
        again = (_unpickled, f"{kind}://") if is_secret else (GivenKeys.of_fsspec, fs, path)
        return GivenKeys(f"{kind}://{path.strip('/')}", "", lambda: _of_fsspec(fs, path), again)


def _unpickled(kind: str) -> None:
    raise UsageError(f"{kind}: this store may contain secrets, so pickles leave it out: open it in this process")


def _reference(target: Target) -> str | list[str | int]:
    if isinstance(target, bytes):
        return "base64:" + base64.b64encode(target).decode()
    return list(target)


def _entries(path: str, prefix: str) -> dict[str, Target]:
    """Find the members of a ZIP file below a folder. If several members have the same name, the last one counts."""
    prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
    targets: dict[str, Target] = {}
    left = MOST_NBYTES
    try:
        with unzipped(path) as archive, open_regular(path) as file:
            for entry in archive.infolist():
                if entry.is_dir() or not entry.filename.startswith(prefix):
                    continue
                key = entry.filename[len(prefix) :]
                if is_stored(entry):
                    targets[key] = (path, member_start(file, path, entry), entry.file_size)
                    continue
                left -= entry.file_size
                if left < 0:
                    said = f"{path} is a ZIP file with more than {MOST_NBYTES >> 20} MiB of compressed members"
                    raise Unsupported(f"{said}: write it without compression, as zarr-python does, or unpack it")
                targets[key] = archive.read(entry)
    except UNREADABLE as error:
        raise DamagedFile(f"{path} is not a complete ZIP file ({error}): get a good copy") from error
    return targets


def _of_store(store: Any, path: str) -> dict[str, Target]:
    from zarr.core.buffer import default_buffer_prototype
    from zarr.core.sync import sync

    prefix = f"{path.strip('/')}/" if path.strip("/") else ""

    async def collected() -> dict[str, Target]:
        targets: dict[str, Target] = {}
        left = MOST_NBYTES
        async for key in store.list_prefix(prefix):
            held = await store.get(key, default_buffer_prototype())
            if held is not None:
                targets[key.removeprefix(prefix)] = held.to_bytes()
                left = _less(left, len(held), type(store).__name__)
        return targets

    return sync(collected())


def _of_fsspec(fs: Any, path: str) -> dict[str, Target]:
    root = fs._strip_protocol(path).strip("/")
    targets: dict[str, Target] = {}
    left = MOST_NBYTES
    for name, info in fs.find(path, detail=True).items():
        left = _less(left, info.get("size") or 0, f"{path} of {type(fs).__name__}")
        targets[name.strip("/").removeprefix(root).lstrip("/")] = fs.cat_file(name)
    return targets


def _less(left: int, nbytes: int, name: str) -> int:
    if nbytes > left:
        said = "copy it to a folder, a ZIP file or an object store"
        raise Unsupported(f"{name} has more than {MOST_NBYTES >> 20} MiB, too much to read into memory: {said}")
    return left - nbytes
