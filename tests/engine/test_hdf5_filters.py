"""What HDF5's filters do beside deflating chunks: links in filtered heaps, floats in n bits, descriptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import made_hdf5
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hyperslab as hs
from draws import few
from hyperslab.errors import DamagedFile, Refused, Unsupported

FEW = settings(max_examples=few(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NUMBERS = np.arange(600, dtype="i4").reshape(20, 30)
PLAIN = [(2, (4,)), (1, (6,))]
SHUFFLED = [(2, "", (4,)), (1, "", (6,)), (3, "", ())]


def targets(group: Any) -> dict[str, str]:
    return {name: group.get(name, getlink=True).path for name in group}


@pytest.mark.parametrize("fletcher32", [False, True])
@pytest.mark.parametrize(("count", "longest"), [(1, 0), (5, 10), (40, 5000), (3000, 40)])
def test_links_of_a_filtered_heap_are_those_that_h5py_finds(
    tmp_path: Path, count: int, longest: int, fletcher32: bool
) -> None:
    path, random = tmp_path / "filtered.h5", np.random.default_rng(count)
    with h5py.File(path, "w", libver="latest") as file:
        file["numbers"] = NUMBERS
        group = made_hdf5.filtered_group(file, "group", fletcher32)
        for k in range(count):
            letters = random.integers(97, 123, size=longest + k % 7 if k % 3 else 1, dtype="u1").tobytes()
            group[f"link_{k}"] = h5py.SoftLink("/" + letters.decode())
        group["numbers"] = file["numbers"]
    with h5py.File(path) as file:
        names = list(file["group"])
    read = hs.open(path)
    assert sorted(read["group"].keys()) == sorted(names)
    np.testing.assert_array_equal(read["group/numbers"][:], NUMBERS)


def test_soft_links_of_a_filtered_heap_lead_where_they_say(tmp_path: Path) -> None:
    path = tmp_path / "leading.h5"
    with h5py.File(path, "w", libver="latest") as file:
        group = made_hdf5.filtered_group(file, "group")
        for k in range(200):
            file[f"long{'x' * k * 30}"] = k
            group[f"link_{k}"] = h5py.SoftLink(f"/long{'x' * k * 30}")
    read = hs.open(path)
    assert [int(read[f"group/link_{k}"][()]) for k in range(200)] == list(range(200))


def test_a_filtered_heap_that_is_cut_or_changed_is_damaged(tmp_path: Path) -> None:
    path, changed = tmp_path / "whole.h5", tmp_path / "changed.h5"
    with h5py.File(path, "w", libver="latest") as file:
        group = made_hdf5.filtered_group(file, "group", fletcher32=True)
        for k in range(400):
            group[f"link_{k}"] = h5py.SoftLink(f"/there/{k}")
        group["long"] = h5py.SoftLink("/" + "there/" * 2000)
    whole, names = path.read_bytes(), sorted(hs.open(path)["group"].keys())
    headers = (b"\x78\x5e", b"\x78\x9c")
    streams = [at for at in range(len(whole) - 2) if whole[at : at + 2] in headers]
    assert len(streams) >= 2
    errors = []
    for at in [place + skip for place in streams for skip in (3, 20)]:
        changed.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            assert sorted(hs.open(changed)["group"].keys()) == names
        except DamagedFile as error:
            errors.append(str(error))
    assert len(errors) >= 2
    assert all("fractal heap" in error for error in errors)


@st.composite
def floats(draw: st.DrawFn) -> tuple[tuple[int, int, int], int, int, str, int]:
    exponent, mantissa, gap = draw(st.integers(2, 11)), draw(st.integers(1, 40)), draw(st.integers(0, 2))
    bits = 1 + exponent + mantissa + gap
    offset = draw(st.integers(0, max(0, min(9, 64 - bits))))
    least = -(-(bits + offset) // 8)
    most = max(least, min(8, (2 * bits - 1) // 8))  # HDF5 wants half of an element to be used
    nbytes = draw(st.integers(least, most))
    bias = (1 << (exponent - 1)) - 1 + draw(st.integers(-1, 1))
    return (exponent, mantissa, gap), offset, nbytes, draw(st.sampled_from("<>")), max(1, bias)


@FEW
@given(floats(), st.sampled_from([(), (5,), (5, 1), (2, 1)]))
def test_floats_of_any_layout_are_what_h5py_makes_of_them(
    tmp_path: Path, layout: tuple[tuple[int, int, int], int, int, str, int], filters: tuple[int, ...]
) -> None:
    path = tmp_path / "floats.h5"
    random = np.random.default_rng(7)
    values = np.concatenate([random.normal(size=30) * 4, 2.0 ** random.integers(-20, 20, size=20), [0, -0.0]])
    values = np.concatenate([values, [np.inf, -np.inf, np.nan, 5e-324, 1e300]])
    with h5py.File(path, "w") as file:
        made_hdf5.write_floats(file, "a", made_hdf5.float_type(*layout), values, filters)
    with h5py.File(path) as file:
        expected = file["a"][:]
    array = hs.open(path)["a"]
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array[:], expected)
    np.testing.assert_array_equal(array[3:40:5], expected[3:40:5])
    if expected.dtype.itemsize in (4, 8):
        assert array.via == "hyperslab", array.unsupported


def test_twenty_bit_floats_of_hdf5s_manual(tmp_path: Path) -> None:
    """The example of `H5Pset_nbit`: 20 of 32 bits, behind seven unused ones; and a fill value."""
    path = tmp_path / "manual.h5"
    kind = made_hdf5.float_type((6, 13, 0), 7, 4, "<", 31)
    values = np.array([[-1.5, 0.25, 1e4, -3e-4], [7.5, 0, 1, 2]]).reshape(-1)
    with h5py.File(path, "w") as file:
        made_hdf5.write_floats(file, "a", kind, values, (5,))
    array = hs.open(path)["a"]
    assert (array.via, array.dtype) == ("hyperslab", np.dtype("f4"))
    with h5py.File(path) as file:
        np.testing.assert_array_equal(array[:], file["a"][:])
        stored = file["a"].id.get_storage_size()
    assert stored < values.size * 4


def test_other_floats_are_kept_by_our_references_and_refused_by_kerchunks(tmp_path: Path) -> None:
    path, saved = tmp_path / "floats.h5", tmp_path / "floats.hs"
    with h5py.File(path, "w") as file:
        made_hdf5.write_floats(file, "a", made_hdf5.float_type((6, 13, 0), 7, 4, ">", 31), np.arange(50.0), (5,))
    hs.index(path).save(saved)
    np.testing.assert_array_equal(hs.open(saved)["a"][:], np.arange(50.0))
    with pytest.raises(Refused, match="convert"):
        hs.index(path).save(tmp_path / "floats.json", inline_threshold=0)


@pytest.mark.parametrize(
    "blocks",
    [
        [[], []],
        [[], [made_hdf5.extension(1, b"level=6")]],
        [[made_hdf5.extension(1, b"")], [made_hdf5.extension(2, b"\0" * 20), made_hdf5.extension(700, b"later")]],
    ],
)
def test_a_filter_pipeline_of_version_3_is_read(tmp_path: Path, blocks: list[list[bytes]]) -> None:
    """No library that writes it can be had: the bytes are by hand, as HDF5's development branch writes them."""
    path = tmp_path / "version_3.h5"
    made_hdf5.roomy(path, NUMBERS, PLAIN)
    made_hdf5.with_pipeline(path, made_hdf5.pipeline_of_version_3(SHUFFLED, [*blocks, []]))
    array = hs.open(path)["a"]
    assert array.via == "hyperslab"
    np.testing.assert_array_equal(array[:], NUMBERS)


