"""Files to which versions are added: opening them, creating them, and removing what was never committed."""

from __future__ import annotations

import math
import os
import shutil
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py._hl.filters import guess_chunk

from hyperslab import libhdf5
from hyperslab.chunk_grid import chunk_counts
from hyperslab.errors import DamagedFile, NoSuchFile, StaleJournal, Unsupported, UsageError
from hyperslab.journal.journal import (
    Journal,
    System,
    Torn,
    contradiction,
    found_journal,
    journal_path,
    remove_journal,
    sync_folder,
)
from hyperslab.journal.journaled_file import JournaledFile
from hyperslab.journal.settling import is_readable
from hyperslab.journal.write_guard import empty_file
from hyperslab.meant import meant
from hyperslab.versions.commit.attributes import is_flagged
from hyperslab.versions.commit.chunk_store import ChunkStore, is_text
from hyperslab.versions.commit.outcome import told
from hyperslab.versions.layout import names as layout
from hyperslab.versions.layout.elements import as_new_elements, fill_element
from hyperslab.versions.layout.fingerprints import Fingerprints, check_never_committed
from hyperslab.versions.layout.names import DATA, DATA_VERSION, DEFAULT_CHUNK_LENGTH, FIRST_VERSION, VERSIONS, Array
from hyperslab.versions.layout.slots import MISSING, check_chunk_count
from hyperslab.versions.layout.table import data_version_of, is_committed
from hyperslab.versions.stage.staged_array import StagedArray
from hyperslab.versions.stage.staged_chunks import StagedChunks

READABLE_DRIVERS = ("sec2", "stdio")
SYSTEM: System = os
BESIDE = ".hyperslab-new"  # ends the name of a new file that is going to replace another
METADATA_CACHE_NBYTES = 1 << 18  # to begin with; the default of libhdf5 is 2 MiB
NO_HDF5 = "file signature not found"  # what libhdf5 says
BEGUN = b"HSLABNEW"  # the first bytes of such a file until it is complete


