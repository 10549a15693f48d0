"""One sampler: elements in whole chunks, from all over the array."""

from __future__ import annotations

import numpy as np
import pytest

from hyperslab.model.codec_sample import SAMPLE_NBYTES, measured_chains, sample_of
from hyperslab.storage.chain import CodecChain


@pytest.mark.parametrize(
    ("shape", "chunk", "limits", "expected"),
    [
        ((4000, 1000), (10, 8), (), (10, 8)),
        ((4000, 1000), (4000, 1000), (), (1000, 1000)),
        ((4000, 1000), (10, 8), (256 << 10, 1 << 20, 4 << 20), None),
        ((3, 5), (100, 100), (), (3, 5)),
        ((2**20, 1), (1, 1), (), (1, 1)),
        ((7,), (2,), (), (2,)),
    ],
)
def test_a_sample_has_whole_chunks_of_the_wanted_size(
    shape: tuple[int, ...], chunk: tuple[int, ...], limits: tuple[int, ...], expected: tuple[int, ...] | None
) -> None:
    array = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    cut, sample = sample_of(array, chunk, *limits)
    assert sample.size
    assert sample.nbytes <= max(SAMPLE_NBYTES, int(np.prod(cut)) * 4)
    assert all(length % part == 0 for length, part in zip(sample.shape, cut, strict=True))
    assert np.isin(sample, array).all()
    if expected is not None:
        assert cut == expected
    else:
        assert limits[0] <= np.prod(cut) * 4 <= limits[1]


def test_a_sample_comes_from_both_ends_of_a_large_array() -> None:
    array = np.arange(2**23, dtype="i4").reshape(2**13, 2**10)
    _, sample = sample_of(array, (16, 1024))
    assert sample.min() == 0
    assert sample.max() == array.max()


def test_no_chain_is_faster_than_memory_or_grows_without_end() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (64, 1024), dtype="u1")
    chains = [CodecChain.parse(text) for text in ("deflate:1", "shuffle+deflate:1")]
    measured = measured_chains(noise, (8, 1024), chains, "hdf5")
    assert list(measured) == chains
    assert all(one.rate.decode > 0 and one.rate.encode > 0 and 0.1 <= one.ratio < 1.1 for one in measured.values())


def test_zarrs_gzip_is_measured_as_the_deflate_that_it_contains() -> None:
    """Where a file names the one and our format of Zarr 3 the other, nothing was measured."""
    pytest.importorskip("zarr")
    gzip = CodecChain.parse("gzip:1")
    measured = measured_chains(np.zeros((64, 1024), "i2"), (8, 1024), [gzip], "zarr")
    assert measured[gzip].ratio > 20
    assert str(gzip.named_in({"deflate"})) == "deflate:1"
    assert gzip.named_in({"gzip", "deflate"}) == gzip.named_in({"zstd"}) == gzip