def test_a_registered_filter_in_a_pipeline_of_version_3_has_its_name(tmp_path: Path) -> None:
    path = tmp_path / "named.h5"
    made_hdf5.roomy(path, NUMBERS, [(32000, ())])
    filters = [(32000, "lzf", (4, 261, 308)), (3, "", ())]
    made_hdf5.with_pipeline(path, made_hdf5.pipeline_of_version_3(filters, [[made_hdf5.extension(1, b"x=1")], []]))
    np.testing.assert_array_equal(hs.open(path)["a"][:], NUMBERS)


@pytest.mark.parametrize(
    "blocks",
    [
        [[], [made_hdf5.extension(2, b"\0" * 12, flags=1)]],  # critical: a place in the global heap
        [[], [made_hdf5.extension(3, b"?", flags=0x80)]],
        [[], [made_hdf5.extension(2, b""), made_hdf5.extension(2, b"")]],  # twice
        [[], [made_hdf5.extension(2, b""), made_hdf5.extension(1, b"")]],  # in no order
        [[], [made_hdf5.extension(0, b"")]],
        [[], [b"\1\0\0\0\xff\xff\xff\x7f"]],  # longer than the message
    ],
)
def test_what_a_pipeline_of_version_3_may_mean_otherwise_is_refused(tmp_path: Path, blocks: list[list[bytes]]) -> None:
    path = tmp_path / "refused.h5"
    made_hdf5.roomy(path, NUMBERS, PLAIN)
    made_hdf5.with_pipeline(path, made_hdf5.pipeline_of_version_3(SHUFFLED, [*blocks, []]))
    array = hs.open(path)["a"]
    assert "filter pipeline message" in str(array.unsupported)
    with pytest.raises((Unsupported, DamagedFile), match="filter pipeline message"):  # h5py cannot either
        array[:]