class WritableFile:
    """An HDF5 file that is written through a journal.

    Parameters
    ----------
    path : str
        Its path.
    mode : str
        `r+`, `a` or `w`.
    system : System
        The calls that reach the disk.
    timeout : float
        How many seconds to wait for other processes that have it open.

    Raises
    ------
    NoSuchFile
        The file does not exist, in mode `r+`.
    UsageError
        Another process has the file open, or it holds no versions.
    Unsupported
        It is not an HDF5 file.
    StaleJournal
        The journal beside the file belongs to another file.
    MissingJournal
        A commit to the file was cut short, and its journal is missing.
    """

    def __init__(self, path: str, mode: str, system: System, timeout: float = 0.0) -> None:
        link, path = path, os.path.realpath(path)  # a new file may replace the file itself, but not a link to it
        self._path = path
        if mode == "r+" and not Path(path).exists():
            raise NoSuchFile.at(path)
        if mode == "r+" and not Path(path).stat().st_size:
            raise UsageError(f"{path} is empty and holds no versions: open it with mode='a' to begin")
        self._system = system
        self.journaled: JournaledFile = JournaledFile(
            path, link=link, is_replaced=mode == "w", timeout=timeout, system=system
        )
        self._earlier_count = 0  # commits to files that this one replaced
        self._held: list[Any] = [self.journaled]
        try:
            weakref.finalize(self, _let_go, self._held, os.getpid())  # while libhdf5 can still call Python
            _clean_up(f"{path}{BESIDE}", system)
            if mode == "w" or not self.journaled.committed_nbytes:
                self.replace(lambda made, _: prepare(made))  # a kill leaves the old file, or none that holds anything
                return
            self._hold(_opened_file(self.journaled))
            if mode == "r+" and DATA not in self.file:
                raise UsageError(f"{path} holds no versions: open it with mode='a' to begin")
            prepare(self.file)
            self.commit()
        except BaseException:
            try:
                self.roll_back(reopen=False)
            finally:
                self.journaled.close()
            raise

    def commit(self) -> None:
        """Commit all changes together."""
        self.journaled.check_writable()
        self.file.flush()
        self.journaled.commit(_address(self.file))

    @property
    def commit_count(self) -> int:
        """How many changes have been committed here."""
        return self._earlier_count + self.journaled.commit_count

    @property
    def is_usable(self) -> bool:
        """Whether the last change was committed, or undone. Otherwise call `roll_back` again."""
        return bool(self.file) and self.journaled.stuck is None

    def told(self, error: BaseException, what: str, before: int) -> OSError | None:
        """An error of the disk that also says whether a change is committed; before it, `before` others were."""
        is_applying, stuck = self.journaled.is_applying, self.journaled.stuck is not None
        is_committed = is_applying or self.commit_count > before
        return told(error, what, is_committed=is_committed, is_open=is_applying if is_committed else stuck)

    def roll_back(self, *, reopen: bool = True) -> None:
        """Undo all changes since the last commit."""
        with suppress(Exception):
            self.file.close()
        self.journaled.roll_back()
        if reopen:
            self._hold(opened(self.journaled, "r+"))

    def reopen(self) -> None:
        """Make libhdf5 forget which space is free, so that nothing overwrites what readers may still use."""
        self.file.close()
        self.journaled.commit()
        self._hold(opened(self.journaled, "r+"))

    def replace(self, fill: Callable[[h5py.File, JournaledFile], None]) -> None:
        """Replace this file with a new one, in one step, once all of the new file is on the disk.

        Parameters
        ----------
        fill : Callable[[h5py.File, JournaledFile], None]
            Writes the content of the new file, given the h5py file and what libhdf5 writes to.

        Raises
        ------
        UsageError
            The name of the new file is taken.
        """
        beside = f"{self._path}{BESIDE}"
        _clean_up(beside, self._system)  # after a failure
        _begin(beside, self._system)
        journaled = JournaledFile(beside, system=self._system)
        journaled.truncate(0)  # libhdf5 must not see the first bytes
        try:
            with opened(journaled, "w") as made:
                made.flush()
                fill(made, journaled)
            self.journaled.check_writable()
            shutil.copymode(self._path, beside)
            journaled.commit(keep_journal=True)
            journaled.take_name_of(self.journaled)
        except BaseException:
            if journaled.path == beside:
                journaled.close()
                with suppress(OSError):
                    self._system.unlink(beside)
                    if Path(journal_path(beside)).exists():
                        self._system.unlink(journal_path(beside))
                raise
            self._go_on_with(journaled)
            raise
        self._go_on_with(journaled)

    def _go_on_with(self, journaled: JournaledFile) -> None:
        with suppress(Exception):
            self.file.close()
        self.journaled.close()
        self._earlier_count += self.journaled.commit_count
        self.journaled = journaled
        self._hold(opened(journaled, "r+"))

    def _hold(self, file: h5py.File) -> None:
        self.file = file
        self._held[:] = [self.journaled, file]

    def close(self) -> None:
        """Close the file. Changes that were not committed are lost."""
        try:
            self.file.close()
        finally:
            self.journaled.close()


def _address(file: h5py.File) -> int | None:
    """The address of the object header of the group of versions."""
    try:
        return int(h5py.h5o.get_info(file.id, VERSIONS.encode()).addr)
    except KeyError:
        return None


def _begin(beside: str, system: System) -> None:
    """Create the new file, which can be recognized as ours before anything else is in it."""
    try:
        descriptor = system.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise UsageError(f"{beside} exists, and its name is needed: move it away, it may be yours") from None
    try:
        system.pwrite(descriptor, BEGUN, 0)
        system.fsync(descriptor)
        sync_folder(beside, system)
    except OSError:
        with suppress(OSError):
            system.unlink(beside)
        raise
    finally:
        os.close(descriptor)


def _clean_up(beside: str, system: System) -> None:
    """Remove the rest of a new file that was going to replace another. Files that are not ours stay."""
    journal = None
    with suppress(StaleJournal):
        journal = found_journal(beside)
    if Path(beside).is_file() and not Path(beside).is_symlink():
        descriptor = os.open(beside, os.O_RDONLY)
        try:
            start = os.pread(descriptor, len(BEGUN), 0)
            is_ours = start == BEGUN[: len(start)]
            if isinstance(journal, Journal) and journal.before_nbytes == len(BEGUN):
                is_ours = is_ours or contradiction(journal, descriptor) is None
        finally:
            os.close(descriptor)
        if not is_ours:
            return
        system.unlink(beside)
    if isinstance(journal, Journal | Torn):
        remove_journal(beside, system)


def _let_go(held: list[Any], process: int) -> None:
    if os.getpid() == process:  # a forked child must not close the file that its parent writes to
        for one in reversed(held):
            with suppress(Exception):
                one.close()


