"""Random programs of reads print the same with and without us, byte by byte, errors included."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from run_programs import python, run, without

SHAPE = (40, 30, 20)
PROGRAM = Path(__file__).parent / "reads_program.py"
EXAMPLES = int(os.environ.get("HYPERSLAB_EXAMPLES", "6"))
COLOURS = h5py.enum_dtype({"red": 0, "green": 1, "blue": 7}, basetype="i2")
FIELDS = np.dtype([("a", "<i4"), ("b", "S3"), ("c", "<f8", (2,)), ("d", [("e", ">i2"), ("f", "?")])])
DTYPES = {
    "i1": "i1", "i2": "<i2", "i2b": ">i2", "i4": "<i4", "i4b": ">i4", "i8": "<i8", "u1": "u1", "u2b": ">u2",
    "u4": "<u4", "u8": "<u8", "f2": "<f2", "f4": "<f4", "f4b": ">f4", "f8": "<f8", "f8b": ">f8", "c8": "<c8",
    "S5": "S5", "V3": "V3", "bool": "?", "enum": COLOURS, "fields": FIELDS,
}  # fmt: skip
LAYOUTS: dict[str, dict[str, Any]] = {
    "gzip": {"chunks": (10, 13, 20), "compression": "gzip"},
    "shuffled": {"chunks": (13, 30, 11), "compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"chunks": (40, 10, 20), "compression": "lzf"},
    "chunked": {"chunks": (10, 10, 10)},
    "contiguous": {},
    "long": {"chunks": SHAPE, "compression": "gzip"},
}
NUMBERS = [name for name in DTYPES if name[0] in "iufc" and name != "fields"]
MEMORY_TYPES = ["<i2", ">i2", "<i4", ">i4", "<i8", "<u1", "<u2", "<u8", "<f4", ">f4", "<f8", ">f8"]


def values(random: np.random.Generator, dtype: Any, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """Any bytes, so that there are all kinds of NaN and the largest and smallest of integers."""
    dtype = np.dtype(dtype)
    if dtype == np.dtype("?"):
        return random.integers(0, 2, shape).astype("?")
    if h5py.check_enum_dtype(dtype):
        return random.choice([0, 1, 7], shape).astype(dtype)
    if dtype.names:
        made = np.zeros(shape, dtype)
        for name in dtype.names:
            field = dtype[name]
            made[name] = values(random, field.base, shape + field.shape)
        return made
    made = np.frombuffer(random.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape).copy()
    if dtype.kind == "f":
        made[: len(made) // 2] = random.integers(-1000, 1000, made[: len(made) // 2].shape)
    return made


def make(path: Path) -> None:
    """All kinds of arrays, in a file for h5py and one that netCDF4 also opens."""
    random = np.random.default_rng(3)
    with h5py.File(path, "w") as made:
        for layout, options in LAYOUTS.items():
            for name, dtype in DTYPES.items():
                made.create_dataset(f"{layout}/{name}", data=values(random, dtype), **options)
        some = values(random, "<i4")
        holes = made.create_dataset("other/holes", SHAPE, "i4", chunks=(10, 10, 10), fillvalue=-3, compression="gzip")
        holes[:20, 5] = 9
        made.create_dataset("other/empty", SHAPE, "<f4", chunks=(10, 10, 10), fillvalue=2.5)
        made.create_dataset("other/unwritten", SHAPE, ">f8", fillvalue=1e30)
        grown = made.create_dataset("other/grown", SHAPE, "<i4", maxshape=(None, None, 20), chunks=(7, 7, 7))
        grown[...] = some
        grown.resize((33, 40, 20))
        scaled = {"chunks": (10, 10, 10), "scaleoffset": 0}
        made.create_dataset("other/scaled", data=some % 1000, **scaled)
        made.create_dataset("other/compact", data=some[:10, 0], dcpl=_compact())
        beside = [(str(path.with_suffix(".raw")), 0, h5py.h5f.UNLIMITED)]
        made.create_dataset("other/external", data=some, external=beside)
        layout = h5py.VirtualLayout(SHAPE, "<i4")
        layout[:20] = h5py.VirtualSource(path, "gzip/i4", SHAPE)[:20]
        made.create_virtual_dataset("other/virtual", layout, fillvalue=5)
        text = np.array([f"{'x' * (k % 30)}{k}" for k in range(600)], object).reshape(30, 20)
        made.create_dataset("other/text", data=text, dtype=h5py.string_dtype(), chunks=(10, 10), compression="gzip")
        made.create_dataset(
            "other/utf8", data=[f"é{k}".encode() for k in range(900)], dtype=h5py.string_dtype("utf-8", 12)
        )
        lists = made.create_dataset("other/lists", (300,), h5py.vlen_dtype("i4"), chunks=(50,))
        lists[...] = np.array([np.arange(k % 5) for k in range(300)], object)
        made.create_dataset("other/references", data=[made["gzip"].ref] * 200, dtype=h5py.ref_dtype, chunks=(50,))
        made.create_dataset("other/scalar", data=3.5)
        made.create_dataset("other/nothing", (0, 5), "i4", chunks=(5, 5), maxshape=(None, 5))
    with h5py.File(path.with_suffix(".nc"), "w") as made:
        for name in ("i2", "i4b", "f8"):
            made.create_dataset(name, data=values(random, DTYPES[name]), **LAYOUTS["shuffled"])


def _compact() -> Any:
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_layout(h5py.h5d.COMPACT)
    return made


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("random") / "a.h5"
    make(path)
    return path


def _axis(length: int) -> st.SearchStrategy[Any]:
    bound = st.one_of(st.none(), st.integers(-length - 2, length + 2))
    whole = st.just([None, None, None])
    indices = st.lists(st.integers(0, length), min_size=1, max_size=12, unique=True)
    listed = indices.map(lambda found: {"list": sorted(found)})
    return st.one_of(
        whole, whole, st.tuples(bound, bound, st.one_of(st.none(), st.integers(1, 5))).map(list),
        st.integers(-length, length), listed,
    )  # fmt: skip


@st.composite
def words(draw: st.DrawFn) -> list[Any]:
    """An index, perhaps out of range."""
    return [draw(_axis(length)) for length in SHAPE[: draw(st.integers(0, 3))]]


@st.composite
def slabs(draw: st.DrawFn) -> dict[str, Any]:
    """Slabs, combined, moved, perhaps beyond the array."""
    found = []
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 4]))):
        start = [draw(st.integers(0, length - 1)) for length in SHAPE]
        block = [draw(st.integers(1, 4)) for _ in SHAPE]
        stride = [draw(st.integers(length, length + 3)) for length in block]
        most = zip(SHAPE, start, stride, block, strict=True)
        count = [
            draw(st.integers(1, max(1, (length - first - width) // step + 1))) for length, first, step, width in most
        ]
        found.append([start, count, stride, block])
    moved = draw(st.sampled_from([None, None, None, None, [0, 0, 0], [1, 0, -1], [50, 0, 0]]))
    return {"slabs": found, **({} if moved is None else {"offset": moved})}


POINT = st.tuples(*(st.integers(0, length - 1) for length in SHAPE)).map(list)
CHOSEN = st.one_of(st.none(), slabs(), st.lists(POINT, min_size=1, max_size=60).map(lambda found: {"points": found}))
REGULAR = st.builds("{}/{}".format, st.sampled_from(list(LAYOUTS)), st.sampled_from(list(DTYPES)))
NUMERIC = st.builds("{}/{}".format, st.sampled_from(list(LAYOUTS)), st.sampled_from(NUMBERS))
OTHER = st.sampled_from(
    ["holes", "empty", "unwritten", "grown", "scaled", "compact", "external", "virtual", "text", "utf8", "lists",
     "references", "scalar", "nothing", "missing"]
).map("other/{}".format)  # fmt: skip
READS = st.one_of(
    st.tuples(st.just("read"), REGULAR, words(), st.none()),
    st.tuples(st.just("read"), OTHER, words(), st.none()),
    st.tuples(st.just("read"), NUMERIC, words(), st.sampled_from(MEMORY_TYPES)),
    st.tuples(st.just("direct"), REGULAR, words()),
    st.tuples(st.just("field"), st.sampled_from(["gzip/fields", "contiguous/fields"]), words(), st.sampled_from("abd")),
    st.tuples(
        st.just("low"), REGULAR, CHOSEN,
        st.sampled_from(["all", "flat", "flat", "behind", "gaps", "strided", "points", "wrong"]), st.none(),
    ),
    st.tuples(
        st.just("low"), NUMERIC, CHOSEN, st.sampled_from(["flat", "gaps"]), st.sampled_from([*MEMORY_TYPES, "S3"])
    ),
).map(list)  # fmt: skip
FEW = st.lists(READS, min_size=1, max_size=5)
STEPS = st.one_of(
    READS, READS, READS, READS,
    st.tuples(st.just("netcdf"), st.sampled_from(["i2", "i4b", "f8"]), words()),
    st.tuples(st.just("threads"), FEW),
    st.tuples(st.just("forked"), FEW),
    st.tuples(st.just("closed"), REGULAR),
    st.tuples(st.just("rewrite"), NUMERIC, st.sampled_from(["here", "elsewhere"])),
    st.tuples(st.just("writing"), FEW),
    st.just(["reopen"]),
).map(list)  # fmt: skip
TRUNCATED = st.tuples(st.just("truncated"), st.sampled_from([0.2, 0.5, 0.9, 0.999]), FEW).map(list)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(STEPS, min_size=20, max_size=40), end=st.one_of(st.none(), TRUNCATED), small=st.booleans())
@pytest.mark.slow
def test_random_programs(file: Path, steps: list[Any], end: Any, small: bool) -> None:
    """`small`: small reads are ours too. Otherwise only those of 32 KiB, as users have it."""
    program = [sys.executable, PROGRAM, file, json.dumps([*steps, *([] if end is None else [end])])]
    expected = subprocess.run(list(map(str, program)), capture_output=True, timeout=240)
    ran = run(*program, HYPERSLAB_SERVE_SMALL="1" if small else "0")
    assert ran.status == expected.returncode == 0, expected.stderr.decode()
    assert ran.out.decode().splitlines() == expected.stdout.decode().splitlines()
    assert ran.errors == expected.stderr.decode().rstrip("\n")


def test_small_reads_can_be_served_for_tests(file: Path) -> None:
    steps = json.dumps([["read", "gzip/i2", [0, 0, 0], None], ["low", "gzip/i2", None, "gaps", "<f8"]])
    assert run(sys.executable, PROGRAM, file, steps, HYPERSLAB_SERVE_SMALL="1").served == 2
    assert run(sys.executable, PROGRAM, file, steps).served == 1


def test_the_other_byte_order(file: Path) -> None:
    for kind in ("i2", "f4", "f8"):
        values = np.random.default_rng(1).integers(0, 99, (300, 400)).astype(f">{kind}")
        path = file.with_name(f"{kind}.h5")
        with h5py.File(path, "w") as made:
            made.create_dataset("v", data=values, chunks=(50, 100), compression="gzip")
        code = f"import sys, h5py\nprint(h5py.File(sys.argv[1])['v'].astype('<{kind}')[:].tobytes().hex()[:400])"
        ran = python(code, path)
        assert ran.out == without(code, path).stdout
        assert ran.served == 1, ran.counts


def test_small_reads_of_chunks_that_libhdf5_does_not_keep(file: Path) -> None:
    path = file.with_name("large.h5")
    values = np.random.default_rng(1).integers(0, 99, (4, 1000, 1000), "i8")
    with h5py.File(path, "w") as made:
        made.create_dataset("v", data=values, chunks=(1, 1000, 1000), compression="gzip", compression_opts=1)
    code = """
    import sys, h5py
    array = h5py.File(sys.argv[1], rdcc_nbytes=1 << 20)["v"]
    print([int(array[k % 4, k, 2 * k]) for k in range(40)])
    """
    ran = python(code, path)
    assert ran.out == without(code, path).stdout
    assert ran.served == 40, ran.counts


def test_text_that_ends_at_a_zero_keeps_its_bytes(file: Path) -> None:
    path = file.with_name("text.h5")
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(6)
    kind.set_strpad(h5py.h5t.STR_NULLTERM)
    values = np.frombuffer(np.random.default_rng(1).integers(0, 3, 60_000, "u1").tobytes(), "S6")
    with h5py.File(path, "w") as made:
        space, plist = h5py.h5s.create_simple((10_000,)), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((1000,))
        plist.set_deflate(1)
        made_id = h5py.h5d.create(made.id, b"v", kind, space, plist)
        made_id.write(space, space, values, kind)
    code = """
    import hashlib, sys, h5py, numpy as np
    array = h5py.File(sys.argv[1])["v"].id
    out = np.zeros(10_000, "V6")
    array.read(array.get_space(), array.get_space(), out, array.get_type())
    print(hashlib.sha256(out.tobytes()).hexdigest())
    """
    ran = python(code, path)
    assert ran.out == without(code, path).stdout
    assert ran.served == 1, ran.counts
