"""Our own references keep everything that an archive has."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import reference_files as made
from formats_made import make

import hyperslab as hs
from hyperslab.errors import DamagedFile, FileChanged, HyperslabError, ReadError, Unsupported

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, including dtypes; NaN equals NaN."""
    if isinstance(one, np.ndarray):
        if one.dtype.hasobject:
            return one.shape == other.shape and all(map(same, one.reshape(-1), other.reshape(-1)))
        has_gaps = one.dtype.names is not None  # their content does not matter
        is_equal = repr(one) == repr(other) if has_gaps else one.tobytes() == other.tobytes()
        return one.dtype == other.dtype and one.shape == other.shape and is_equal
    return repr(one) == repr(other)


def outcome(get: Any) -> Any:
    try:
        return get()
    except (HyperslabError, OSError) as error:
        return type(error)


def is_nameless(get: Any) -> bool:
    """Whether it is an object reference: only the file itself knows the names of its objects."""
    try:
        get()
    except (HyperslabError, OSError) as error:
        return isinstance(error, Unsupported) and "reference to an object" in str(error)
    return False


def told(array: hs.Array, fact: str) -> Any:
    return outcome(lambda: getattr(array, fact))


def check(source: Path, refs: Path, most_nbytes: int = 1 << 24) -> int:
    """References open like their source: the same structure, attributes and values."""
    root = hs.open(source)
    hs.index(source).save(refs)
    found = hs.open(refs)
    assert found.format == "references"
    paths: list[str] = []
    root.visititems(lambda path, node: paths.append(path))
    again: list[str] = []
    found.visititems(lambda path, node: again.append(path))
    assert again == paths
    for path in ["/", *paths]:
        one, other = root[path], found[path]
        assert list(one.attrs) == list(other.attrs)
        for name in one.attrs:
            if is_nameless(lambda n=name, o=other: o.attrs[n]):
                continue
            assert same(outcome(lambda n=name, o=one: o.attrs[n]), outcome(lambda n=name, o=other: o.attrs[n])), name
        if isinstance(one, hs.Array):
            assert isinstance(other, hs.Array)
            is_virtual = one.chunks is None and not one.codecs  # only references know these facts
            for fact in FACTS[:-2] if is_virtual else FACTS:
                assert told(one, fact) == told(other, fact), f"{fact} of {path}"
            is_small = one.nbytes <= most_nbytes and not is_nameless(other.read)
            if one.via == "hyperslab" and not one.unsupported and not one.damaged and is_small:
                assert same(outcome(one.read), outcome(other.read)), path
    return len(paths)


def test_what_kerchunk_can_say_and_cannot(tmp_path: Path) -> None:
    made.expressible(tmp_path / "a.h5")
    made.inexpressible(tmp_path / "b.h5")
    assert check(tmp_path / "a.h5", tmp_path / "a.hs") > 20
    check(tmp_path / "b.h5", tmp_path / "b.hs")
    check(tmp_path / "a.hs", tmp_path / "again.hs")  # references of references
    made.expressible(tmp_path / "c.h5")


def test_every_format(tmp_path: Path) -> None:
    for number, (_, path) in enumerate(make(tmp_path)):
        check(path, tmp_path / f"{number}.hs")


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not on this machine")
def test_the_corpus(tmp_path: Path) -> None:
    checked = 0
    for path in sorted(CORPUS.rglob("*")):
        if not path.is_file() or path.stat().st_size > 20 << 20:
            continue
        try:
            hs.open(path)
        except (HyperslabError, OSError):
            continue
        check(path, tmp_path / "refs.hs", 1 << 20)
        checked += 1
    assert checked > 100