def _opened_file(journaled: JournaledFile) -> h5py.File:
    """Open the file for the first time.

    Raises
    ------
    Unsupported
        It is not an HDF5 file.
    DamagedFile
        HDF5 cannot open it.
    """
    try:
        return opened(journaled, "r+")
    except OSError as error:
        if error.errno is not None:
            raise
        if NO_HDF5 not in str(error):
            said = f"HDF5 cannot open {journaled.path}: {error}"
            raise DamagedFile(f"{said}; hyperslab.versions.repair may help") from None
        raise Unsupported(
            f"{journaled.path} is not an HDF5 file, so it cannot hold versions; it was not changed"
        ) from None


def opened(journaled: JournaledFile, mode: str) -> h5py.File:
    """Open the HDF5 file that libhdf5 writes through a journal. libhdf5 forgets its objects when they are closed."""
    if mode == "w":
        journaled.seek(0)
        journaled.write(empty_file())
    else:
        journaled.add_guard()

    def set_driver(access: h5py.h5p.PropFAID, fileobj: JournaledFile) -> None:
        access.set_fileobj_driver(h5py.h5fd.fileobj_driver, fileobj)
        libhdf5.evict_on_close(access)

    h5py.register_driver("hyperslab", set_driver)
    file = h5py.File(journaled.path, "r+", driver="hyperslab", fileobj=journaled)
    _begin_small_cache(file.id)
    return file


def _begin_small_cache(file: h5py.h5f.FileID) -> None:
    """Let libhdf5's metadata cache begin small; it still grows when many lookups miss.

    Each flush visits every entry of the cache, so a commit would take longer with each version that the cache holds.
    """
    config = file.get_mdc_config()
    config.set_initial_size = True
    config.initial_size = config.min_size = METADATA_CACHE_NBYTES
    file.set_mdc_config(config)


def check_borrowed(file: h5py.Group) -> None:
    """Refuse an h5py file that only h5py can read.

    Raises
    ------
    UsageError
        The file is not on this machine's disk, or its journal must first finish a commit that was cut short.
    StaleJournal
        The journal beside the file belongs to another file.
    """
    path = file.file.filename
    if file.file.driver not in READABLE_DRIVERS or not Path(path).is_file():
        raise UsageError(f"{path}: versions need a file on disk; open it with h5py's usual driver")
    if isinstance(found_journal(path), Journal) and (file.file.mode != "r" or not is_readable(path)):
        raise UsageError(
            f"a commit to {path} was cut short, and h5py does not know its journal: close the h5py file, and open it"
            " once by its path with hyperslab.VersionedFile(path), which finishes that commit"
        )


def identity(file: h5py.File) -> os.stat_result:
    """Which file h5py has open."""
    if file.driver == "sec2":
        return os.fstat(file.id.get_vfd_handle())
    return Path(file.filename).stat()  # h5py does not tell more


def prepare(file: h5py.Group) -> None:
    """Create the group of versions if there is none, and remove what was never committed.

    Raises
    ------
    Unsupported
        A later library wrote the file.
    UsageError
        The file has an earlier layout.
    """
    if DATA not in file:
        versions = file.create_group(VERSIONS)
        first = versions.create_group(FIRST_VERSION)
        versions.attrs["current_version"] = FIRST_VERSION
        first.attrs["timestamp"] = layout.stored_time(None)
        versions.attrs["data_version"] = DATA_VERSION
        return
    versions, path = file[VERSIONS], file.file.filename
    number = data_version_of(versions.attrs)
    layout.check_data_version(number, path, to_write=True)
    current = versions.attrs["current_version"]
    parents = {}
    for name in [name for name in versions if name != FIRST_VERSION]:
        if is_flagged(versions, name, "committed"):  # nearly all are, and h5py's own attributes take four times as long
            continue
        attributes = attributes_of(versions, name)
        if not is_committed(attributes, name, path, number):
            parents[name] = attributes.get("prev_version", FIRST_VERSION)
    check_never_committed(file, parents)
    for name in parents:  # only after all were checked: a damaged file must not change
        del versions[name]
    for _ in range(len(parents) + 1):  # the parent may be another version that was not committed
        current = parents.get(current, current)
    if current not in versions:
        current = FIRST_VERSION
    if current != versions.attrs["current_version"]:
        versions.attrs["current_version"] = current
        Fingerprints(file, is_ours=False).add(None, current=current)


def attributes_of(versions: h5py.Group, name: str) -> Any:
    """The attributes of a version.

    Raises
    ------
    DamagedFile
        They cannot be read.
    """
    try:
        return versions[name].attrs
    except (KeyError, OSError, RuntimeError, ValueError) as error:
        raise DamagedFile(f"version {name!r} of {versions.file.filename} cannot be read: {error}") from None


