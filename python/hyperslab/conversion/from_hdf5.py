"""Converts a local HDF5 file to another HDF5 file: the structure is copied, and arrays get their new chunks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from hyperslab.archive.tree.dimensions import PhonyDimensions
from hyperslab.archive.tree.followed import opened_by_h5py
from hyperslab.archive.tree.whole import lost
from hyperslab.chunk_grid import ceil_div
from hyperslab.conversion.encoding import SlabEncoder
from hyperslab.conversion.filling import Filling
from hyperslab.conversion.hdf5_structure import Original, StructureCopy, has_pointers, has_references, is_plain
from hyperslab.conversion.hdf5_target import (
    Hdf5Array,
    WrittenByLibhdf5,
    check,
    created_array,
    creation_list,
    filters_of,
    lacking,
)
from hyperslab.conversion.index_room import Indexed, IndexRoom, oldest, planned_counts, set_chunk_index_width
from hyperslab.conversion.partial_file import PartialFile, created
from hyperslab.conversion.reading import BoxReader
from hyperslab.conversion.sources import check_external, missing_sources
from hyperslab.conversion.stored_chunks import StoredCopy, copy_user_block
from hyperslab.conversion.wishes import ArrayWish, Wish, shape_of, usual_chunk_shape
from hyperslab.errors import DamagedFile, HyperslabError, ReadError, Refused
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.storage.chain import CodecChain, hdf5_steps, needs
from hyperslab.storage.hdf5_plugins import has_codec

if TYPE_CHECKING:
    from hyperslab.archive.tree.array import Array
    from hyperslab.archive.tree.group import Group

# A contiguous array of at most this many bytes is copied as it is.
SMALL_NBYTES = 64 << 10
MOST_ELEMENTS = 1 << 18


class FromHdf5:
    """Creates the objects of the target, and lists the arrays to fill.

    Parameters
    ----------
    source : Group
        The source, as we read it.
    file : PartialFile
        What libhdf5 writes to.
    wish : Wish
        The wanted chunks and codecs.
    threads : int | None
        How many threads encode.
    """

    def __init__(
        self,
        source: Group,
        file: PartialFile,
        wish: Wish,
        threads: int | None,
    ) -> None:
        self._root = source
        self._phony = PhonyDimensions(source)
        self._file = file
        self._wish = wish
        self._threads = threads
        self.source: Any = _opened(source)
        creation = self._creation()
        low, width = oldest(self.source), set_chunk_index_width(creation, planned_counts(source, wish))
        self.target: Any = created(file, creation, low=low)
        self.room: IndexRoom = IndexRoom(self.target, low, width)
        self._small: list[tuple[Any, Any, Any]] = []  # old, new, and the dtype of its elements in memory
        self.fillings: list[Filling] = []
        self.copies: list[StoredCopy] = []
        self._wished = self._addresses()
        block = int(creation.get_userblock())
        if block:
            copy_user_block(source.filename, file, block)
        self._structure = self._structure_copy()
        self.notes: list[tuple[str, str]] = self._structure.notes

    @property
    def losses(self) -> list[tuple[str, str]]:
        """What cannot be converted."""
        return self._structure.losses

    def build(self) -> None:
        """Create everything but the elements of arrays, apart from references."""
        self._structure.copy()

    def small(self) -> list[Indexed | None]:
        """The arrays that are not worth our threads."""
        return [Indexed.of_small(new) for _, new, _ in self._small]

    def write_small(self) -> None:
        """Write the elements of these."""
        for old, new, dtype in self._small:
            raise_pending_signals()
            _copy_elements(old, new, dtype)

    def _structure_copy(self) -> StructureCopy:
        return StructureCopy(self.source, self.target, self._array)

    def _creation(self) -> Any:
        old = h5py.h5g.open(self.source.id, b"/").get_create_plist()  # that of an open file does not tell
        made = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        made.set_link_creation_order(old.get_link_creation_order())
        made.set_attr_creation_order(old.get_attr_creation_order())
        made.set_userblock(self.source.id.get_create_plist().get_userblock())
        return made

    def _wish_of(self, original: Original) -> ArrayWish:
        """What is wanted for an array, by whichever of its paths you named it."""
        address = h5py.h5o.get_info(original.source).addr
        return self._wish.of(self._wished.get(address, original.path))

    def _dims_of(self, original: Original, array: Array) -> tuple[str, ...] | None:
        """The names of an array's dimensions, as netCDF-C numbers those that have none."""
        if array.dims is not None or not isinstance(self._wish_of(original).chunks, Mapping):
            return array.dims
        parent, _, name = original.path.strip("/").rpartition("/")
        group: Any = self._root[parent] if parent else self._root
        return self._phony.names(group).get(name)

    def _addresses(self) -> dict[int, str]:
        """The paths of the wish by the addresses of their arrays."""
        paths = [path for path in self._wish.arrays if isinstance(self.source.get(path), h5py.Dataset)]
        return {h5py.h5o.get_info(self.source[path].id).addr: path for path in paths}

    def close(self) -> None:
        """Close both files."""
        self.room.close()
        self.target.close()
        self.source.close()

    def _array(self, original: Original, structure: StructureCopy) -> None:
        path = original.path
        try:
            array: Any = self._root[path]
            reason = array.damaged
            check_external(array)
        except HyperslabError as error:
            reason, array = str(error), None
        if reason:
            structure.losses.append((path, f"it cannot be read: {reason}"))
            return
        gone = missing_sources(array)
        if gone is not None:
            structure.losses.append((path, gone))  # it is copied all the same, if you allow that
        old = original.source
        plist = old.get_create_plist()
        is_chunked = plist.get_layout() == h5py.h5d.CHUNKED
        kept = plist.get_chunk() if is_chunked else None
        wish = self._wish_of(original)
        shape = original.shape or ()
        is_null = old.get_space().get_simple_extent_type() == h5py.h5s.NULL
        wanted = kept if is_null or not shape else self._wanted(wish, original, array, kept)
        is_elsewhere = bool(plist.get_external_count()) or plist.get_layout() == h5py.h5d.VIRTUAL
        is_ours = is_plain(old.get_type()) and not is_null and shape != ()
        said = lacking(filters_of(plist)) if wish.codec is None or not is_ours else None
        if said is not None:
            structure.losses.append((path, said))
            return
        if not is_ours:
            self._as_it_is(original, structure, wanted, is_changed=wish.codec is not None)
            return
        same_codec = wish.codec is None or self._same(wish.codec, plist, array, kept)
        is_contiguous = plist.get_layout() == h5py.h5d.CONTIGUOUS and not is_elsewhere
        if wanted == kept and same_codec and (is_chunked or (is_contiguous and array.nbytes > SMALL_NBYTES)):
            self._stored(original, structure, array, plist)
        elif not is_chunked and wanted is None and not is_elsewhere and array.nbytes <= SMALL_NBYTES:
            self._as_it_is(original, structure, None, is_changed=False)
        else:
            self._new(original, structure, array, plist, wanted)

    def _wanted(
        self, wish: ArrayWish, original: Original, array: Array, kept: tuple[int, ...] | None
    ) -> tuple[int, ...] | None:
        """The chunk shape of the copy; None for an array in one piece. No axis has longer chunks than it can grow."""
        shape = original.shape or ()
        if wish.is_contiguous:
            return None
        limits = wish.limits(original.limits)
        wanted = shape_of(wish.chunks, shape, self._dims_of(original, array), kept, limits)
        if wanted is None and 0 not in shape and (wish.append_axis is not None or (wish.codec and wish.codec.codec)):
            wanted = usual_chunk_shape(shape, array.dtype.itemsize)
        if wanted is None:
            return None
        return tuple(one if most is None else min(one, max(most, 1)) for one, most in zip(wanted, limits, strict=True))

    def _space(self, original: Original, wanted: tuple[int, ...] | None) -> Any:
        """The dataspace of the copy: an array in one piece cannot grow, and the axis that you name can."""
        old = original.source
        if old.get_space().get_simple_extent_type() != h5py.h5s.SIMPLE:
            return old.get_space().copy()
        shape = original.shape or ()
        limits = shape if wanted is None else self._wish_of(original).limits(original.limits)
        return h5py.h5s.create_simple(shape, tuple(h5py.h5s.UNLIMITED if one is None else one for one in limits))

    @staticmethod
    def _same(codec: Any, plist: Any, array: Array, kept: tuple[int, ...] | None) -> bool:
        if kept is None:
            return not codec.codec
        filters, _ = codec.hdf5(array.dtype.itemsize, math.prod(kept) * array.dtype.itemsize)
        have = filters_of(plist)
        return [(number, values) for number, _, values in filters] == [(number, values) for number, _, values in have]

    def _as_it_is(
        self, original: Original, structure: StructureCopy, wanted: tuple[int, ...] | None, *, is_changed: bool
    ) -> None:
        """Copy an array with libhdf5: its elements are not plain bytes, or are few."""
        old = original.source
        if has_references(old.get_type()):
            self._referring(original, structure)
            return
        plist = old.get_create_plist()
        if plist.get_layout() in (h5py.h5d.CHUNKED, h5py.h5d.VIRTUAL) or plist.get_external_count():
            plist = creation_list(plist, wanted, filters_of(plist))
        if is_changed and self._wish_of(original).codec is not None:
            self.notes.append((original.path, "its elements have variable length, so it keeps its codecs"))
        try:
            dtype = _sure_dtype(old)
            made = created_array(original.parent, original.name, structure.type_of(old), old.get_space().copy(), plist)
            if dtype is not None:
                self._small.append((old, made, dtype))
            else:  # h5py may not have such elements, so it has to show now
                _copy_elements(old, made, old.dtype)
        except (TypeError, ValueError, NotImplementedError):  # h5py has no such elements, but libhdf5 can copy them
            if original.parent.links.exists(original.name):
                original.parent.unlink(original.name)
            h5py.h5o.copy(old, b".", original.parent, original.name)
        except (OSError, RuntimeError):
            check(self._file)
            raise

    def _referring(self, original: Original, structure: StructureCopy) -> None:
        """Copy an array of references. What they lead to may come later, so its elements are written at the end."""
        old = original.source
        if old.get_type().get_class() not in (h5py.h5t.REFERENCE, h5py.h5t.COMPOUND):
            structure.losses.append((original.path, "its elements are lists of references"))
            return
        made = created_array(
            original.parent, original.name, structure.type_of(old), old.get_space().copy(), old.get_create_plist()
        )
        structure.later.append((h5py.Dataset(old), h5py.Dataset(made)))

    def _stored(self, original: Original, structure: StructureCopy, array: Array, plist: Any) -> None:
        """The chunks stay as they are stored."""
        if not array.segments():  # our parser cannot list them
            structure.losses.append((original.path, array.unsupported or "its chunks cannot be listed"))
            return
        if plist.get_layout() == h5py.h5d.CHUNKED:
            plist = creation_list(plist, plist.get_chunk(), filters_of(plist), keeps_chunks=True)
            space = self._space(original, plist.get_chunk())
        else:
            space = original.source.get_space().copy()
        made = created_array(original.parent, original.name, structure.type_of(original.source), space, plist)
        self.copies.append(StoredCopy(original.path, array, made))

    def _new(
        self, original: Original, structure: StructureCopy, array: Array, plist: Any, wanted: tuple[int, ...] | None
    ) -> None:
        """The array gets new chunks, other codecs, or none."""
        if array.unsupported:  # then libhdf5 reads it, with all of its filters
            missing = [number for number, *_ in filters_of(plist) if not has_codec(number)]
            if missing or array.via != "h5py":
                said = f"its filter {missing[0]} is not installed" if missing else array.unsupported
                structure.losses.append((original.path, said))
                return
        old, width = original.source, array.dtype.itemsize
        wish = self._wish_of(original)
        try:
            filters, steps = _filters(wish, plist, width, wanted)
        except Refused as error:
            structure.losses.append((original.path, str(error)))
            return
        made_list = creation_list(plist, wanted, filters)
        if plist.get_external_count():
            _keep_fill_value(old, plist, made_list)
        if steps is None and not all(has_codec(number) for number, *_ in filters):
            chain = CodecChain.nearest(array.codecs, array.filters)
            said = (
                f"its filters {', '.join(array.codecs)} cannot be written here: choose another codec, such as {chain}"
            )
            structure.losses.append((original.path, said))
            return
        needed = needs(number for number, *_ in filters) if wish.codec is not None else None
        if needed is not None:
            structure.notes.append((original.path, f"its readers need {needed}"))
        space = self._space(original, wanted)
        shape = original.shape or ()
        if wanted is None and shape and None in original.limits:
            structure.notes.append((original.path, "an array in one piece cannot grow"))
        made = created_array(original.parent, original.name, structure.type_of(old), space, made_list)
        fill = array.fill_bytes
        unit = wanted or usual_chunk_shape(shape, width)
        target: Any
        few: int | None = None
        if wanted is None or steps is None:
            target = WrittenByLibhdf5(self._file, made, array.dtype, SlabEncoder(unit, (), fill, self._threads))
        else:
            stored = array.stored_chunk_count
            is_sparse = stored is not None and stored < array.chunk_count
            encoder = SlabEncoder(wanted, tuple(steps), fill, self._threads, is_sparse)
            target = Hdf5Array(self._file, made, encoder)
            if stored is not None and is_sparse and array.chunks is not None:
                # Each stored chunk touches at least one new one, and seldom more than lie in it.
                few = stored * max(1, ceil_div(math.prod(array.chunks), math.prod(wanted)))
        read = BoxReader(array, self._threads)
        filling = Filling(original.path, shape, width, fill, array.chunks, unit, read, target, stored_count=few)
        self.fillings.append(filling)


