"""What a plan says before a read, against the chunks as h5py lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hyperslab as hs
from draws import few
from hyperslab.errors import Unsupported

SHAPE, CHUNKS = (23, 17), (5, 4)
KEYS = st.tuples(*(st.slices(length).filter(lambda item: (item.step or 1) > 0) for length in SHAPE))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "a.h5"
    with h5py.File(path, "w") as file:
        written = np.random.default_rng(0).integers(0, 9, SHAPE)
        file.create_dataset("encoded", data=written, chunks=CHUNKS, compression="gzip")
        file.create_dataset("plain", data=written, chunks=CHUNKS)
        file["whole"] = written
        sparse = file.create_dataset("sparse", SHAPE, "i4", chunks=CHUNKS)
        sparse[12, 9] = 1
    return path


def touched(path: Path, name: str, key: tuple[slice, ...]) -> list[Any]:
    """The stored chunks that a selection touches, one by one."""
    wanted = np.zeros(SHAPE, bool)
    wanted[key] = True
    with h5py.File(path) as file:
        array = file[name]
        chunks = [array.id.get_chunk_info(number) for number in range(array.id.get_num_chunks())]
    box = [tuple(slice(at, at + n) for at, n in zip(chunk.chunk_offset, CHUNKS, strict=True)) for chunk in chunks]
    return [chunk for chunk, part in zip(chunks, box, strict=True) if wanted[part].any()]


@settings(max_examples=few(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=KEYS)
def test_an_encoded_array_costs_its_whole_chunks(files: Path, key: tuple[slice, ...]) -> None:
    plan = hs.open(files)["encoded"].plan(key)
    chunks = touched(files, "encoded", key)
    output = np.empty(SHAPE)[key]
    assert plan.shape == output.shape
    assert plan.element_count == output.size
    assert plan.chunk_count == len(chunks)
    assert plan.missing_chunk_count == 0
    assert plan.decoded_nbytes == len(chunks) * 5 * 4 * 8
    assert plan.read_amplification == (plan.decoded_nbytes / output.nbytes if output.size else None)
    numbers, offsets, lengths = (column.tolist() for column in plan.requests())
    assert set(numbers) <= {0}
    assert plan.request_count == len(offsets) <= len(chunks)
    assert plan.fetched_nbytes == sum(lengths)
    assert sum(chunk.size for chunk in chunks) <= plan.fetched_nbytes <= sum(chunk.size + 4096 for chunk in chunks)
    for chunk in chunks:  # each is in one request
        assert (
            sum(
                start <= chunk.byte_offset and chunk.byte_offset + chunk.size <= start + length
                for start, length in zip(offsets, lengths, strict=True)
            )
            == 1
        )


@settings(max_examples=few(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=KEYS, name=st.sampled_from(["plain", "whole"]))
def test_plain_arrays_decode_only_what_is_asked(files: Path, key: tuple[slice, ...], name: str) -> None:
    plan = hs.open(files)[name].plan(key)
    assert plan.decoded_nbytes == plan.output_nbytes == np.empty(SHAPE)[key].nbytes
    assert plan.fetched_nbytes == sum(plan.requests()[2].tolist())
    assert plan.read_amplification in (1, None)


def test_small_uncompressed_chunks_come_with_their_neighbours(tmp_path: Path) -> None:
    written = np.random.default_rng(1).random((3000, 9), "f4")
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        file.create_dataset("a", data=written, chunks=(1, 5), maxshape=(3000, None))
    array = hs.open(tmp_path / "a.h5")["a"]
    assert array.plan().chunk_count == 6000
    assert array.plan().request_count < 60
    assert array.plan(np.s_[7, 2:4]).request_count == 1
    for key in (np.s_[...], np.s_[1::3, 4:], np.s_[5, 3], np.s_[[2000, 3, 4], ::2]):
        np.testing.assert_array_equal(array[key], written[key])


def test_what_was_never_written_costs_nothing(files: Path) -> None:
    plan = hs.open(files)["sparse"].plan()
    assert (plan.chunk_count, plan.missing_chunk_count, plan.request_count) == (25, 24, 1)
    assert plan.fetched_nbytes == 5 * 4 * 4


def test_lists_are_planned_axis_by_axis(files: Path) -> None:
    plan = hs.open(files)["encoded"].plan(([22, 0, 1], [16, 16]))
    assert plan.shape == (3, 2)
    assert plan.chunk_count == 2


def test_a_plan_says_itself(files: Path) -> None:
    assert "read_amplification=" in repr(hs.open(files)["encoded"].plan(np.s_[0, 0]))


def test_a_hyperslab_is_a_selection(files: Path) -> None:
    array = hs.open(files)["encoded"]
    chosen = hs.Hyperslab(start=(1, 2), stride=(7, 5), count=(3, 2), block=(4, 3))
    rows = [1, 2, 3, 4, 8, 9, 10, 11, 15, 16, 17, 18]
    columns = [2, 3, 4, 7, 8, 9]
    np.testing.assert_array_equal(array.read(chosen), array[...][np.ix_(rows, columns)])
    assert array.plan(chosen).shape == (12, 6)


def test_an_array_that_cannot_be_read_has_no_plan(tmp_path: Path) -> None:
    hdf5plugin = pytest.importorskip("hdf5plugin")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=np.ones((4, 4)), chunks=(2, 2), compression=hdf5plugin.Zfp(reversible=True))
    with pytest.raises(Unsupported, match="/a"):
        hs.open(tmp_path / "a.h5")["a"].plan()
