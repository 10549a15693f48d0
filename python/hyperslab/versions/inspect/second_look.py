"""`SecondLook`: compares versions as h5py sees them with what we see, and with their fingerprints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import h5py
import numpy as np

from hyperslab._core import filters_of
from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.archive.tree.group import Group
from hyperslab.chunk_grid import chunk_counts
from hyperslab.errors import HyperslabError
from hyperslab.needed import advice
from hyperslab.storage.hdf5_plugins import has_codec
from hyperslab.versions.inspect.chunk_stack import ChunkStack, chunk_stacks
from hyperslab.versions.inspect.testimony import Testimony
from hyperslab.versions.layout.fingerprint_log import Mark, Marks, Record
from hyperslab.versions.layout.fingerprints import (
    array_attributes,
    content,
    description,
    group_mark,
    keys_of,
    recorded,
    table_address,
    type_text,
    version_attributes,
)
from hyperslab.versions.layout.names import (
    DATA,
    DATA_VERSION,
    FIRST_VERSION,
    HASH_TABLE_DTYPE,
    VERSIONS,
    chunk_hash,
    text_bytes,
)
from hyperslab.versions.layout.padding import element_bytes, filled, has_padding, meaningful
from hyperslab.versions.layout.reading import parsed
from hyperslab.versions.layout.slots import MISSING, Slots, grid_slots
from hyperslab.versions.layout.table import VersionTable

UNLIKE = "HDF5 sees other {} than hyperslab"
OTHER = "its shape, or the list of its chunks, is not what was committed"
WRITTEN_AGAIN = "other software wrote its chunks again, and was stopped, or changed them"
FEW = 3  # names in a message
LOST = "it was committed, but does not exist (unless other software removed it, as `del file[name]` does)"
TEXT_NBYTES = 16  # of an element of text in a chunk: its length and its address


class SecondLook:
    """Looks at a file that both libraries have open.

    Parameters
    ----------
    path : str
        The path of the file.
    file : h5py.File
        The file, opened by h5py.
    found : Testimony
        Takes what is found.
    names : Sequence[str] | None
        The versions to look at; None for all.
    tell : Callable[[], None]
        Called again and again.
    """

    def __init__(
        self, path: str, file: h5py.File, testimony: Testimony, names: Sequence[str] | None, tell: Callable[[], None]
    ) -> None:
        self._path, self._file, self._found, self._tell = path, file, testimony, tell
        self._ours = parsed(path, 0, (f"{VERSIONS}/**", f"{DATA}/**/raw_data", f"{DATA}/**/hash_table"))
        self._all = names is None
        self._table = VersionTable.of(self._ours)
        self._names = list(self._table) if names is None else list(names)
        self._log = recorded(file)
        self._stacks, _ = chunk_stacks(path)  # `verify` reports what is wrong with the others
        self._keys: dict[str, Slots] = {}
        self._raw_descriptions: dict[str, bytes] = {}
        self._seen: dict[tuple[str, int], Mark | None] = {}
        self._fills: dict[tuple[str, str, bytes | None], Any] = {}
        self._lacking: dict[str, str] = {}  # arrays whose chunks HDF5 cannot decode here, and why

    def look(self) -> None:
        """Look at everything."""
        testimony = self._found
        if self._log.problem is not None and self._all:
            testimony.add(self._log.problem)
        if self._all:
            with testimony.heard("HDF5 cannot read the objects beside the versions"):
                self._look_at_file()
        used = {path for name in self._names for path in self._arrays_in(name)} if not self._all else set(self._stacks)
        for path in sorted(used & self._stacks.keys()):
            with testimony.heard("HDF5 cannot read its chunks", path):
                self._look_at_stack(path, self._stacks[path])
            self._tell()
        if self._all:
            with testimony.heard("HDF5 cannot visit all objects"):  # this reads more of each than opening it does
                self._file[DATA].visit(lambda _: self._tell())
        for name in self._names:
            with testimony.heard("HDF5 cannot read it", None, (name,)):
                self._look_at_version(name)

    def _arrays_in(self, name: str) -> list[str]:
        group = self._ours[f"{VERSIONS}/{name}"]
        return (
            [array.name.removeprefix(f"/{VERSIONS}/{name}/") for array in group.walk()]
            if isinstance(group, Group)
            else []
        )

    # ------------------------------------------------------------------------------------------------- the file

    def _look_at_file(self) -> None:
        testimony, versions, ours = self._found, self._file[VERSIONS], self._ours[VERSIONS]
        assert isinstance(ours, Group)
        _compare_names(testimony, versions, ours, "versions")
        _compare_attributes(testimony, versions, ours, None, None)
        self._compare_groups(self._file[DATA], parsed(self._path, 0, (f"{DATA}/**",))[DATA], "")
        if self._log.problem is not None or not (self._log.versions or self._log.current):
            return
        self._find_lost(versions)
        number = versions.attrs["data_version"]
        if int(number) != DATA_VERSION or np.asarray(number).dtype != np.int64:
            testimony.add(f"the file's data_version is {number!r}, but was {DATA_VERSION}")
        current, was = versions.attrs["current_version"], self._log.current
        is_foreign = current in versions and current not in self._log.versions
        if was is not None and not is_foreign and current not in (was, self._remaining(was) or current):
            if self._others_rewrote():  # they may have added a version, made it current, and deleted it
                testimony.unproved[str(current)] = f"it is the current version, which was {was!r}"
                return
            testimony.add(f"the current version is {current!r}, but was {was!r} (unless other software changed it)")

    def _compare_groups(self, group: Any, ours: Any, prefix: str) -> None:
        """Compare the groups that hold chunks."""
        if set(group) != set(ours):
            self._found.add(UNLIKE.format(f"names in {DATA}/{prefix}"))
        for name in group:
            path = f"{prefix}{name}"
            if path == "versions" or group.get(name, getclass=True) is not h5py.Group:
                continue
            self._compare_groups(group[name], ours[name], f"{path}/")

    def _find_lost(self, versions: h5py.Group) -> None:
        """Find versions that were committed but do not exist, or that say that they were not committed."""
        for name, record in self._log.versions.items():
            if name not in versions:
                if not record.tables:
                    self._found.unproved[name] = "it was committed but does not exist: who deleted it is unknown"
                elif all(map(self._is_as_recorded, record.tables, record.tables.values())):
                    self._found.add(LOST, None, (name,))
            elif name not in self._table and versions[name].attrs.get("timestamp") == record.timestamp:
                self._found.add("it was committed, but its attributes say that it was not", None, (name,))

    def _others_rewrote(self) -> bool:
        """Whether other software wrote the chunks of an array again, as it does when it deletes versions."""
        tables = {(path, at) for record in self._log.versions.values() for path, at in record.tables.items()}
        return any(not self._is_as_recorded(path, address) for path, address in tables)

    def _is_as_recorded(self, path: str, address: int | None) -> bool:
        """Whether an array's chunks are where they were. Software that writes them again puts them elsewhere."""
        return address is None or table_address(self._file, path) == address

    def _is_before(self, parent: str, record: Record) -> bool:
        """Whether a version is the recorded parent of another, or the one above it, if that was away for a while."""
        at = self._remaining(record.parent)
        seen = set[str]()
        while at is not None and at != parent and self._log.came_again(at, record.version) and at not in seen:
            seen.add(at)
            above = self._log.parents.get(at)
            at = None if above is None else self._remaining(above)
        return parent in (record.parent, at)

    def _remaining(self, name: str) -> str | None:
        """The nearest ancestor of a deleted version that exists; None if the ancestors are unknown."""
        at: str | None = name
        seen = set()
        while at is not None and at not in self._table and at != FIRST_VERSION and at not in seen:
            seen.add(at)
            at = self._log.parents.get(at)
        return at

    # ----------------------------------------------------------------------------------------------- the chunks

    def _look_at_stack(self, path: str, stack: ChunkStack) -> None:
        testimony, group = self._found, self._file[f"{DATA}/{path}"]
        raw, table = group["raw_data"], group["hash_table"]
        rows = stack.rows
        self._keys[path] = keys_of(rows, stack.chunk_shape[0])
        self._raw_descriptions[path] = description(raw.dtype, raw.chunks, raw.fillvalue)
        one, other = raw, stack.raw
        if (one.shape, one.chunks) != (other.shape, other.chunks) or type_text(one.dtype) != type_text(other.dtype):
            testimony.add(UNLIKE.format("shape, chunks or elements of its chunks"), path)
        if raw.maxshape != (None, *raw.chunks[1:]) or table.maxshape != (None,):
            testimony.add("its chunks or hashes have a maximum shape, but should be able to grow", path)
        _compare_attributes(testimony, raw, other, path, None)
        _compare_attributes(testimony, table, stack._table, path, None)
        for name, kind in (("chunks", raw), ("largest_index", table)):
            if kind.attrs[name].dtype != np.int64:
                testimony.add(f"its {name} are not 64-bit integers", path)
        theirs = table[: stack.count]
        if table.dtype != HASH_TABLE_DTYPE or theirs.tobytes() != np.ascontiguousarray(rows).tobytes():
            testimony.add(UNLIKE.format("hashes"), path)
        if table.shape != stack._table.shape or not _same_fill(raw.fillvalue, raw.dtype, other):
            testimony.add(UNLIKE.format("fill value or number of hashes"), path)
        plist = raw.id.get_create_plist()
        numbers = [plist.get_filter(number)[0] for number in range(plist.get_nfilters())]
        if numbers != [number for number, _ in filters_of(self._path, f"/{DATA}/{path}/raw_data")]:
            testimony.add(UNLIKE.format("codecs"), path)
        elif lacking := [number for number in numbers if not has_codec(number)]:
            self._lacking[path] = (
                f"HDF5 cannot decode {path} here, because it lacks codec {lacking[0]}: {advice('hdf5plugin')}"
            )
        self._compare_chunks(path, raw, stack, len(numbers))

    def _compare_chunks(self, path: str, raw: Any, stack: ChunkStack, codec_count: int) -> None:
        """Compare the positions of chunks, and the elements of some chunks (of text: of all)."""
        length, rest = stack.chunk_shape[0], (0,) * (raw.ndim - 1)
        element_nbytes = TEXT_NBYTES if raw.dtype.hasobject else raw.dtype.itemsize
        nbytes, all_codecs = math.prod(raw.chunks) * element_nbytes, (1 << codec_count) - 1
        where: dict[int, tuple[int, int]] = {}
        for segment in stack.raw.segments():
            slots = segment.indices().astype(np.int64).tolist()
            where.update(
                zip(slots, zip(segment.offsets().tolist(), segment.lengths().tolist(), strict=True), strict=True)
            )
        seen = _chunks_in(raw)
        for slot in range(stack.slot_count):
            stored = seen.get((slot * length, *rest))
            if (None if stored is None else (stored.byte_offset, stored.size)) != where.get(slot):
                self._found.add(UNLIKE.format(f"bytes as chunk {slot}"), path)
                return
            if stored is not None and stored.filter_mask & all_codecs == all_codecs and stored.size != nbytes:
                said = f"the index gives chunk {slot} {stored.size} bytes, but a chunk without codecs has {nbytes}"
                self._found.add(said, path)
        stored_slots = sorted(where)
        if not stored_slots or path in self._lacking or not self._all:  # chunks of single versions are hashed anyway
            return
        some = stored_slots if raw.dtype.hasobject else [stored_slots[0], stored_slots[-1]]
        for slot in dict.fromkeys(some):
            one, other = raw[slot * length : (slot + 1) * length], stack.raw[slot * length : (slot + 1) * length]
            if _plain(one) != _plain(other):
                self._found.add(UNLIKE.format(f"elements in chunk {slot}"), path)
            self._tell()

    # --------------------------------------------------------------------------------------------- the versions

    def _look_at_version(self, name: str) -> None:
        group, ours = self._file[f"{VERSIONS}/{name}"], self._ours[f"{VERSIONS}/{name}"]
        if not self._all:
            group.visit(lambda _: None)
        before = len(self._found.damages)
        marks: Marks = {}
        _compare_attributes(self._found, group, ours, None, (name,))
        self._mark(name, group, ours, "", marks)
        record = self._log.versions.get(name)
        if record is None:
            self._found.unproved[name] = "it has no fingerprint: other software, or an older hyperslab, committed it"
            return
        attributes = version_attributes(group)
        is_same = marks == record.marks and attributes == record.attributes
        if group.attrs["timestamp"] != record.timestamp:
            if is_same:
                self._found.add(f"its time is not the one that was committed, {record.timestamp}", None, (name,))
            else:
                self._found.unproved[name] = "another version had this name when hyperslab committed it"
            return
        if attributes != record.attributes:
            self._found.add("its attributes are not those that were committed", None, (name,))
        parent = group.attrs["prev_version"]
        is_before = self._is_before(parent, record)
        if not is_before and self._remaining(record.parent) is None:
            self._found.unproved[name] = f"its parent was {record.parent!r}, which other software made and deleted"
        elif not is_before:
            self._found.add(f"its parent is {parent!r}, but was {record.parent!r}", None, (name,))
        unread = {path for path in record.marks.keys() - marks.keys() if path in group}  # reported already
        record = replace(record, marks={path: mark for path, mark in record.marks.items() if path not in unread})
        self._compare_marks(name, marks, record)
        if unread:
            self._found.unproved.setdefault(name, f"{min(unread)} cannot be read")
        if name not in self._found.unproved and len(self._found.damages) == before:
            self._found.proved.append(name)

    def _compare_marks(self, name: str, marks: Marks, record: Record) -> None:
        testimony, was = self._found, record.marks
        kinds, before = ({path: mark.is_array for path, mark in one.items()} for one in (marks, was))
        if kinds != before:
            differ = sorted(path for path in kinds.keys() | before.keys() if kinds.get(path) != before.get(path))
            said = ", ".join(differ[:FEW]) + (", …" if len(differ) > FEW else "")
            testimony.add(f"its groups and arrays are not those that were committed: {said}", None, (name,))
        for path in marks.keys() & was.keys():
            one, other = marks[path], was[path]
            if one.attributes != other.attributes:
                testimony.add("its attributes are not those that were committed", path, (name,))
            if one.description != other.description:
                if self._has_gaps(path):
                    said = "an older hyperslab may have recorded bytes of its fill value that mean nothing"
                    testimony.unproved[name] = f"{path} is not described as before: {said}"
                elif one.description == self._raw_descriptions.get(path):
                    testimony.unproved[name] = f"{path} is stored in another way than before: other software changed it"
                else:
                    testimony.add("its elements, fill value or chunks are not those that were committed", path, (name,))
            elif one.content != other.content and self._has_gaps(path):
                said = "hashes cover bytes that mean nothing, and other software may have made them again"
                testimony.unproved[name] = f"{path} is not the list of chunks that was committed: {said}"
            elif one.content != other.content:
                is_moved = not self._is_as_recorded(path, record.tables.get(path))
                if is_moved and self._content_without_fill(name, path) == other.content:
                    continue
                testimony.add(f"{OTHER}: {WRITTEN_AGAIN}" if is_moved else OTHER, path, (name,))

    def _has_gaps(self, path: str) -> bool:
        """Whether elements of an array have bytes that mean nothing, which others copy and hash as they like."""
        return path in self._stacks and has_padding(self._stacks[path].raw.dtype)

    def _content_without_fill(self, version: str, path: str) -> bytes | None:
        """The content of an array as if no chunk at its ends that holds only the fill value were stored. Other software
        stores such chunks when it writes the chunks of an array again.
        """
        array, stack, keys = self._ours[f"{VERSIONS}/{version}/{path}"], self._stacks.get(path), self._keys.get(path)
        if not isinstance(array, ArchiveArray) or stack is None or keys is None:
            return None
        slots = grid_slots(array, stack.chunk_shape)
        if slots is None:
            return None
        slots, fill = slots.reshape(-1).copy(), "" if stack.raw.dtype.hasobject else stack.fill
        starts = np.stack(np.unravel_index(np.arange(len(slots)), chunk_counts(array.shape, stack.chunk_shape)), axis=1)
        shapes = np.minimum(np.array(array.shape) - starts * stack.chunk_shape, stack.chunk_shape)
        ends = np.flatnonzero((shapes != stack.chunk_shape).any(axis=1) & (slots != MISSING))
        nothing: dict[tuple[int, ...], int] = {}  # the key of a chunk of only the fill value, by its shape
        for number, shape in zip(ends.tolist(), map(tuple, shapes[ends].tolist()), strict=True):
            if shape not in nothing:
                digest = chunk_hash(filled(shape, fill, stack.raw.dtype))
                nothing[shape] = int(np.frombuffer(digest, "<i8")[0])
            if keys[slots[number]] == nothing[shape]:
                slots[number] = MISSING
        return content(array.shape, slots, keys)

    def _mark(self, version: str, group: Any, ours: Any, prefix: str, marks: Marks) -> None:
        _compare_names(self._found, group, ours, f"groups and arrays in {prefix or 'it'}", (version,))
        for name in group:
            path = f"{prefix}{name}"
            with self._found.heard("HDF5 cannot read it", path, (version,)):
                if group.get(name, getclass=True, getlink=True) is not h5py.HardLink:
                    continue
                child, own = group[name], ours[name]
                if isinstance(child, h5py.Group):
                    marks[path] = group_mark(child)
                    _compare_attributes(self._found, child, own, path, (version,))
                    self._mark(version, child, own, f"{path}/", marks)
                    continue
                address = h5py.h5o.get_info(child.id).addr
                if (path, address) not in self._seen:
                    self._seen[path, address] = self._array(version, path, child, own)
                self._tell()
                if path in self._lacking:
                    self._found.unproved.setdefault(version, self._lacking[path])
                mark = self._seen[path, address]
                if mark is not None:
                    marks[path] = mark

    def _array(self, version: str, path: str, array: Any, ours: Any) -> Mark | None:
        """Compare an array with what we see, and return its mark."""
        testimony, where = self._found, (path, (version,))
        if not isinstance(ours, ArchiveArray):
            testimony.add(UNLIKE.format("kind of object"), *where)
            return None
        _compare_attributes(testimony, array, ours, *where)
        fill = self._fill_of(path, array, ours)
        if (
            array.shape != ours.shape
            or type_text(array.dtype) != type_text(ours.dtype)
            or not _same_fill(fill, array.dtype, ours)
        ):
            testimony.add(UNLIKE.format("shape, elements or fill value"), *where)
        if array.maxshape != array.shape:
            testimony.add("it is resizable, but arrays of versions never are", *where)
        if str(array.attrs["raw_data"]) != f"/{DATA}/{path}/raw_data" or array.attrs["chunks"].dtype != np.int64:
            testimony.add("its attributes do not say correctly where its chunks are, or what shape they have", *where)
        chunk_shape = tuple(int(length) for length in array.attrs["chunks"])
        slots = grid_slots(ours, chunk_shape)
        if slots is None or path not in self._keys:
            return None  # `verify` reports it
        if array.size and path not in self._lacking:
            for at in ((0,) * array.ndim, tuple(length - 1 for length in array.shape)):
                one, other = array[at], ours[at]
                if _plain(one) != _plain(other):
                    testimony.add(UNLIKE.format(f"element at {at}"), *where)
        keys = self._keys[path]
        if slots.size and int(slots.max()) >= len(keys):
            return None
        said = description(array.dtype, chunk_shape, fill)
        return Mark(True, said, array_attributes(array), content(array.shape, slots, keys))

    def _fill_of(self, path: str, array: Any, ours: ArchiveArray) -> Any:
        """The fill value as HDF5 sees it. It copies the whole list of chunks before it tells, so it is asked once for
        all versions of an array that store the same bytes as fill value. Text has none that counts.
        """
        if array.dtype.hasobject:
            return None
        key = path, type_text(array.dtype), ours._stored.fill
        if key not in self._fills:
            self._fills[key] = array.fillvalue
        return self._fills[key]


