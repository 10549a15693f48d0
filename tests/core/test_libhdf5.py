"""`LibHdf5`: whatever Python passes to it, the process ends with an exception and not by a signal."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py._objects import phil

from hyperslab import _core, libhdf5
from hyperslab._core import LibHdf5

ROOT = Path(__file__).parents[2]
CHILD = r"""
import faulthandler, sys
import h5py, numpy as np
from hyperslab._core import LibHdf5

faulthandler.enable()
library = LibHdf5.of_h5py()
file = h5py.File(sys.argv[1], "w")
stack = file.create_dataset("stack", (8, 4), "f8", chunks=(2, 4), maxshape=(None, 4))
deflated = file.create_dataset("deflated", (8, 4), "f8", chunks=(2, 4), compression="gzip")
plain = file.create_dataset("plain", (8, 4), "f8")
other = h5py.File(sys.argv[1] + ".other", "w")
freed = other.create_dataset("freed", (8, 4), "f8", chunks=(2, 4))
space = h5py.h5s.create_simple((8, 4))
kinds = {
    "array": stack.id.id, "space": space.id, "file": file.id.id, "group": file["/"].id.id,
    "type": h5py.h5t.NATIVE_DOUBLE.id, "attribute": None,
}
stack.attrs["a"] = 1
attribute = h5py.h5a.open(stack.id, b"a")
kinds["attribute"] = attribute.id
lists = {name: h5py.h5p.create(getattr(h5py.h5p, name)) for name in (
    "FILE_CREATE", "GROUP_CREATE", "DATASET_CREATE", "FILE_ACCESS", "DATASET_XFER")}
lists["DATASET_CREATE"].set_layout(h5py.h5d.VIRTUAL)
kinds |= {name: one.id for name, one in lists.items()}
closed_space, closed_list = h5py.h5s.create_simple((8, 4)), h5py.h5p.create(h5py.h5p.FILE_ACCESS)
closed = {"freed": freed.id.id, "closed space": closed_space.id, "closed list": closed_list.id}
closed_space._close() if hasattr(closed_space, "_close") else None
del closed_space, closed_list
other.close()
FORGED = (0, -1, 1, 3, 4096, 1 << 40, (1 << 56) + 999_999, (4 << 56) + 999_999, (5 << 56) + 999_999,
          (11 << 56) + 999_999, 1 << 62, (1 << 63) - 1, -(1 << 63), 1 << 64, id(stack), np.zeros(9).ctypes.data)

one, box = np.zeros(64, np.uint8), ((2, 4), (2, 4))
slots = np.arange(4)
ids = (kinds["DATASET_CREATE"], kinds["space"], kinds["space"])
ways = {
    "write_chunks": ("array", lambda it: library.write_chunks(it, 0, one, [])),
    "write_slab": ("array", lambda it: library.write_slab(it, (0, 0), one, box, bytes(8), [])),
    "the list of add_mappings": ("DATASET_CREATE",
        lambda it: library.add_mappings((it, *ids[1:]), "/stack", (8, 4), (2, 4), slots)),
    "the target of add_mappings": ("space",
        lambda it: library.add_mappings((ids[0], it, ids[2]), "/stack", (8, 4), (2, 4), slots)),
    "the source of add_mappings": ("space",
        lambda it: library.add_mappings((ids[0], ids[1], it), "/stack", (8, 4), (2, 4), slots)),
    "evict_on_close": ("FILE_ACCESS", library.evict_on_close),
    "set_chunk_index_width": ("FILE_CREATE", lambda it: library.set_chunk_index_width(it, 16)),
    "set_heap_nbytes": ("GROUP_CREATE FILE_CREATE",  # a file begins with a group
        lambda it: library.set_heap_nbytes(it, 4096)),
    "set_bounds": ("file", lambda it: library.set_bounds(it, 0, h5py.h5f.LIBVER_LATEST)),
    "comment": ("array file group", library.comment),
}
cases = {}
for way, (right, call) in ways.items():
    for number in FORGED:
        cases[f"{way}, the integer {number}"] = lambda call=call, number=number: call(number)
    for name, number in {**closed, **kinds}.items():
        if name not in right.split():
            cases[f"{way}, {name}"] = lambda call=call, number=number: call(number)
