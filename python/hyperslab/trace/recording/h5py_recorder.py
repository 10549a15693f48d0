"""Records what h5py's datasets read and write. Calls of its low-level interface (`h5py.h5d`) are not seen here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .h5py_openings import Openings
from .hooks import location, replace
from .log import ALL, FAILED, NOTHING, READ, WRITE, Log, clock
from .selecting import Encoded, NotPlain, boxes, hyperslab, plain_key, points

_MARK = "_hyperslab_trace"
# Filters that an advice may name, by number: HDF5's own, LZF, Blosc, LZ4, bitshuffle and Zstandard.
_ADVISED = (1, 2, 3, 4, 5, 6, 32000, 32001, 32004, 32008, 32015)
_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset"}


def put_into(module: Any, log: Log) -> Callable[[], None]:
    """Replace the functions of `h5py._hl.dataset` by recording ones. Call what it returns to restore them."""
    kind = module.Dataset
    made = module.make_new_dset
    recorder = _Recorder(log, module)

    def make_new_dset(
        parent: Any, shape: Any = None, dtype: Any = None, data: Any = None, *rest: Any, **kw: Any
    ) -> Any:
        start = clock()
        new = made(parent, shape, dtype, data, *rest, **kw)
        if data is not None:
            recorder.note(kind(new), ..., WRITE, (start, clock()), getattr(data, "dtype", None))
        return new

    def reading(original: Any) -> Any:
        def __getitem__(self: Any, args: Any, new_dtype: Any = None) -> Any:
            return recorder.call(lambda: original(self, args, new_dtype), self, args, READ, None)

        return __getitem__

    def writing(original: Any) -> Any:
        def __setitem__(self: Any, args: Any, val: Any) -> None:
            recorder.call(lambda: original(self, args, val), self, args, WRITE, getattr(val, "dtype", None))

        return __setitem__

    def directly(original: Any, operation: int) -> Any:
        def direct(self: Any, memory: Any, source_sel: Any = None, dest_sel: Any = None) -> None:
            selected = source_sel if operation == READ else dest_sel
            key = ... if selected is None else selected
            dtype = getattr(memory, "dtype", None)
            recorder.call(lambda: original(self, memory, source_sel, dest_sel), self, key, operation, dtype)

        return _with_names(direct, "dest" if operation == READ else "source")

    undo_class = replace(
        kind,
        __init__=_making(kind.__init__, recorder.openings),
        __getitem__=reading(kind.__getitem__),
        __setitem__=writing(kind.__setitem__),
        read_direct=directly(kind.read_direct, READ),
        write_direct=directly(kind.write_direct, WRITE),
    )
    undo_module = replace(module, make_new_dset=make_new_dset)

    def undo() -> None:
        undo_class()
        undo_module()

    return undo


def _making(original: Any, openings: Openings) -> Any:
    def __init__(self: Any, *given: Any, **named: Any) -> None:
        original(self, *given, **named)
        with contextlib.suppress(Exception):  # the program goes on
            openings.made(self.id)

    return __init__


def _with_names(direct: Any, name: str) -> Any:
    """Take the memory by the name that h5py gives it."""

    def method(self: Any, *given: Any, **named: Any) -> None:
        if name in named:
            named["memory"] = named.pop(name)
        direct(self, *given, **named)

    return method


class _Recorder:
    def __init__(self, log: Log, module: Any) -> None:
        self.log = log
        self.openings = Openings()
        self.select = module.sel.select
        self.inside = log.inside

    def call(self, original: Callable[[], Any], stored: Any, key: Any, operation: int, dtype: Any) -> Any:
        """Make an access, and record it if it is not part of another one."""
        if getattr(self.inside, "depth", 0):
            return original()
        self.inside.depth = 1
        start, flags, value = clock(), FAILED, None
        try:
            value = original()
            flags = 0
            return value
        finally:
            stop = clock()
            with contextlib.suppress(Exception):  # what cannot be described is not recorded; the program goes on
                self.note(stored, key, operation, (start, stop), dtype or getattr(value, "dtype", None), flags)
            self.inside.depth = 0

    def note(self, stored: Any, key: Any, operation: int, times: tuple[int, int], dtype: Any, flags: int = 0) -> None:
        """Record an access that has been made."""
        shape = stored.shape
        if shape is None:
            return
        known = stored.__dict__.get(_MARK)
        if known is None or known[:2] != (self.log.epoch, shape) or known[4] is not self.log:
            described = _described(stored, shape)
            nbytes = described["element_nbytes"]
            flags |= self.openings.accessed(stored.id, (described["file"], described["array"]))
            known = (self.log.epoch, shape, self.log.array(described), nbytes, self.log)
            stored.__dict__[_MARK] = known
        selection, size = self.selected(stored, key, shape)
        memory_type = self.log.dtype_name(dtype)
        self.log.access(times, known[2], operation, selection, size * known[3], memory_type, flags)

    def selected(self, stored: Any, key: Any, shape: tuple[int, ...]) -> tuple[Encoded, int]:
        """The selection of a key, and its number of elements."""
        if isinstance(key, tuple):
            key = tuple(item for item in key if not isinstance(item, str | bytes))
            key = key or ...
        elif isinstance(key, str | bytes):
            key = ...
        if not shape:
            return (ALL, []), 1
        with contextlib.suppress(NotPlain):
            return plain_key(key, shape)
        selection = self.select(shape, key, stored)
        return of_space(selection.id, shape)


def of_space(space: Any, shape: tuple[int, ...]) -> tuple[Encoded, int]:
    """The selection of a dataspace of h5py's low-level interface, and its number of elements."""
    import h5py

    kind, size = space.get_select_type(), int(space.get_select_npoints())
    if kind == h5py.h5s.SEL_ALL:
        return (ALL, []), int(np.prod(shape))
    if kind == h5py.h5s.SEL_NONE or size == 0:
        return (NOTHING, []), 0
    if kind == h5py.h5s.SEL_POINTS:
        return points(space.get_select_elem_pointlist()), size
    if space.is_regular_hyperslab():
        return hyperslab(zip(*(map(int, one) for one in space.get_regular_hyperslab()), strict=True)), size
    listed = space.get_select_hyper_blocklist()
    return boxes(listed[:, 0], listed[:, 1]), size


