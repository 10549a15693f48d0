"""`Fingerprints`: what each version was when it was committed. The chunks are left out: they have their own hashes.

They are one array beside `/_version_data`, called `/_version_fingerprints`, which only grows: each commit appends one
record. versioned-hdf5 looks only below `/_version_data`. docs/versions-layout.md describes every byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from hyperslab.errors import DamagedFile
from hyperslab.versions.layout.fingerprint_log import (
    DAMAGED,
    LOG,
    Mark,
    Marks,
    Record,
    Recorded,
    packed,
    record_body,
    record_positions,
)
from hyperslab.versions.layout.names import ARRAY_BOOKKEEPING, DATA, VERSION_BOOKKEEPING, VERSIONS, text_bytes
from hyperslab.versions.layout.padding import element_bytes
from hyperslab.versions.layout.refs import Refs
from hyperslab.versions.layout.slots import MISSING, Slots

LOG_CHUNK_LENGTH = 4096
FEW_SLOTS = 7
DESCRIPTION_NBYTES, ATTRIBUTES_NBYTES, CONTENT_NBYTES = 4, 4, 8
NOTHING = bytes(4)
REF_NAMES = frozenset(("branches", "tags", "checked_out", "merged"))
NOWHERE = 1  # the address of the table of an array that others stored again: nothing lies there


class Fingerprints:
    """The fingerprints of a file that you add versions to.

    Parameters
    ----------
    file : h5py.Group
        The file, or the group that holds the versions.
    is_ours : bool
        Whether nobody else adds versions at the same time.
    """

    def __init__(self, file: h5py.Group, *, is_ours: bool) -> None:
        self._file, self._is_ours = file, is_ours
        self._last: Record | None = None
        self._log: Any = None

    def of(self, name: str) -> Record | None:
        """The record of a version; None if there is none, or if it belongs to an earlier version of the same name."""
        if self.is_last(name):
            return self._last
        record = _last_of(self._file, name)
        if record is None or self._file[VERSIONS][name].attrs.get("timestamp") != record.timestamp:
            return None
        return record

    def is_last(self, name: str) -> bool:
        """Whether this version was the last one committed here, so that nobody else can have changed its arrays."""
        return self._is_ours and self._last is not None and self._last.version == name

    def add(self, record: Record | None, **said: Any) -> None:
        """Append a record and other entries. Without a record, a file that has no fingerprints gets none."""
        if record is None and LOG not in self._file and not said.keys() & REF_NAMES:
            return
        self._append(packed({**(record.packed() if record is not None else {}), **said}))
        if record is not None:
            self._last = record

    def _append(self, stored: bytes) -> None:
        if not self._log:
            self._log = _opened(self._file)
        before = self._log.shape[0]
        self._log.id.set_extent((before + len(stored),))
        space = self._log.id.get_space()
        space.select_hyperslab((before,), (len(stored),))
        self._log.id.write(h5py.h5s.create_simple((len(stored),)), space, np.frombuffer(stored, np.uint8))


def _opened(file: h5py.Group) -> Any:
    if LOG not in file:
        file.create_dataset(LOG, shape=(0,), maxshape=(None,), chunks=(LOG_CHUNK_LENGTH,), dtype="u1")
    if file.get(LOG, getclass=True) is h5py.Dataset:
        log = with_few_chunks(file, LOG, LOG_CHUNK_LENGTH)
        if log.dtype == np.uint8 and log.ndim == 1:
            return log
    raise DamagedFile(f"{LOG} in {file.file.filename} is not a list of fingerprints: hyperslab.versions.repair helps")


def with_few_chunks(group: h5py.Group, name: str, kept_nbytes: int) -> Any:
    """An array, opened so that libhdf5 keeps no more of its chunks than this in memory: each flush of the file visits
    all of them, and by default they are up to 8,191, so commits would take longer from one to the next.
    """
    access = h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
    access.set_chunk_cache(FEW_SLOTS, kept_nbytes, 1.0)
    return h5py.Dataset(h5py.h5d.open(group.id, name.encode(), access))


def _last_of(file: h5py.Group, name: str) -> Record | None:
    """The last record of a version, usually near the end; None if the list is damaged, which `verify` reports."""
    with suppress(*DAMAGED, OSError, RuntimeError):
        stored = _stored(file)
        for at, length in reversed(list(record_positions(stored))):
            said = record_body(stored, at, length)
            if said.get("version") == name:
                return Record.of(said)
            if name in said.get("deleted", ()):
                break
    return None


def recorded(file: h5py.Group) -> Recorded:
    """All fingerprints of a file."""
    try:
        log = file.get(LOG) if LOG in file else None
        if log is None:
            return Recorded()
        if not isinstance(log, h5py.Dataset) or log.dtype != np.uint8 or log.ndim != 1:
            return Recorded(problem="the list of fingerprints is not an array of bytes")
        return Recorded.of(log[()].tobytes())
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        return Recorded(problem=f"the list of fingerprints cannot be read: {error}")


def check_never_committed(file: h5py.Group, names: Iterable[str]) -> None:
    """Refuse to treat versions as uncommitted if their fingerprints say that they were committed.

    Raises
    ------
    DamagedFile
        One of them was committed.
    """
    wanted = list(names)
    known = recorded(file).versions if wanted else {}
    for name in wanted:
        record = known.get(name)
        if record is not None and file[VERSIONS][name].attrs.get("timestamp") == record.timestamp:
            raise DamagedFile(
                f"version {name!r} of {file.file.filename} was committed, but its attributes say that it was not:"
                " hyperslab.versions.repair may help"
            )


# ---------------------------------------------------------------------------------------------------- what is marked


def description(dtype: np.dtype[Any], chunk_shape: tuple[int, ...], fill: Any) -> bytes:
    """A short hash of how an array is stored."""
    element = b"" if dtype.hasobject or fill is None else element_bytes(fill, dtype)
    said = f"{type_text(dtype)} {tuple(map(int, chunk_shape))} {element.hex()}"
    return sha256(text_bytes(said)).digest()[:DESCRIPTION_NBYTES]


def content(shape: tuple[int, ...], slots: Slots, keys: npt.NDArray[np.int64]) -> bytes:
    """A short hash of what an array holds: its shape, and the first 8 bytes of each chunk's hash.

    Parameters
    ----------
    shape : tuple[int, ...]
        The shape of the array.
    slots : Slots
        The slot of each chunk, in C order; -1 if the chunk is not stored, which counts as a hash of zeros.
    keys : npt.NDArray[np.int64]
        The first 8 bytes of the hash of the chunk in each slot.
    """
    flat = slots.reshape(-1)
    chosen = np.append(keys, np.int64(0))[flat]  # -1 finds the zero at the end
    assert MISSING == -1
    digest = sha256(np.array([len(shape), *shape], "<i8").tobytes())
    digest.update(np.ascontiguousarray(chosen).view(np.uint8).data if len(chosen) else b"")
    return digest.digest()[:CONTENT_NBYTES]


def keys_of(rows: np.ndarray[Any, Any], chunk_length: int) -> npt.NDArray[np.int64]:
    """The first 8 bytes of the hash of the chunk in each slot, from the rows of a hash table."""
    slots = rows["shape"][:, 0] // chunk_length
    good = (slots >= 0) & (slots <= max(len(rows), 1) * 1024)
    keys = np.zeros(int(slots[good].max(initial=-1)) + 1, "<i8")
    keys[slots[good]] = np.ascontiguousarray(rows["hash"][good][:, :8]).view("<i8")[:, 0]
    return keys


def attributes(holder: Any, leave: tuple[str, ...] = ()) -> bytes:
    """A short hash of the attributes that users gave to an h5py group or array."""
    count = h5py.h5a.get_num_attrs(holder.id)
    pairs = []
    for index in range(count):
        attribute = h5py.h5a.open(holder.id, index=index)
        name = attribute.name
        if name.decode("utf-8", "surrogateescape") not in leave:
            pairs.append((name, _stored_attribute(holder, attribute)))
    digest = sha256()
    for name, stored in sorted(pairs):
        digest.update(struct.pack("<II", len(name), len(stored)) + name + stored)
    return digest.digest()[:ATTRIBUTES_NBYTES] if pairs else NOTHING


def _stored_attribute(holder: Any, attribute: Any) -> bytes:
    dtype = attribute.dtype
    kind = attribute.get_space().get_simple_extent_type()
    shape = "null" if kind == h5py.h5s.NULL else str(attribute.shape)
    said = text_bytes(f"{type_text(dtype)} {shape}\n")
    if kind == h5py.h5s.NULL:
        return said
    if not dtype.hasobject:
        elements = np.empty(attribute.shape, dtype)
        attribute.read(elements)
        return said + elements.tobytes()
    return said + _elements(holder.attrs[attribute.name])


def _elements(value: Any) -> bytes:
    """Elements of variable length, each preceded by its length."""
    if isinstance(value, str | bytes):
        text = text_bytes(value)
        return struct.pack("<Q", len(text)) + text
    if isinstance(value, h5py.Reference | h5py.RegionReference):
        return b"reference"
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return b"".join(_elements(one) for one in value.reshape(-1))
    if isinstance(value, np.void) and value.dtype.names is not None:
        return b"".join(_elements(value[name]) for name in value.dtype.names)
    stored = np.asarray(value)
    return struct.pack("<Q", stored.nbytes) + stored.tobytes() if not stored.dtype.hasobject else repr(value).encode()


def type_text(dtype: np.dtype[Any]) -> str:
    """An h5py dtype as text that does not depend on the release of h5py or on the encoding of text."""
    text, members = h5py.check_string_dtype(dtype), h5py.check_enum_dtype(dtype)
    if text is not None:
        return "text" if text.length is None else f"text of {text.length}"
    if members is not None:
        named = ",".join(f"{name}={int(value)}" for name, value in sorted(members.items()))
        return f"enum {np.dtype(dtype.str).str} {named}"
    if h5py.check_ref_dtype(dtype) is not None:
        return "reference"
    base = h5py.check_vlen_dtype(dtype)
    if base is not None:
        return f"any number of {type_text(np.dtype(base))}"
    if dtype.subdtype is not None:
        return f"{dtype.subdtype[1]} of {type_text(dtype.subdtype[0])}"
    if dtype.fields is not None:
        named = "; ".join(
            f"{name} {dtype.fields[name][1]} {type_text(dtype.fields[name][0])}" for name in dtype.names or ()
        )
        return f"{{{named}}} {dtype.itemsize}"
    return dtype.str


def group_mark(group: Any) -> Mark:
    """The mark of an h5py group of a version."""
    return Mark(False, NOTHING, attributes(group), bytes(CONTENT_NBYTES))


def array_attributes(array: Any) -> bytes:
    """A short hash of the users' attributes of an h5py array of a version."""
    return attributes(array, ARRAY_BOOKKEEPING)