chunks = lambda array, first, given, filters: lambda: library.write_chunks(array.id.id, first, given, filters)
cases |= {
    "write_chunks, bytes too few": chunks(stack, 0, one[:63], []),
    "write_chunks, bytes too many": chunks(stack, 0, np.zeros(100, np.uint8), []),
    "write_chunks, other elements": chunks(stack, 0, np.zeros(8), []),
    "write_chunks, no buffer": chunks(stack, 0, id(one), []),
    "write_chunks, two axes": chunks(stack, 0, one.reshape(8, 8), []),
    "write_chunks, with gaps": chunks(stack, 0, np.zeros(128, np.uint8)[::2], []),
    "write_chunks, behind the end": chunks(stack, 4, one, []),
    "write_chunks, far behind the end": chunks(stack, (1 << 63) + 1, one, []),
    "write_chunks, filters that it has not": chunks(stack, 0, one, [(1, 4)]),
    "write_chunks, without its filters": chunks(deflated, 0, one, []),
    "write_chunks, filters of no encoder": chunks(deflated, 0, one, [(77, 4)]),
    "write_chunks, a level that is none": chunks(deflated, 0, one, [(1, 4_000_000_000)]),
    "write_chunks, no chunks": chunks(plain, 0, one, []),
}
def slab(first=(0, 0), given=one, shapes=box, fill=bytes(8), filters=(), array=stack):
    return lambda: library.write_slab(array.id.id, first, given, shapes, fill, list(filters))
cases |= {
    "write_slab, a place of one axis": slab(first=(0,)),
    "write_slab, a place of three axes": slab(first=(0, 0, 0)),
    "write_slab, a place behind the end": slab(first=(8, 0)),
    "write_slab, a place too far": slab(first=((1 << 64) - 1, 0)),
    "write_slab, a place within a chunk": slab(first=(1, 0)),
    "write_slab, chunks of one axis": slab(shapes=((8,), (8,)), first=(0,)),
    "write_slab, other chunks": slab(shapes=((2, 4), (1, 4))),
    "write_slab, huge chunks": slab(shapes=((2, 4), (1 << 40, 1 << 20))),
    "write_slab, bytes too few": slab(given=one[:63]),
    "write_slab, elements too wide": slab(given=np.zeros(128, np.uint8), fill=bytes(16)),
    "write_slab, elements of no bytes": slab(given=one[:0], fill=b""),
    "write_slab, without its filters": slab(array=deflated),
    "write_slab, filters that it has not": slab(filters=[("deflate", [1])]),
    "write_slab, no chunks": slab(array=plain),
}
def mappings(shape=(8, 4), chunks=(2, 4), slots=slots, path="/stack", ids=ids):
    return lambda: library.add_mappings(ids, path, shape, chunks, slots)
