"""Advice ends well for who reads the file: its codecs are there, and `convert` writes what is advised."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hyperslab.advise.advising import _refused, advise
from hyperslab.advise.asking import ask
from hyperslab.advise.demand import Demand
from hyperslab.advise.formats import codecs_of, encodings_of, reader_needs
from hyperslab.advise.limits import Limits
from hyperslab.advise.results import ArrayAdvice
from hyperslab.advise.stored import StoredArray
from hyperslab.advise.verdict import choose, in_order
from hyperslab.model.store_profile import StoreProfile
from hyperslab.storage.chain import CodecChain

ZSTD, BLOSC = 32015, 32001
OF_HDF5 = {"hdf5", "netcdf4"}


def asked(path: Path, words: str, **made: Any) -> tuple[StoredArray, list[Demand]]:
    ((array, demands),) = ask(f"{path}:sst", [], None, words).arrays
    return array, [replace(demand, **made) for demand in demands]


def codecs(found: dict[str, list[CodecChain]]) -> set[str]:
    return {one.text.partition(":")[0] for name, listed in found.items() if name in OF_HDF5 for one in listed}


@pytest.mark.parametrize(
    ("made", "limits", "expected"),
    [
        ({}, Limits(), {"no codec", "shuffle+deflate"}),
        ({"library": "hdf5"}, Limits(), {"no codec", "shuffle+deflate"}),
        ({"library": "hdf5", "decodes": frozenset({1, 2, 3})}, Limits(), {"no codec", "shuffle+deflate"}),
        ({"library": "hdf5", "decodes": frozenset({1, 2, ZSTD})}, Limits(),
         {"no codec", "shuffle+deflate", "shuffle+zstd"}),
        ({"library": "hdf5", "decodes": frozenset({2, BLOSC})}, Limits(), {"no codec", "shuffle+deflate", "blosc-lz4"}),
        ({"library": "hyperslab"}, Limits(), {"no codec", "shuffle+deflate", "shuffle+zstd", "blosc-lz4"}),
        ({"library": "hdf5"}, Limits(codecs="any"), {"no codec", "shuffle+deflate", "shuffle+zstd", "blosc-lz4"}),
    ],
)  # fmt: skip
def test_codecs_are_those_that_the_program_decodes(
    maps: Path, profile: StoreProfile, made: dict[str, Any], limits: Limits, expected: set[str]
) -> None:
    pytest.importorskip("hdf5plugin")
    array, demands = asked(maps, "series", **made)
    assert codecs(encodings_of(array, limits, profile, demands)) == expected


def test_two_programs_need_what_both_of_them_have(maps: Path, profile: StoreProfile) -> None:
    array, (demand,) = asked(maps, "series", library="hdf5")
    both = [replace(demand, decodes=frozenset(one)) for one in ({1, 2, ZSTD}, {1, 2, BLOSC})]
    assert codecs(encodings_of(array, Limits(), profile, both)) == {"no codec", "shuffle+deflate"}
    assert reader_needs("hdf5", CodecChain.parse("zstd:3"), array, both) == "hdf5plugin or `hyperslab run` (zstd)"
    assert reader_needs("zarr3", CodecChain.parse("zstd:3"), array, both) is None


def test_the_codec_of_today_stays_possible(maps: Path, profile: StoreProfile) -> None:
    array, demands = asked(maps, "series")
    today = replace(array, encoding=CodecChain.parse("shuffle+zstd:1"))
    assert reader_needs("hdf5", today.encoding, today, demands) is None
    assert reader_needs("hdf5", CodecChain.parse("zstd:3"), today, demands) is not None


@pytest.mark.parametrize(
    ("library", "keep", "formats"),
    [("hdf5", None, {"hdf5"}), ("zarr", None, {"zarr3"}), ("hyperslab", None, {"hdf5", "zarr3"}),
     (None, None, {"hdf5", "zarr3"}), ("hdf5", "any", {"hdf5", "zarr3"})],
)  # fmt: skip
def test_formats_are_those_that_the_program_opens(
    maps: Path, profile: StoreProfile, library: str | None, keep: Any, formats: set[str]
) -> None:
    limits = Limits(keep=keep)
    array, demands = asked(maps, "series", library=library)
    assert set(encodings_of(array, limits, profile, demands)) == formats


def advised(path: Path, profile: StoreProfile, limits: Limits) -> ArrayAdvice:
    array, demands = asked(path, "series", library="hdf5")
    encodings = encodings_of(array, limits, profile, demands)
    return advise(array, demands, profile, limits, codecs_of(array, encodings, profile), encodings)


def test_what_convert_refuses_is_never_first_and_never_advised(maps: Path, profile: StoreProfile) -> None:
    found = advised(maps, profile, Limits())
    first = next(one for one in found.options if one.can_be_advised)
    one = first.candidate
    assert _refused(one, None, Limits()) is None
    reasons = [_refused(replace(one, order=(2, 1, 0)), None, Limits()), _refused(one, "hdf5plugin", Limits())]
    assert _refused(one, "hdf5plugin", Limits(codecs="any")) is None
    # However much faster it is: it goes behind the others, and something else is advised.
    quick = replace(first.price, seconds=first.price.seconds / 1000, low=0.0)
    for reason in reasons:
        assert reason is not None
        refused = replace(first, price=quick, refused=reason)
        assert not refused.can_be_advised
        again = replace(found, options=[refused if one is first else one for one in found.options])
        again.options = in_order(again.options, again)
        assert [one for one in again.options if one.seconds is not None][-1] is refused
        choose(again, profile)
        assert again.chosen.candidate != first.candidate


def test_what_the_readers_need_is_said_in_the_verdict(maps: Path, profile: StoreProfile) -> None:
    pytest.importorskip("hdf5plugin")
    found = advised(maps, profile, Limits(codecs="any"))
    first = next(one for one in found.options if one.can_be_advised)
    needy = replace(first, needs="hdf5plugin or `hyperslab run` (zstd)")
    found.options = [needy, found.today]
    choose(found, profile)
    assert found.chosen is needy
    assert found.verdict.endswith("faster; its readers need hdf5plugin or `hyperslab run` (zstd)")


@pytest.mark.parametrize("version", [2, 3])
def test_an_array_at_the_root_of_a_zarr_store_is_advised_on(
    tmp_path: Path, profile: StoreProfile, version: Any
) -> None:
    zarr = pytest.importorskip("zarr")
    made = zarr.create_array(tmp_path / "a.zarr", shape=(40, 30), chunks=(1, 30), dtype="f4", zarr_format=version)
    made[:] = np.arange(1200, dtype="f4").reshape(40, 30)
    import hyperslab as hs

    with hs.record() as trace:
        for column in range(30):
            zarr.open_array(tmp_path / "a.zarr", mode="r")[:, column]
    trace.save(tmp_path / "run.trace")
    for target in ("a.zarr", "a.zarr:/"):
        ((array, demands),) = ask(str(tmp_path / target), [(tmp_path / "run.trace", 1.0)], None, None).arrays
        assert (array.shape, array.format, len(demands[0].steps)) == ((40, 30), f"zarr{version}", 30)
        assert array.title == "a.zarr:/"
    like = {"schema": "hyperslab-advice", "arrays": {array.name: {"format": f"zarr{version}", "chunks": [40, 5]}}}
    hs.convert(tmp_path / "a.zarr", tmp_path / "b.zarr", format=f"zarr{version}", like=like)
    assert zarr.open_array(tmp_path / "b.zarr", mode="r").chunks == (40, 5)


@pytest.mark.parametrize("codec", ["szip", "bzip2", "blosc2", "deflate:4", "zstd", "blosc-lz4-noshuffle:5"])
def test_every_codec_that_is_considered_can_be_converted_to(maps: Path, profile: StoreProfile, codec: str) -> None:
    array, demands = asked(maps, "series")
    today = replace(array, encoding=CodecChain.parse(codec))
    for limits in (Limits(), Limits(keep="any", codecs="any")):
        for name, listed in encodings_of(today, limits, profile, demands).items():
            for one in listed:
                assert one.hdf5(4, 4) if name in OF_HDF5 else one.zarr3(4)