def version_attributes(group: Any) -> bytes:
    """A short hash of the users' attributes of an h5py group that is a version."""
    return attributes(group, VERSION_BOOKKEEPING)


# ------------------------------------------------------------------------------------------------- rewriting of ours


def rewrite(
    source: h5py.Group,
    target: h5py.Group,
    kept: Sequence[str],
    parents: Mapping[str, str],
    current: str,
    changed: Mapping[str, Marks],
) -> None:
    """Write the fingerprints of the versions that stay to the file with the new tree of versions.

    Parameters
    ----------
    source : h5py.Group
        The file with the old fingerprints.
    target : h5py.Group
        The file with the new tree.
    kept : Sequence[str]
        The names of the versions that stay.
    parents : Mapping[str, str]
        The new parents of the versions that get another parent.
    current : str
        The name of the current version.
    changed : Mapping[str, Marks]
        The new marks of arrays that are now stored in another way, by version.
    """
    log = recorded(source)
    known = log.versions
    refs = Refs.of(_stored(source))
    pieces = []
    addresses: dict[str, tuple[int | None, int | None]] = {}
    for name in sorted(kept, key=lambda one: log.numbers.get(one, 0)):
        record = known.get(name)
        if record is not None:
            marks = dict(record.marks)
            for path, mark in changed.get(name, {}).items():
                if path in marks:
                    marks[path] = mark._replace(attributes=marks[path].attributes)
            for path in record.tables.keys() - addresses.keys():
                addresses[path] = table_address(source, path), table_address(target, path)
            moved = {path: addresses[path] for path in record.tables}
            tables = {path: (new or 0) if old == record.tables[path] else NOWHERE for path, (old, new) in moved.items()}
            parent = parents.get(name, record.parent)
            if log.came_again(parent, name):  # it was away for a while, and this version has another parent since
                parent = str(source[VERSIONS][name].attrs["prev_version"])
            made = replace(record, parent=parent, marks=marks, tables=tables)
            pieces.append(packed(made.packed()))
    said = refs.packed({name: str(source[VERSIONS][name].attrs.get("timestamp")) for name in kept})
    if pieces or said:
        pieces.append(packed({"current": current, **said}))
        Fingerprints(target, is_ours=False)._append(b"".join(pieces))


def _stored(file: h5py.Group) -> bytes:
    """The bytes of a file's list; none if it cannot be read, which `verify` reports."""
    with suppress(OSError, KeyError, RuntimeError, DamagedFile):
        return bytes(_opened(file)[()].tobytes()) if LOG in file else b""
    return b""


def table_address(file: h5py.Group, path: str) -> int | None:
    """The address of an array's hash table."""
    with suppress(KeyError, OSError, RuntimeError):
        return int(h5py.h5o.get_info(file.id, f"{DATA}/{path}/hash_table".encode()).addr)
    return None
