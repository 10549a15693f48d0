"""`File`: an HDF5 file of this machine or far away, open for reading, as h5py's is."""

from __future__ import annotations

import os
from typing import Any

from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.remote import is_url
from hyperslab.errors import DamagedFile, Unsupported
from hyperslab.h5.group import Group, opened
from hyperslab.h5.identifiers import FileID, GroupID, ObjectID
from hyperslab.h5.refused import INSTEAD
from hyperslab.h5.store import Makers, Place, Store

WRITING = ("r+", "w", "w-", "x", "a")
DRIVERS = (None, "sec2", "stdio", "core", "direct", "fileobj", "ros3", "mpio", "split", "windows")
LIBVERS = ("earliest", "v108", "v110", "v112", "v114", "v200", "latest")
SIGNATURE = b"\x89HDF\r\n\x1a\n"
# What h5py takes for opening, and means nothing to a reader that has caches and locks of its own.
TUNING = {
    "rdcc_nslots", "rdcc_nbytes", "rdcc_w0", "track_order", "track_times", "fs_persist", "fs_threshold",
    "fs_page_size", "page_buf_size", "min_meta_keep", "min_raw_keep", "locking", "alignment_threshold",
    "alignment_interval", "meta_block_size", "backing_store", "block_size", "comm", "info", "fileobj",
}  # fmt: skip
# What h5py's driver for S3 takes, by the names that hyperslab has for it.
S3 = {"secret_id": "key", "secret_key": "secret", "session_token": "token", "aws_region": "region"}


class FileIDOfGroup(FileID, GroupID):
    """A file, which is its own root group."""


class File(Group):
    """An HDF5 file, open for reading.

    Parameters
    ----------
    name : Any
        A path, a URL, an open file, or an object of an open file.
    mode : str
        Only "r": others are refused.
    driver : str | None
        Taken, as far as h5py knows it: hyperslab reads every file in its own way.
    libver : Any
        Taken likewise.
    userblock_size : int | None
        Refused, as h5py refuses it for reading.
    swmr : bool
        Taken; what a writer adds is seen when the file is opened again.
    storage_options : Any
        For URLs, what `hyperslab.open` takes.
    allowed : Any
        Where the file may lead by links and virtual datasets, as in `hyperslab.open`.
    **kwds : Any
        h5py's options for caches, locks and drivers: taken, without a meaning here.

    Raises
    ------
    ValueError
        Another mode than "r" is asked for.
    FileNotFoundError
        There is no such file.
    OSError
        The file is not HDF5, or cannot be opened.
    """

    def __init__(
        self,
        name: Any,
        mode: str = "r",
        driver: str | None = None,
        libver: Any = None,
        userblock_size: int | None = None,
        swmr: bool = False,
        storage_options: Any = None,
        allowed: Any = None,
        **kwds: Any,
    ) -> None:
        if isinstance(name, ObjectID):
            if not name.valid:
                raise ValueError("Not an id of a file object: the file was closed")
            store = name.place.store
        else:
            _check(mode, driver, libver, userblock_size, kwds)
            store = _opened(name, driver, storage_options, allowed, kwds)
            store.options = {"driver": _driver(name, driver), "libver": libver, "swmr": bool(swmr)}
        super().__init__(FileIDOfGroup(Place(store, store.root, "/")))

    @property
    def filename(self) -> str:
        """The path or URL that was opened."""
        self._open()
        return self._store.filename

    @property
    def mode(self) -> str:
        """Always "r"."""
        self._open()
        return "r"

    @property
    def driver(self) -> str:
        """The driver that was asked for; "sec2" by default."""
        self._open()
        return str(self._store.options.get("driver", "sec2"))

    @property
    def libver(self) -> tuple[str, str]:
        """The versions of the format that a writer might use, as h5py shows them; a reader reads all."""
        self._open()
        asked = self._store.options.get("libver")
        if isinstance(asked, tuple):
            return (asked[0], "v200" if asked[1] == "latest" else asked[1])
        return ("earliest", "v200")

    @property
    def userblock_size(self) -> int:
        """Bytes before HDF5's own."""
        self._open()
        given = self._store.given
        if given is not None:
            before = given.tell()
            try:
                return _signature_at(given) or 0
            finally:
                given.seek(before)
        if self._store.opened.is_remote:
            return 0
        with open(self._store.opened.path, "rb") as file:
            return _signature_at(file) or 0

    @property
    def meta_block_size(self) -> int:
        """HDF5's default: a reader writes no blocks."""
        self._open()
        return 2048

    @property
    def swmr_mode(self) -> bool:
        """Whether the file was opened beside a writer."""
        self._open()
        return bool(self._store.options.get("swmr", False))

    @swmr_mode.setter
    def swmr_mode(self, value: bool) -> None:
        raise ValueError(f"the file is open for reading, for good: {INSTEAD}")

    def _open(self) -> None:
        self._store.opened  # noqa: B018 -- raises of a closed file

    def close(self) -> None:
        """Let go of the file: nothing can be had from its objects any more."""
        self._store.close()

    def flush(self) -> None:
        """Nothing: nothing was written."""
        self._open()

    def __enter__(self) -> File:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self:
            return "<Closed HDF5 file>"
        return f'<HDF5 file "{os.path.basename(self.filename)}" (mode {self.mode})>'  # noqa: PTH119