def _is_decoded(number: int) -> bool:
    """Whether libhdf5 has a filter now. To ask in this way loads no plugin."""
    import h5py

    try:
        return bool(h5py.h5z.get_filter_info(number) & h5py.h5z.FILTER_CONFIG_DECODE_ENABLED)
    except RuntimeError:
        return False


def _described(stored: Any, shape: tuple[int, ...]) -> dict[str, Any]:
    properties = stored.id.get_create_plist()
    access = stored.id.get_access_plist()
    chunks = stored.chunks
    slots, nbytes, w0 = access.get_chunk_cache()
    filters = [properties.get_filter(k)[0] for k in range(properties.get_nfilters())]
    layouts = {0: "compact", 1: "contiguous", 2: "chunked", 3: "virtual"}
    description = {
        "library": "h5py", "file": location(stored.file.filename),
        "array": stored.name or "(anonymous)", "shape": list(shape),
        "chunks": None if chunks is None else list(chunks), "dtype": _dtype_text(stored.dtype),
        "element_nbytes": int(stored.id.get_type().get_size()),
        "filters": [_FILTERS.get(number, str(number)) for number in filters],
        "layout": layouts.get(properties.get_layout(), "unknown"),
        "decodes": [number for number in _ADVISED if _is_decoded(number)],
    }  # fmt: skip
    if chunks is not None:
        description |= {"cache_nbytes": int(nbytes), "cache_slots": int(slots), "cache_w0": float(w0)}
    return description


def _dtype_text(dtype: Any) -> str:
    return str(dtype.str) if dtype.names is None and dtype.subdtype is None and dtype.kind != "O" else str(dtype)