scalar = h5py.h5s.create(h5py.h5s.SCALAR)
cases |= {
    "add_mappings, one axis": mappings(shape=(8,), chunks=(2,)),
    "add_mappings, three axes": mappings(shape=(8, 4, 1), chunks=(2, 4, 1)),
    "add_mappings, no axes": mappings(shape=(), chunks=(), slots=np.zeros(1, np.int64)),
    "add_mappings, scalars": mappings((), (), np.zeros(1, np.int64), ids=(ids[0], scalar.id, scalar.id)),
    "add_mappings, too many slots": mappings(slots=np.arange(5)),
    "add_mappings, a slot too far": mappings(slots=np.array([1 << 62])),
    "add_mappings, slots of other elements": mappings(slots=np.arange(4, dtype=np.int32)),
    "add_mappings, a zero in the path": mappings(path="/st\0ack"),
    "set_chunk_index_width, 0": lambda: library.set_chunk_index_width(kinds["FILE_CREATE"], 0),
    "set_chunk_index_width, too wide": lambda: library.set_chunk_index_width(kinds["FILE_CREATE"], 1 << 31),
    "set_heap_nbytes, too many": lambda: library.set_heap_nbytes(kinds["GROUP_CREATE"], 1 << 32),
    "set_bounds, unknown releases": lambda: library.set_bounds(kinds["file"], 77, 78),
    "set_bounds, in the wrong order": lambda: library.set_bounds(kinds["file"], 3, 0),
    "plugins, too many": lambda: setattr(library, "plugins", 1 << 32),
}
for name, call in cases.items():
    print("\n", name, end=": ", flush=True)
    try:
        print("returned", call())
    except Exception as error:
        print(type(error).__name__, *str(error).splitlines()[:1])
library.write_chunks(stack.id.id, 1, np.arange(8.0).view(np.uint8), [])
assert (stack[2:4] == np.arange(8.0).reshape(2, 4)).all() and not stack[:2].any() and not stack[4:].any()
file.close()
print("\n the end")
"""


def test_wrong_arguments_are_exceptions_and_never_a_signal(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "a.h5")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{done.returncode} after {done.stdout.splitlines()[-1]}\n{done.stderr}"
    said = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    assert said.pop() == "the end"
    assert len(said) > 200
    named = re.compile(": (ValueError|TypeError|OverflowError|RuntimeError|IndexError) ")
    wrong = [line for line in said if not named.search(line)]
    assert wrong == []


def test_nobody_can_make_one_but_of_h5py() -> None:
    library = libhdf5.loaded()
    assert library is not None
    for make in (
        lambda: LibHdf5(),  # type: ignore[call-arg]
        lambda: object.__new__(LibHdf5),
        lambda: LibHdf5.__new__(LibHdf5, 4096),  # type: ignore[call-arg]
        lambda: copy.copy(library),
        lambda: pickle.dumps(library),
        lambda: type("Forged", (LibHdf5,), {}),
    ):
        with pytest.raises(TypeError):
            make()
    with pytest.raises(AttributeError):
        library.library = 4096  # type: ignore[attr-defined]


def test_only_the_room_of_libhdf5_handles_addresses() -> None:
    rust = ROOT / "crates/hyperslab-python/src"
    unsafe = {path.relative_to(rust).parts[0] for path in rust.rglob("*.rs") if "unsafe" in path.read_text()}
    assert unsafe == {"libhdf5.rs"}
    border = (rust / "libhdf5.rs").read_text()
    assert not re.search(r"transmute|\*(const|mut) |from_raw|with_exposed_provenance", border)


def test_a_module_in_place_of_h5py_makes_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for path in (tmp_path / "none.so", Path(_core.__file__)):  # not loaded; loaded, but without libhdf5
        monkeypatch.setattr(h5py.h5s, "__file__", str(path))
        assert LibHdf5.of_h5py() is None


def test_it_waits_for_h5pys_lock() -> None:
    library = libhdf5.loaded()
    assert library is not None
    done = threading.Event()
    thread = threading.Thread(target=lambda: (library.plugins, done.set()))
    with phil:
        assert library.plugins >= 0  # the thread that holds the lock may call
        thread.start()
        assert not done.wait(0.1)
    assert done.wait(60)
    thread.join()


def test_an_error_lets_go_of_the_lock() -> None:
    library = libhdf5.loaded()
    assert library is not None
    with pytest.raises(ValueError, match="the identifier 0 is not an open array of this libhdf5"):
        library.write_chunks(0, 0, np.zeros(8, np.uint8), [])
    taken: list[bool] = []
    thread = threading.Thread(target=lambda: taken.append(phil.acquire(False)) or phil.release())
    thread.start()
    thread.join()
    assert taken == [True]
