"""Compound elements, text, tables of pandas, arrays that grow: advice that keeps them working, or why there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import made_up_store_profile

import hyperslab as hs
from hyperslab.advise.advising import advise
from hyperslab.advise.asking import ask
from hyperslab.advise.codecs import measure_codecs
from hyperslab.advise.formats import codecs_of, encodings_of
from hyperslab.advise.limits import Limits
from hyperslab.advise.results import ArrayAdvice
from hyperslab.advise.verdict import one_format
from hyperslab.conversion.advice import AdviceFile
from hyperslab.errors import HyperslabError
from hyperslab.model.store_profile import StoreProfile
from hyperslab.report.advice_rows import HEADER, cells_of
from hyperslab.storage.chain import CodecChain

h5py = pytest.importorskip("h5py")
COMPOUND = np.dtype([("a", "<f4"), ("b", ">i2"), ("c", "S3")])


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("odd") / "odd.h5"
    with h5py.File(path, "w") as file:
        rows = np.zeros(4000, COMPOUND)
        rows["b"] = np.arange(4000) % 50
        file.create_dataset("compound", data=rows, chunks=(10,), compression="gzip")
        file.create_dataset("grows", (40, 50), "f4", chunks=(1, 50), maxshape=(None, 50))
        file.create_dataset("fixed", (40, 50), "f4", chunks=(1, 50))
        file.create_dataset("text", data=["a"] * 10, dtype=h5py.string_dtype())
        file.create_dataset("scalar", data=1.0)
        kinds = h5py.enum_dtype({"NO": 0, "YES": 1}, "i1")
        file.create_dataset("enum", (4000,), kinds, chunks=(10,))
        file.create_dataset("t/_i_table/index/sorted", (400,), "f4", chunks=(40,))
    return path


def advised(path: Path, name: str, profile: StoreProfile, **made: Any) -> ArrayAdvice:
    ((array, demands),) = ask(f"{path}:{name}", [], None, "everything").arrays
    demands = [replace(demand, **made) for demand in demands]
    encodings = encodings_of(array, Limits(), profile, demands)
    return advise(array, demands, profile, Limits(), codecs_of(array, encodings, profile), encodings)


def test_an_array_that_grows_is_never_advised_in_one_piece(odd: Path, profile: StoreProfile) -> None:
    """A program that appends to it would fail afterwards."""
    for name, why in (("grows", "the array can grow today, and in one piece it could not"), ("fixed", None)):
        found = advised(odd, name, profile)
        whole = [one for one in found.options if one.candidate.layout.contiguous]
        assert whole
        assert {one.refused for one in whole} == {why}
    assert not found.today.candidate.layout.contiguous


def test_compound_elements_are_advised_with_their_codec(odd: Path, profile: StoreProfile) -> None:
    """Codecs were measured on plain numbers only, so the advice had none, or there was no advice."""
    found = advised(odd, "compound", profile)
    assert any(one.candidate.encoding.codec is not None and one.can_be_advised for one in found.options)
    assert found.today.seconds is not None


@pytest.mark.parametrize("dtype", ["?", "<c8", "S5", "<f2", COMPOUND])
def test_codecs_are_measured_on_the_bytes_of_all_elements(dtype: Any) -> None:
    sample = np.zeros((4, 64), dtype)
    chain = CodecChain.parse("deflate:4")
    (found,) = measure_codecs((1, 64), sample, {"hdf5": [chain]}).values()
    assert found.ratio > 1.5


@pytest.mark.parametrize(
    ("name", "said"),
    [("text", "have no fixed width"), ("scalar", "nothing to read in parts"),
     ("t/_i_table/index/sorted", "belongs to an index of PyTables, which needs the chunks that it has")],
)  # fmt: skip
def test_where_there_is_no_advice_a_sentence_says_why(odd: Path, profile: StoreProfile, name: str, said: str) -> None:
    with pytest.raises(HyperslabError, match=said):
        advised(odd, name, profile)
    found = hs.advise(odd, like="everything", keep="hdf5", store_profile=profile)
    assert name not in [one.array.name.strip("/") for one in found]


def test_zarr_is_not_advised_for_what_it_cannot_hold(odd: Path, profile: StoreProfile) -> None:
    for name, formats in (("enum", {"hdf5"}), ("compound", {"hdf5"}), ("fixed", {"hdf5", "zarr3"})):
        assert {one.candidate.format for one in advised(odd, name, profile).options} == formats


@pytest.mark.parametrize("beside", [None, "enum", "compound", "null"])
def test_zarr_is_not_advised_if_it_cannot_hold_another_array_of_the_file(beside: str | None, tmp_path: Path) -> None:
    """`convert` refused the advice: it names what would be lost, and stops."""
    kinds = {"enum": h5py.enum_dtype({"NO": 0}, "i1"), "compound": COMPOUND, "null": "f4"}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (400, 50), "f4", chunks=(1, 50))
        file["text"] = "words"
        if beside is not None:
            file.create_dataset(beside, None if beside == "null" else (3,), data=h5py.Empty("f4")
                                if beside == "null" else None, dtype=kinds[beside])  # fmt: skip
    quick = made_up_store_profile(tmp_path, ("zarr", "hdf5"), slow=1000.0)
    (found,) = hs.advise(tmp_path / "a.h5:x", like="columns", store_profile=quick)
    assert found.chosen.candidate.format == ("zarr3" if beside is None else "hdf5")
    if beside is not None:
        assert any(f"zarr3 cannot hold /{beside} of the same file" in (one.refused or "") for one in found.options)
    like = {found.array.name: found.chosen.candidate.advised("", None)}
    target = tmp_path / ("b.zarr" if beside is None else "b.h5")
    AdviceFile("a.h5", like).save(tmp_path / "advice.json")
    hs.convert(tmp_path / "a.h5", target, like=tmp_path / "advice.json")


def test_a_file_goes_into_one_format(odd: Path, profile: StoreProfile) -> None:
    first, second = advised(odd, "fixed", profile), advised(odd, "enum", profile)
    other = next(one for one in first.options if one.candidate.format == "zarr3" and one.can_be_advised)
    first.chosen, second.chosen = other, next(one for one in second.options if one.can_be_advised)
    third = replace(second, chosen=second.chosen)
    one_format([first, second, third], profile)
    assert {one.chosen.candidate.format for one in (first, second, third)} == {"hdf5"}
    refused = {one.refused for one in first.options if one.candidate.format == "zarr3"}
    assert refused == {"the file becomes hdf5, which is better for its other arrays"}


def test_a_program_that_only_writes_is_told_to_create_the_array_so(odd: Path, profile: StoreProfile) -> None:
    ((array, demands),) = ask(f"{odd}:grows", [], None, "appends").arrays
    found = advise(array, demands, profile, Limits(), {}, encodings_of(array, Limits(), profile, demands))
    assert any("ask for this layout where it creates it" in note for note in found.notes)


def test_what_converting_takes_is_never_unknown(odd: Path, profile: StoreProfile) -> None:
    """A calibration without writes, such as that of a server, or with too few codecs, had no price for it."""
    reads = replace(profile, fits=tuple(one for one in profile.fits if one.operation == "read"),
                    cells=tuple(one for one in profile.cells if one.operation == "read"))  # fmt: skip
    for known, is_estimate in ((profile, False), (reads, True)):
        found = advised(odd, "fixed", known)
        place, pays = HEADER.index("conversion"), HEADER.index("pays after")
        for one in found.options:
            if one.candidate.is_today:
                continue
            assert one.conversion is not None
            assert one.conversion.is_estimate is is_estimate
            assert 0 < one.conversion.low < one.conversion.seconds < one.conversion.high
            assert cells_of(one, found)[place].startswith("about ") is is_estimate
            assert one.seconds is None or "run" in cells_of(one, found)[pays] or cells_of(one, found)[pays] == "never"
        assert not is_estimate or not found.keeps or found.verdict


def test_an_estimate_counts_the_bytes_and_the_codec(odd: Path, profile: StoreProfile) -> None:
    from hyperslab.advise.conversion import ARRAY_SECONDS, FACTOR, WILD_FACTOR, conversion_cost

    reads = replace(profile, fits=(), cells=())
    found = advised(odd, "fixed", profile)
    pricer = replace(found.counsel.pricer, profile=reads, known={}) if found.counsel is not None else None
    assert pricer is not None
    plain, encoded = (
        next(one.candidate for one in found.options if (one.candidate.encoding.codec is not None) is is_encoded
             and not one.candidate.layout.contiguous and not one.candidate.is_today)
        for is_encoded in (False, True)
    )  # fmt: skip
    costs = [conversion_cost(found.array, pricer, found.today.candidate, one) for one in (plain, encoded)]
    assert all(one.is_estimate for one in costs)
    assert costs[0].high == pytest.approx((costs[0].seconds - ARRAY_SECONDS) * WILD_FACTOR + ARRAY_SECONDS * FACTOR)
    larger = replace(found.array, shape=(4000, 50))
    assert conversion_cost(larger, replace(pricer, known={}), found.today.candidate, plain).seconds > costs[0].seconds


def test_each_array_costs_its_creation_however_small_it_is(odd: Path, profile: StoreProfile) -> None:
    """3,000 arrays of a few KB were said to take 1 s, and took seven."""
    from hyperslab.advise.conversion import ARRAY_SECONDS, conversion_cost

    found = advised(odd, "fixed", profile)
    assert found.counsel is not None
    other = next(one.candidate for one in found.options if not one.candidate.is_today)
    tiny = replace(found.array, shape=(1, 1))
    pricer = replace(found.counsel.pricer, known={})
    assert conversion_cost(tiny, pricer, found.today.candidate, other).times(3000).seconds >= 3000 * ARRAY_SECONDS
