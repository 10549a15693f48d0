"""Our encoders, each decoded by a decoder that is not ours: numcodecs, and libhdf5 with hdf5plugin."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import few
from hyperslab._core import encode_chunks
from hyperslab.storage.chain import CodecChain

numcodecs = pytest.importorskip("numcodecs")
pytest.importorskip("hdf5plugin")

HDF5 = (
    "none", "deflate-0", "deflate-1", "deflate-9", "deflate-4+shuffle", "lzf", "lzf+shuffle", "fletcher32", "lz4",
    "lz4+shuffle+fletcher32", "zstd-1", "zstd-22", "blosc-lz4-9", "blosc-lz4-5+shuffle", "blosc-zlib-3+shuffle",
    "blosc-zstd-1+bits", "blosc-lz4-0", "bitshuffle", "bitshuffle-lz4", "bitshuffle-zstd",
)  # fmt: skip
ZARR = ("deflate-6", "gzip-1", "zstd-3", "lz4", "blosc-lz4-5+shuffle", "blosc-zstd-9+bits", "blosc-zlib-1",
        "zstd-1+shuffle", "deflate-4+shuffle")  # fmt: skip
MOST_NBYTES = 300_000  # more than one block of any codec
DTYPES = ("u1", "<i2", ">f4", "<f8", "c16", "S3", "V7", "S300")


@st.composite
def elements(draw: st.DrawFn) -> Any:
    """Elements that compress well, badly, or not at all, from one to many blocks of a codec."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    count = draw(st.sampled_from([1, 2, 7, 8, 9, 255, 1000, 4097, 70_001]))
    count = min(count, MOST_NBYTES // dtype.itemsize)
    nbytes = count * dtype.itemsize
    kind = draw(st.sampled_from(["zeros", "noise", "ramp", "mixed"]))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    made = {
        "zeros": np.zeros(nbytes, "u1"),
        "noise": random.integers(0, 256, nbytes).astype("u1"),
        "ramp": (np.arange(nbytes) // 11).astype("u1"),
    }
    made["mixed"] = np.where(np.arange(nbytes) % 5000 < 2500, made["noise"], made["zeros"])
    return np.ascontiguousarray(made[kind]).view(dtype)


def encoded(values: Any, steps: Any) -> tuple[bytes, int]:
    found: list[tuple[bytes, int]] = []
    shape = [len(values)]
    plain = values.view("u1")
    encode_chunks(plain, (shape, shape), bytes(values.dtype.itemsize), steps, lambda _, *one: found.append(one), 1)
    return found[0]


@pytest.mark.parametrize("codec", HDF5)
@settings(max_examples=few(12), deadline=None)
@given(values=elements())
def test_libhdf5_decodes_what_we_encode(codec: str, values: Any) -> None:
    width = values.dtype.itemsize
    filters, steps = CodecChain.parse(codec).hdf5(width, values.nbytes)
    stored, mask = encoded(values, steps)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((len(values),))
    for number, flags, parameters in filters:
        plist.set_filter(number, flags, parameters[3:] if number == 32008 else parameters)
    kind = h5py.h5t.py_create(values.dtype, logical=True)
    with h5py.File("encoders", "w", driver="core", backing_store=False) as file:
        made = h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((len(values),)), plist)
        made.write_direct_chunk((0,), stored, mask)
        made.close()  # libhdf5 would not look at the mask before
        read = np.empty(len(values), values.dtype)
        file["x"].id.read(h5py.h5s.ALL, h5py.h5s.ALL, read, kind)
        assert read.tobytes() == values.tobytes()


@pytest.mark.parametrize("codec", ZARR)
@settings(max_examples=few(12), deadline=None)
@given(values=elements())
def test_numcodecs_decodes_what_we_encode(codec: str, values: Any) -> None:
    filters, last, steps = CodecChain.parse(codec).zarr2(values.dtype.itemsize)
    stored, mask = encoded(values, steps)
    assert mask == 0
    decoded: Any = stored
    for settings_ in [last, *reversed(filters or [])]:
        decoded = numcodecs.get_codec(dict(settings_)).decode(decoded)
    assert np.asarray(decoded).tobytes() == values.tobytes()


def test_a_chunk_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit in memory"):
        encode_chunks(np.zeros(8, np.uint8), ([8], [1 << 62]), b"\0", [], lambda *_: None)


@pytest.mark.parametrize("level", [1, 2, 5, 8, 9])
@settings(max_examples=few(20), deadline=None)
@given(values=elements())
def test_lz4_makes_the_bytes_that_the_lz4_library_makes(level: int, values: Any) -> None:
    """In Blosc, whose levels are accelerations of LZ4, and alone."""
    _, _, steps = CodecChain.parse(f"blosc-lz4-{level}").zarr2(1)
    theirs = numcodecs.Blosc(cname="lz4", clevel=level, shuffle=numcodecs.Blosc.NOSHUFFLE).encode(values.view("u1"))
    assert encoded(values.view("u1"), steps)[0] == bytes(theirs)
    _, _, alone = CodecChain.parse("lz4").zarr2(1)
    assert encoded(values.view("u1"), alone)[0] == bytes(numcodecs.LZ4().encode(values.view("u1")))


@pytest.mark.parametrize("level", [1, 5, 9])
@pytest.mark.parametrize("dtype", ["<i2", "<f4", "<f8", "c16"])
def test_blocks_of_planes_are_as_c_blosc_makes_them(level: int, dtype: str) -> None:
    random = np.random.default_rng(3)
    for nbytes in (1 << 10, 1 << 16, 3 << 19):
        values = (random.normal(size=nbytes // 2).cumsum() * 100).astype(dtype)[: nbytes // np.dtype(dtype).itemsize]
        _, _, steps = CodecChain.parse(f"blosc-lz4-{level}+shuffle").zarr2(values.dtype.itemsize)
        theirs = numcodecs.Blosc(cname="lz4", clevel=level, shuffle=numcodecs.Blosc.SHUFFLE).encode(values)
        assert encoded(values, steps)[0] == bytes(theirs)