def _check(mode: str, driver: str | None, libver: Any, userblock_size: Any, kwds: dict[str, Any]) -> None:
    if mode in WRITING:
        raise ValueError(f'mode "{mode}" is refused: {INSTEAD}')
    if mode != "r":
        raise ValueError("Invalid mode; must be one of r, r+, w, w-, x, a")
    if userblock_size is not None:
        raise ValueError("User block may only be specified when creating a file")
    if driver not in DRIVERS:
        raise ValueError(f"Unknown driver type {driver!r}")
    if kwds.pop("fs_strategy", None):
        raise ValueError("Unable to set file space strategy of an existing file")
    for bound in libver if isinstance(libver, tuple) else (libver,):
        if bound is not None and bound not in LIBVERS:
            raise KeyError(bound)
    for name in kwds:
        if name not in TUNING and name not in S3:
            raise TypeError(f"{name!r} is an invalid keyword argument for this function")


def _driver(name: Any, driver: str | None) -> str:
    if driver is not None:
        return driver
    return "fileobj" if hasattr(name, "read") and hasattr(name, "seek") else "sec2"


def _opened(name: Any, driver: str | None, storage_options: Any, allowed: Any, kwds: dict[str, Any]) -> Store:
    is_object = hasattr(name, "read") and hasattr(name, "seek")
    if is_object and driver not in (None, "fileobj"):
        raise ValueError("Driver must be 'fileobj' for file-like object if specified.")
    given = name if is_object else os.fsdecode(name)
    if not is_object and not given:
        raise OSError("Unable to synchronously open file (invalid file name)")
    options = dict(storage_options or {})
    for theirs, ours in S3.items():
        value = kwds.get(theirs)
        if value:
            options[ours] = value.decode() if isinstance(value, bytes) else value
    shown = repr(name) if is_object else given
    if not is_object and not is_url(given) and os.path.isdir(given):  # noqa: PTH112
        raise IsADirectoryError(21, f"Unable to synchronously open file (it is a folder: {given!r})")
    try:
        found = open_archive(given, storage_options=options or None, allowed=allowed)
    except (DamagedFile, Unsupported) as error:
        raise OSError(f"Unable to synchronously open file ({error})") from error
    if found.format != "hdf5":
        found.close()
        raise OSError(f"Unable to synchronously open file (file signature not found: {shown} is {found.format})")
    filename = found.filename if not is_object and is_url(given) else shown
    return Store(found.opened, filename, Makers(File, opened), name if is_object else None)


def is_hdf5(fname: Any) -> bool:
    """Whether a file of this machine is HDF5; False if there is none."""
    path = os.fsdecode(fname)
    if not os.path.isfile(path):  # noqa: PTH113
        return False
    with open(path, "rb") as file:
        return _signature_at(file) is not None


def _signature_at(file: Any) -> int | None:
    """Where HDF5's signature is: at 0, 512, or a power of two times that; None if it is nowhere."""
    position = 0
    while True:
        file.seek(position)
        found = file.read(len(SIGNATURE))
        if found == SIGNATURE:
            return position
        if len(found) < len(SIGNATURE):
            return None
        position = 512 if position == 0 else 2 * position
