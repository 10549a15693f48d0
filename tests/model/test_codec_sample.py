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


def test_a_program_with_a_libhdf5_of_its_own_decodes_the_sample_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of PyTables and pandas were priced with h5py's zlib, which is two to three times as fast."""
    tables = pytest.importorskip("tables", reason="not installed: pip install tables")
    opened: list[str] = []

    def open_file(path: object, *options: object) -> object:
        opened.append(str(path))
        return real(path, *options)

    real = tables.open_file
    monkeypatch.setattr(tables, "open_file", open_file)
    elements = np.random.default_rng(1).normal(size=(512, 64)).round(2)
    chains = [CodecChain.parse("shuffle+deflate:4")]
    assert list(measured_chains(elements, (16, 64), chains, "hdf5")) == chains
    assert not opened
    (measured,) = measured_chains(elements, (16, 64), chains, "hdf5", "PyTables").values()
    assert len({path.rpartition("/")[2].split("-")[1] for path in opened}) == 2, "with the codec and without it"
    assert measured.rate.decode > 0


def test_what_pytables_cannot_read_at_all_is_read_by_h5py(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = pytest.importorskip("tables", reason="not installed: pip install tables")

    def refuse(*_: object) -> object:
        raise tables.HDF5ExtError("no")

    monkeypatch.setattr(tables, "open_file", refuse)
    elements = np.arange(512 * 64, dtype="f8").reshape(512, 64)
    chains = [CodecChain.parse("deflate:4")]
    assert list(measured_chains(elements, (16, 64), chains, "hdf5", "PyTables")) == chains