def _chunks_in(raw: Any) -> dict[tuple[int, ...], Any]:
    """The chunks of an array by their first elements. libhdf5 walks over all of them each time it is asked for one."""
    seen: dict[tuple[int, ...], Any] = {}

    def see(stored: Any) -> None:
        seen.setdefault(stored.chunk_offset, stored)

    if h5py.version.hdf5_version_tuple >= (1, 14, 2):
        raw.id.chunk_iter(see)
    else:
        for number in range(raw.id.get_num_chunks()):
            see(raw.id.get_chunk_info(number))
    return seen


def _compare_names(
    testimony: Testimony, group: Any, ours: Any, what: str, versions: Sequence[str] | None = None
) -> None:
    if set(group) != set(ours):
        testimony.add(UNLIKE.format(what), None, versions)


def _attribute_names(holder: Any) -> set[str]:
    """The names of attributes. Asked for all at once, libhdf5 opens a virtual array again, with all its mappings."""
    count = h5py.h5a.get_num_attrs(holder.id)
    return {h5py.h5a.open(holder.id, index=index).name.decode("utf-8", "surrogateescape") for index in range(count)}


def _compare_attributes(
    testimony: Testimony, holder: Any, ours: Any, array: str | None, versions: Sequence[str] | None
) -> None:
    """Compare attributes. One that only we cannot read is not damage in itself."""
    with testimony.heard("HDF5 cannot read its attributes", array, versions):
        names = _attribute_names(holder)
        if names != set(ours.attrs):
            testimony.add(UNLIKE.format("attributes"), array, versions)
            return
        for name in names:
            theirs = holder.attrs[name]
            try:
                own = ours.attrs[name]
            except HyperslabError as error:
                if "amage" in type(error).__name__:
                    testimony.add(f"attribute {name!r}: {error}", array, versions)
                continue
            if not isinstance(theirs, h5py.Empty) and _plain(theirs) != _plain(own):
                testimony.add(UNLIKE.format(f"value of the attribute {name!r}"), array, versions)


def _same_fill(fill: Any, dtype: np.dtype[Any], ours: ArchiveArray) -> bool:
    """Whether a fill value as HDF5 sees it is the one that we see."""
    if dtype.hasobject:
        return True
    own = meaningful(ours._stored.fill or b"", dtype)
    theirs = element_bytes(fill, dtype)
    return theirs == own or not (any(theirs) or any(own))


def _plain(value: Any) -> Any:
    """Elements in a form in which both libraries' can be compared."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "OSU" and not value.dtype.hasobject:
        return value.shape, type_text(value.dtype), element_bytes(value, value.dtype)
    if isinstance(value, np.ndarray):
        return value.shape, [_text(one) for one in value.reshape(-1).tolist()]
    return _text(value)


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.rstrip(b"\0")
    if isinstance(value, str):
        return text_bytes(value)
    if isinstance(value, h5py.Reference | h5py.RegionReference):
        return "reference"
    return repr(value)