def _opened(source: Group) -> h5py.File:
    """The source as libhdf5 sees it, which copies everything but elements."""
    try:
        return opened_by_h5py(h5py, source.filename, locks=False)
    except OSError as error:
        if source.lost_nbytes:
            raise DamagedFile(
                f"{source.filename}: {lost(source)}; get a good copy of it, or convert to Zarr"
            ) from error
        said = f"{source.filename}: we can read it, but libhdf5 cannot open it ({error})"
        raise ReadError(f"{said}: convert it to Zarr, which does not need libhdf5") from error


def _filters(
    wish: ArrayWish, plist: Any, width: int, wanted: tuple[int, ...] | None
) -> tuple[list[Any], list[Any] | None]:
    """The filters of an array with these chunks, and the steps of our encoder; None if it lacks one of them."""
    if wanted is None:
        return [], []
    if wish.codec is not None:
        return wish.codec.hdf5(width, math.prod(wanted) * width)
    filters = filters_of(plist)
    return filters, hdf5_steps([(number, values) for number, _, values in filters])


def _keep_fill_value(old: Any, plist: Any, made_list: Any) -> None:
    """The fill value of an array in external files, whose list cannot be copied, and when it is written."""
    made_list.set_fill_time(plist.get_fill_time())
    if plist.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED:
        value = np.zeros((), old.dtype)
        plist.get_fill_value(value)
        made_list.set_fill_value(value)


