"""Arrays, selections and compressors of Zarr, as zarr-python makes them: what tests of our codec pipeline draw from."""

from __future__ import annotations

import numcodecs
import numpy as np
import zarr
from hypothesis import strategies as st

COMPRESSORS = {
    "none": (None, None),
    "zstd": (zarr.codecs.ZstdCodec(level=3, checksum=True), numcodecs.Zstd(3)),
    "blosc": (zarr.codecs.BloscCodec(cname="lz4", shuffle="shuffle"), numcodecs.Blosc("zstd", shuffle=2)),
    "gzip": (zarr.codecs.GzipCodec(level=1), numcodecs.GZip(1)),
    "crc32c": (zarr.codecs.Crc32cCodec(), numcodecs.CRC32()),
}
DTYPES = ["u1", "bool", "<i2", "<i8", "<f2", "<f4", "<f8", "<c8", "<M8[s]"]


@st.composite
def arrays(draw):
    """Shape, chunks, codec, dtype and version of an array; its values; which boxes are written."""
    ndim = draw(st.integers(1, 3))
    shape = draw(st.tuples(*[st.integers(1, 13)] * ndim))
    chunks = draw(st.tuples(*[st.integers(1, 6)] * ndim))
    version = draw(st.sampled_from([2, 3]))
    times = draw(st.one_of(st.none(), st.tuples(*[st.integers(1, 3)] * ndim))) if version == 3 else None
    shards = None if times is None else tuple(a * b for a, b in zip(chunks, times, strict=True))
    codec = draw(st.sampled_from(sorted(COMPRESSORS)))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    if version == 2:
        dtype = draw(st.sampled_from([dtype, dtype.newbyteorder(">")]))
    fill = draw(st.sampled_from([0, 1])) if dtype.kind != "M" else None
    return {
        "shape": shape, "chunks": chunks, "shards": shards, "dtype": dtype, "zarr_format": version,
        "compressors": COMPRESSORS[codec][version == 2], "fill_value": fill,
        "order": draw(st.sampled_from("CF")) if version == 2 else None,
    }  # fmt: skip


def keys(shape):
    """A key for each kind of selection in zarr-python."""
    sliced = [st.builds(slice, st.integers(0, n), st.integers(0, n + 2), st.integers(1, 4)) for n in shape]
    axes = [st.one_of(st.integers(-n, n - 1), st.just(slice(None)), s) for n, s in zip(shape, sliced, strict=True)]
    lists = [st.lists(st.integers(0, n - 1), min_size=1, max_size=6) for n in shape]
    masks = [st.lists(st.booleans(), min_size=n, max_size=n).map(np.array) for n in shape]
    mixed = [st.one_of(*kinds) for kinds in zip(axes, lists, masks, strict=True)]
    points = st.integers(1, 9).flatmap(
        lambda count: st.tuples(*[st.lists(st.integers(0, n - 1), min_size=count, max_size=count) for n in shape])
    )
    return st.one_of(
        st.tuples(st.just("basic"), st.tuples(*axes)),
        st.tuples(st.just("oindex"), st.tuples(*mixed)),
        st.tuples(st.just("vindex"), points),
        st.tuples(st.just("blocks"), st.tuples(*[st.just(slice(0, 1))] * len(shape))),
    )


def selected(array, kind, key):
    return array[key] if kind == "basic" else getattr(array, kind)[key]
