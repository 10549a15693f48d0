"""`File`: a local or remote HDF5 file that is open for reading, with h5py's interface."""

from __future__ import annotations

import os
from typing import Any

from hyperslab.archive.far.remote import is_url
from hyperslab.archive.opening import open as open_archive
from hyperslab.errors import DamagedFile, Unsupported
from hyperslab.h5.group import Group, opened
from hyperslab.h5.identifiers import FileID, GroupID, ObjectID
from hyperslab.h5.refused import INSTEAD
from hyperslab.h5.store import Makers, Place, Store

WRITING = ("r+", "w", "w-", "x", "a")
DRIVERS = (None, "sec2", "stdio", "core", "direct", "fileobj", "ros3", "mpio", "split", "windows")
LIBVERS = ("earliest", "v108", "v110", "v112", "v114", "v200", "latest")
SIGNATURE = b"\x89HDF\r\n\x1a\n"
# Options of h5py that have no effect here, because hyperslab has its own caches and takes no locks to read.
TUNING = {
    "rdcc_nslots", "rdcc_nbytes", "rdcc_w0", "track_order", "track_times", "fs_persist", "fs_threshold",
    "fs_page_size", "page_buf_size", "min_meta_keep", "min_raw_keep", "locking", "alignment_threshold",
    "alignment_interval", "meta_block_size", "backing_store", "block_size", "comm", "info", "fileobj",
}  # fmt: skip
# The options of h5py's driver for S3, with hyperslab's names.
S3 = {"secret_id": "key", "secret_key": "secret", "session_token": "token", "aws_region": "region"}


class FileIDOfGroup(FileID, GroupID):
    """The identifier of a file, which is also the identifier of its root group."""


class File(Group):
    """An HDF5 file that is open for reading.

    Parameters
    ----------
    name : str, bytes, PathLike, file object, or ObjectID
        A path, a URL, an open file, or the `id` of an object of an open file.
    mode : str
        Only "r"; any other mode raises ValueError.
    driver : str or None
        A driver that h5py knows. It has no effect: hyperslab reads every file in the same way.
    libver : str, tuple of str, or None
        A version, or two bounds, that h5py knows. It has no effect on reading.
    userblock_size : int or None
        Only None: you can give a size only when you create a file.
    swmr : bool
        Accepted. To see what a writer added meanwhile, open the file again.
    storage_options : Mapping[str, Any] or None
        Options for URLs, as in `hyperslab.open`.
    allowed : iterable of str or PathLike, or None
        Folders and URLs that the file may lead to through links, virtual datasets and external raw files, as in
        `hyperslab.open`.
    **kwds : Any
        h5py's options for caches, locks and drivers, which have no effect here; h5py's credentials for S3
        (`secret_id`, `secret_key`, `session_token`, `aws_region`) are used.

    Raises
    ------
    ValueError
        The mode is not "r", the driver is unknown, or an option is only for new files.
    FileNotFoundError
        There is no such file.
    OSError
        The file is not HDF5, or hyperslab cannot open it.
    KeyError
        h5py does not know the `libver`.
    TypeError
        h5py does not know an option.
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
        """The driver that you gave; by default "sec2", or "fileobj" for a file object."""
        self._open()
        return str(self._store.options.get("driver", "sec2"))

    @property
    def libver(self) -> tuple[str, str]:
        """The format versions that a writer may use, as h5py shows them. They do not affect reading."""
        self._open()
        asked = self._store.options.get("libver")
        if isinstance(asked, tuple):
            return (asked[0], "v200" if asked[1] == "latest" else asked[1])
        return ("earliest", "v200")

    @property
    def userblock_size(self) -> int:
        """The number of bytes before the HDF5 data."""
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
        """HDF5's default of 2048 bytes; it only affects writing."""
        self._open()
        return 2048

    @property
    def swmr_mode(self) -> bool:
        """The value of `swmr` with which you opened the file."""
        self._open()
        return bool(self._store.options.get("swmr", False))

    @swmr_mode.setter
    def swmr_mode(self, value: bool) -> None:
        raise ValueError(f"swmr_mode cannot be set, because the file is open for reading: {INSTEAD}")

    def _open(self) -> None:
        self._store.opened  # noqa: B018 -- raises if the file is closed

    def close(self) -> None:
        """Close the file. After this you cannot use its objects."""
        self._store.close()

    def flush(self) -> None:
        """Do nothing: there is nothing to write."""
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
        raise IsADirectoryError(21, f"Unable to synchronously open file ({given!r} is a folder)")
    try:
        root = open_archive(given, storage_options=options or None, allowed=allowed)
    except (DamagedFile, Unsupported) as error:
        raise OSError(f"Unable to synchronously open file ({error})") from error
    if root.format != "hdf5":
        root.close()
        raise OSError(f"Unable to synchronously open file (file signature not found: {shown} is {root.format})")
    filename = root.filename if not is_object and is_url(given) else shown
    return Store(root.opened, filename, Makers(File, opened), name if is_object else None)


def is_hdf5(fname: Any) -> bool:
    """Whether a local path leads to an HDF5 file; False if there is no file."""
    path = os.fsdecode(fname)
    if not os.path.isfile(path):  # noqa: PTH113
        return False
    with open(path, "rb") as file:
        return _signature_at(file) is not None


def _signature_at(file: Any) -> int | None:
    """Find the offset of HDF5's signature: 0, or 512 times a power of two; None if the file does not have it."""
    position = 0
    while True:
        file.seek(position)
        begin = file.read(len(SIGNATURE))
        if begin == SIGNATURE:
            return position
        if len(begin) < len(SIGNATURE):
            return None
        position = 512 if position == 0 else 2 * position
