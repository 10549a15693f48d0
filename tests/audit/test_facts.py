"""The facts of a file are those that h5py and h5stat report."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest

import hyperslab as hs
from hyperslab.audit.facts import facts_of
from hyperslab.audit.faults import FIRST_NBYTES, is_in_front

H5STAT = shutil.which("h5stat")
KINDS = ["good", "small-chunks", "scattered-metadata", "cut-coordinates", "foreign-filters", "tiny-arrays"]


Kept = Callable[..., Path]


@pytest.fixture(scope="module", params=KINDS)
def path(request: pytest.FixtureRequest, kept: Kept) -> Path:
    return kept(request.param)


def test_chunks_sizes_and_filters_are_those_of_h5py(path: Path) -> None:
    facts = facts_of(str(path))
    ours = {one.name: one for one in facts.arrays}
    with h5py.File(path) as file:
        named: dict[str, h5py.Dataset] = {}
        file.visititems(lambda name, one: named.update({f"/{name}": one}) if isinstance(one, h5py.Dataset) else None)
        assert set(ours) == set(named)
        for name, theirs in named.items():
            mine = ours[name]
            assert (mine.shape, mine.chunks, mine.nbytes) == (theirs.shape, theirs.chunks, theirs.nbytes)
            assert mine.stored_nbytes == theirs.id.get_storage_size()
            if theirs.chunks is not None:
                assert mine.stored_chunk_count == theirs.id.get_num_chunks()
                offsets = [theirs.id.get_chunk_info(k).byte_offset for k in range(min(100, theirs.id.get_num_chunks()))]
                assert mine.first_offset is not None
                assert mine.first_offset <= min(offsets)
            properties = theirs.id.get_create_plist()
            foreign = [properties.get_filter(k)[0] for k in range(properties.get_nfilters())]
            assert [int(re.findall(r"\d+", one)[-1]) for one in mine.foreign_filters] == [k for k in foreign if k > 6]
    assert facts.nbytes == path.stat().st_size


@pytest.mark.skipif(H5STAT is None, reason="h5stat is not installed: apt install hdf5-tools")
def test_data_are_counted_as_by_h5stat_and_metadata_are_at_most_what_it_counts(path: Path) -> None:
    facts = facts_of(str(path))
    said = subprocess.run([str(H5STAT), "-S", str(path)], capture_output=True, text=True, check=True).stdout
    # Global heaps are neither metadata nor data to h5stat.
    names = ("Raw data", "File metadata", "Unaccounted space")
    raw, metadata, rest = (int(re.search(rf"{name}: (\d+) bytes", said)[1]) for name in names)
    assert sum(one.stored_nbytes or 0 for one in facts.arrays) == raw
    assert facts.opening is not None
    assert 0 < facts.opening.metadata_nbytes <= metadata + rest


def test_the_structures_that_were_read_lie_in_the_file_and_not_in_its_chunks(path: Path) -> None:
    facts = facts_of(str(path))
    assert facts.opening is not None
    assert facts.opening.metadata_end <= path.stat().st_size
    assert facts.opening.index_nbytes <= facts.opening.metadata_nbytes
    assert 1 <= facts.opening.round_count <= facts.opening.request_count


def test_metadata_in_front_are_in_one_place(tmp_path: Path, kept: Kept) -> None:
    path = kept("scattered-metadata")
    hs.convert(path, tmp_path / "front.nc", relayout=True)
    before, after = facts_of(str(path)).opening, facts_of(str(tmp_path / "front.nc")).opening
    assert before is not None
    assert after is not None
    assert before.place_count > 20
    assert (after.place_count, after.request_count, after.round_count) == (1, 1, 1)


def test_metadata_that_are_longer_than_the_first_request_are_in_front_too(tmp_path: Path, kept: Kept) -> None:
    with h5py.File(tmp_path / "long.h5", "w") as made:
        array = made.create_dataset("x", (16_000, 8), "f8", chunks=(1, 8))
        for row in range(16_000):
            array.id.write_direct_chunk((row, 0), bytes(64))
    hs.convert(tmp_path / "long.h5", tmp_path / "front.h5", relayout=True, verify="none")
    facts = facts_of(str(tmp_path / "front.h5"))
    assert facts.opening is not None
    assert facts.opening.metadata_nbytes > FIRST_NBYTES
    assert is_in_front(facts)
    assert not is_in_front(facts_of(str(kept("scattered-metadata"))))