def _sure_dtype(array: Any) -> Any:
    """The dtype with which h5py certainly copies the elements of an array; None if it has to try.

    As bytes if possible: h5py has no such element for every type, and may cut text that has no room for a zero.
    """
    kind = array.get_type()
    if not has_pointers(kind):
        return np.dtype(f"V{kind.get_size()}")
    hdf5_class = kind.get_class()
    if hdf5_class == h5py.h5t.VLEN:  # lists
        inner = kind.get_super()
        is_sure = inner.get_class() in (h5py.h5t.INTEGER, h5py.h5t.FLOAT) and is_plain(inner)
    else:
        is_sure = hdf5_class == h5py.h5t.STRING
    return array.dtype if is_sure else None


def _copy_elements(old: Any, new: Any, dtype: Any) -> None:
    """Copy the elements of an array through h5py, some rows at a time."""
    kind = old.get_type()
    memory = None if has_pointers(kind) else kind
    if old.get_space().get_simple_extent_type() == h5py.h5s.NULL or 0 in old.shape:
        return
    settings = old.get_create_plist()
    is_own = settings.get_layout() == h5py.h5d.CONTIGUOUS and not settings.get_external_count()
    if is_own and not old.get_storage_size():
        return  # it was never written
    if not old.shape:
        elements: Any = np.empty((), dtype)
        old.read(h5py.h5s.ALL, h5py.h5s.ALL, elements, memory)
        new.write(h5py.h5s.ALL, h5py.h5s.ALL, elements, memory)
        return
    step = max(1, MOST_ELEMENTS // math.prod(old.shape[1:]))
    for start in range(0, old.shape[0], step):
        box = (min(step, old.shape[0] - start), *old.shape[1:])
        space = old.get_space()
        space.select_hyperslab((start, *(0 for _ in box[1:])), box)
        elements = np.empty(box, dtype)
        here = h5py.h5s.create_simple(box)
        old.read(here, space, elements, memory)
        new.write(here, space, elements, memory)