def new_array(file: h5py.Group, path: str, asked: dict[str, Any]) -> StagedArray:
    """Stage a new array with the options of `create_dataset`.

    Raises
    ------
    ValueError
        The options contradict each other, or the array of earlier versions.
    TypeError
        Neither shape nor data is given, an option does not exist, or elements of this kind are not supported.
    NotImplementedError
        The array has no axes.
    """
    shape, dtype, data = (asked.pop(name) for name in ("shape", "dtype", "data"))
    chunks, fill = asked.pop("chunks", None), asked.pop("fillvalue", None)
    asked.pop("maxshape", None)  # every array can be resized
    options = {name: value for name, value in asked.items() if value is not None and value is not False}
    known = ("compression", "compression_opts", "shuffle", "fletcher32", "scaleoffset")
    if unknown := sorted(options.keys() - set(known)):
        raise TypeError(f"{', '.join(unknown)}: there is no such option{meant(unknown[0], known)}")
    is_dtype_given = data is not None or dtype is not None
    elements, dtype = _elements(data, dtype)
    if dtype.hasobject and not is_text(dtype):
        raise TypeError(f"{path}: elements of variable length can only have versions if they are text, not {dtype}")
    if shape is None:
        if elements is None:
            raise TypeError(f"{path}: give shape or data")
        shape = elements.shape
    shape = (shape,) if isinstance(shape, int) else tuple(int(length) for length in shape)
    if not shape:
        raise NotImplementedError(f"{path} has no axes, which the layout cannot store; use the shape (1,)")
    if elements is not None and elements.size != math.prod(shape):
        raise ValueError(f"{path}: {elements.size} elements for the shape {shape}")
    store = ChunkStore(file, path) if f"{DATA}/{path}/raw_data" in file else None
    chunk_shape = _chunk_shape(chunks, shape, dtype, path, store)
    check_chunk_count(path, shape, chunk_shape)
    if store is not None:
        store.check_same(dtype if is_dtype_given else None, chunk_shape, fill)
        dtype = store.raw.dtype
    fill = fill_element(dtype, (fill if fill is not None else None) if store is None else store.fill[()])
    if dtype.kind != "O":
        fill = np.asarray(fill, dtype)[()]
        options["fillvalue"] = fill
    if elements is None:
        grid_count = math.prod(chunk_counts(shape, chunk_shape))
        stored = np.full(grid_count, MISSING, np.int64)
        staged = StagedChunks(shape, chunk_shape, dtype, fill, stored, _nothing_stored)
        return StagedArray(path, chunk_shape, dtype, fill, chunks=staged, options=options)
    whole = np.array(as_new_elements(elements, dtype), dtype, order="C").reshape(shape)
    return StagedArray(path, chunk_shape, dtype, fill, whole=whole, options=options)


def _elements(data: Any, dtype: Any) -> tuple[Array | None, np.dtype[Any]]:
    """The elements, if there are any, and the dtype that they are stored with."""
    wanted = None if dtype is None else np.dtype(dtype)
    if wanted is not None and wanted.kind == "T":
        wanted = h5py.string_dtype()
    if data is None:
        return None, np.dtype("f4") if wanted is None else wanted
    if wanted is None:
        elements = np.asarray(data)
        is_words = elements.dtype.kind in "TU" or (elements.dtype.kind == "O" and not is_text(elements.dtype))
        return elements, h5py.string_dtype() if is_words else elements.dtype
    elements = np.asarray(data)
    return (elements if wanted.kind == "O" else elements.astype(wanted, copy=False)), wanted


def _chunk_shape(
    chunks: Any, shape: tuple[int, ...], dtype: np.dtype[Any], path: str, store: ChunkStore | None
) -> tuple[int, ...]:
    if isinstance(chunks, int) and not isinstance(chunks, bool):
        chunks = (chunks,)
    if chunks is not None and not isinstance(chunks, bool):
        chunk_shape = tuple(int(length) for length in chunks)
        if len(chunk_shape) != len(shape) or min(chunk_shape) < 1:
            raise ValueError(f"{path}: chunks of the shape {chunk_shape} do not fit an array of the shape {shape}")
        return chunk_shape
    if store is not None:
        return store.chunk_shape
    if chunks is None and len(shape) == 1:
        return (DEFAULT_CHUNK_LENGTH,)
    guessed: tuple[int, ...] = guess_chunk(shape, None, dtype.itemsize)
    return guessed


def _nothing_stored(slots: Any) -> Array:
    raise AssertionError(f"chunks {slots} of an array without stored chunks")
