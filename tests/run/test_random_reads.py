"""Random programs of reads print the same with and without us, byte by byte, errors included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from run_programs import python, without

SHAPE = (90, 70, 40)
PROGRAM = """
    import hashlib, json, sys
    import h5py, numpy as np
    def index(words):
        return tuple(slice(*word) if isinstance(word, list) and len(word) == 3 and word[2] != "list"
                     else np.array(word[0]) if isinstance(word, list) else word for word in words)
    with h5py.File(sys.argv[1]) as file:
        for name, words, kind in json.loads(sys.argv[2]):
            array = file[name]
            try:
                if kind == "direct":
                    out = np.full((100, 100, 50), 1, array.dtype)
                    chosen = index(words)
                    shape = array[chosen].shape
                    array.read_direct(out, chosen, tuple(slice(2, 2 + length) for length in shape))
                    found = out
                else:
                    found = (array if kind is None else array.astype(kind))[index(words)]
            except Exception as error:
                print(type(error).__name__, error)
            else:
                found = np.ascontiguousarray(found)
                print(hashlib.sha256(found.tobytes()).hexdigest(), found.shape, found.dtype)
"""


def _layouts() -> dict[str, dict[str, Any]]:
    return {
        "gzip": {"chunks": (30, 33, 40), "compression": "gzip"},
        "shuffled": {"chunks": (13, 70, 11), "compression": "gzip", "shuffle": True, "fletcher32": True},
        "lzf": {"chunks": (90, 10, 40), "compression": "lzf"},
        "chunked": {"chunks": (20, 20, 20)},
        "contiguous": {},
        "long": {"chunks": SHAPE, "compression": "gzip"},
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("random") / "a.h5"
    random = np.random.default_rng(3)
    with h5py.File(path, "w") as made:
        for name, layout in _layouts().items():
            for dtype in ("<i2", ">f8", "<f4", "S5", "u1"):
                values = random.integers(0, 100, SHAPE).astype(dtype)
                made.create_dataset(f"{name} {dtype[-2:]}{dtype[0] == '>'}", data=values, **layout)
        fields = np.zeros(SHAPE, [("a", "<i4"), ("b", "S3"), ("c", "<f8", (2,))])
        fields["a"], fields["b"] = random.integers(0, 100, SHAPE), b"xyz"
        made.create_dataset("fields", data=fields, chunks=(30, 30, 30), compression="gzip")
        made.create_dataset("holes", SHAPE, "i4", chunks=(30, 30, 30), fillvalue=-3, compression="gzip")[:40, 5] = 9
    return path


def _axis(length: int) -> st.SearchStrategy[Any]:
    bound = st.one_of(st.none(), st.integers(-length - 2, length + 2))
    whole = st.just([None, None, None])
    indices = st.lists(st.integers(0, length), min_size=1, max_size=12, unique=True)
    listed = indices.map(lambda found: [sorted(found), 0, "list"])
    return st.one_of(
        whole, whole, st.tuples(bound, bound, st.one_of(st.none(), st.integers(1, 5))).map(list),
        st.integers(-length, length), listed,
    )  # fmt: skip


@st.composite
def reads(draw: st.DrawFn) -> list[Any]:
    names = [f"{name} {kind}" for name in _layouts() for kind in ("i2False", "f8True", "f4False", "S5False", "u1False")]
    name = draw(st.sampled_from([*names, "fields", "holes"]))
    words = [draw(_axis(length)) for length in SHAPE[: draw(st.integers(0, 3))]]
    kinds = [None, None, None, "direct"] if "S5" in name or name == "fields" else [None, None, "direct", "<f8", ">i4"]
    return [name, words, draw(st.sampled_from(kinds))]


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(programs=st.lists(reads(), min_size=25, max_size=40))
@pytest.mark.slow
def test_random_reads(file: Path, programs: list[Any]) -> None:
    said = json.dumps(programs)
    expected = without(PROGRAM, file, said)
    ran = python(PROGRAM, file, said)
    assert ran.status == expected.returncode == 0, ran.errors
    assert ran.out == expected.stdout
    assert ran.errors == expected.stderr.decode().rstrip("\n")


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