def test_several_files_are_groups_and_links_stay_inside(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("a", "b"):
        with h5py.File(tmp_path / "data" / f"{name}.h5", "w") as file:
            file["g/x"] = np.full(300, ord(name))
            file["soft"] = h5py.SoftLink("/g/x")
            file["out"] = h5py.ExternalLink("b.h5", "/g/x")
            file["words"] = np.array([name, "word"], object)
    saved = hs.index([tmp_path / "data/a.h5", tmp_path / "data/b.h5"]).save(tmp_path / "refs.hs")
    assert (saved.array_count, saved.file_count) == (4, 2)
    (tmp_path / "moved").mkdir()
    for name in ("refs.hs", "data"):
        (tmp_path / name).rename(tmp_path / "moved" / name)  # paths below the references' folder are relative
    root = hs.open(tmp_path / "moved" / "refs.hs")
    assert list(root) == ["a", "b"]
    assert root["a/soft"][3] == ord("a")
    assert root["b/words"][...].tolist() == ["b", "word"]
    assert (pickle.loads(pickle.dumps(root["b/g/x"]))[...] == ord("b")).all()


def test_stale_references_are_noticed(tmp_path: Path) -> None:
    made.expressible(tmp_path / "a.h5")
    hs.index(tmp_path / "a.h5").save(tmp_path / "refs.hs")
    root = hs.open(tmp_path / "refs.hs")
    root.file.check_sources()
    os.utime(tmp_path / "a.h5", (1, 1))
    fresh = hs.open(tmp_path / "refs.hs")
    with pytest.raises(FileChanged, match=r"a\.h5 changed since .*refs\.hs was written"):
        fresh["contiguous"][...]
    with pytest.raises(FileChanged, match="stale"):
        fresh.file.check_sources()
    (tmp_path / "a.h5").unlink()
    with pytest.raises(ReadError, match=r"a\.h5"):
        hs.open(tmp_path / "refs.hs")["contiguous"][...]


def test_damaged_references_are_errors(tmp_path: Path) -> None:
    made.expressible(tmp_path / "a.h5")
    hs.index(tmp_path / "a.h5").save(tmp_path / "refs.hs")
    good = (tmp_path / "refs.hs").read_bytes()
    expected = hs.open(tmp_path / "refs.hs")["codecs/zstd_i4"][...]
    rng = random.Random(2)
    changed = tmp_path / "changed.hs"
    for place in [*range(8, 16), *rng.sample(range(16, len(good)), 300), *range(len(good) - 24, len(good))]:
        changed.write_bytes(good[:place] + bytes([good[place] ^ (1 << rng.randrange(8))]) + good[place + 1 :])
        try:
            read = hs.open(changed)["codecs/zstd_i4"][...]
        except (DamagedFile, Unsupported):
            continue
        np.testing.assert_array_equal(read, expected)
    for end in [0, 5, 8, 12, 35, 36, *rng.sample(range(36, len(good)), 40)]:
        changed.write_bytes(good[:end])
        with pytest.raises((DamagedFile, Unsupported)):
            hs.open(changed)["codecs/zstd_i4"][...]


FACTS = ("shape", "max_shape", "dims", "stored_chunk_count", "unsupported", "damaged", "chunks", "codecs")
MANY = """
import re, sys
from pathlib import Path
import hyperslab as hs

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

hs.open(sys.argv[1])["few"][5]  # imports what it takes
for name in ("half", "whole"):
    array = hs.open(sys.argv[1])[name]
    print(array[500_000], array.stored_chunk_count, peak())
"""


@pytest.mark.slow
def test_a_million_chunks(tmp_path: Path) -> None:
    """A file with so many chunks, opened in another process: it takes twelve bytes of memory for each."""
    count = 1_000_000
    with h5py.File(tmp_path / "many.h5", "w", libver="latest") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((2,))
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        plist.set_fill_value(np.array(3, "i4"))
        for name, length in (("few", 10), ("half", count), ("whole", 2 * count)):
            h5py.h5d.create(file.id, name.encode(), h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((length,)), plist)
    saved = hs.index(tmp_path / "many.h5").save(tmp_path / "refs.hs")
    assert saved.chunk_count == count + count // 2 + 5
    assert saved.nbytes < 10_000
    command = [sys.executable, "-c", MANY, str(tmp_path / "refs.hs")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    half, whole = ([int(word) for word in line.split()] for line in lines)
    assert (half[:2], whole[:2]) == ([3, count // 2], [3, count])
    # Between the two peaks there is nothing but half a million chunks. An offset and a length of eight bytes are 16.
    grown = (whole[2] - half[2]) * 1024 / (count // 2)
    assert grown < 15, f"{grown} bytes for each chunk"


@pytest.mark.parametrize("suffix", ["hs", "json", "parquet"])
def test_what_xarray_makes_of_references(tmp_path: Path, suffix: str) -> None:
    """Dimensions without variables stay so; Zarr 2's fill value marks missing data."""
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    values = np.where(np.arange(600) % 7, np.arange(600) / 10, np.nan).reshape(20, 30)
    packed = {"x": {"dtype": "i2", "scale_factor": 0.1, "_FillValue": -1, "chunksizes": (7, 9)}}
    xarray.Dataset({"x": (("a", "b"), values)}).to_netcdf(tmp_path / "a.nc", engine="netcdf4", encoding=packed)
    refs = tmp_path / f"refs.{suffix}"
    hs.index(tmp_path / "a.nc").save(refs, inline_threshold=0)
    hs.index(hs.open(refs)).save(tmp_path / "again.hs")
    with xarray.open_dataset(tmp_path / "a.nc") as expected:
        for path in (refs, tmp_path / "again.hs"):
            with xarray.open_dataset(path, engine="hyperslab") as found:
                xarray.testing.assert_identical(found.load(), expected.load())
