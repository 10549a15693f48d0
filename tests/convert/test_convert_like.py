"""`--like`: the keys of an advice are strict, and codecs mean the same as everywhere."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.conversion.wishes import wish
from hyperslab.errors import UsageError
from hyperslab.formats import make_format
from hyperslab.formats.contract import ArraySpec
from hyperslab.storage.chain import CodecChain
from hyperslab.storage.layout import StoredLayout

SHAPE = (40, 60)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("sst", data=np.arange(2400.0).reshape(SHAPE), chunks=(4, 60))
    return path


@pytest.mark.parametrize(
    ("advice", "said"),
    [
        ({"arrays": {"sst": {"chunk": [4, 5]}}}, "'sst': unknown key 'chunk'; did you mean 'chunks'"),
        (
            {"arrays": {"sst": {"chunks": [4, 5], "compression": "zstd"}}},
            "unknown key 'compression'; choose from format",
        ),
        ({"array": {"sst": {}}}, "unknown key 'array'; did you mean 'arrays'"),
        ({"schema": "hyperslab-advise", "arrays": {}}, "schema 'hyperslab-advise'"),
        ({"arrays": {"sst": {"append_axis": "time"}}}, "append_axis is 'time', but it must be the number of an axis"),
        ({"arrays": {"sst": {"chunks": [4, 5], "append_axis": 2}}}, "append_axis 2.*has the axes 0 to 1"),
        ({"arrays": {"sst": {"shuffle": "yes"}}}, "must be true or false"),
        ({"arrays": {"sst": {"format": "hdf"}}}, "must be one of hdf5"),
        ({"arrays": {"sst": {"chunks": [4.5, 5]}}}, "is not a shape"),
        ({"arrays": {"sst": {"level": 4}}}, "a level, but no codec"),
        ({"arrays": {"sst": {"chunks": [4, 5]}, "/sst": {"chunks": [5, 4]}}}, "two entries for the array '/sst'"),
        ({"arrays": {"sst": {"chunks": "contiguous", "append_axis": 0}}}, "cannot grow"),
    ],
)
def test_what_an_advice_cannot_mean_is_named(source: Path, tmp_path: Path, advice: Any, said: str) -> None:
    (tmp_path / "advice.json").write_text(json.dumps(advice))
    for like in (advice, tmp_path / "advice.json"):
        with pytest.raises(UsageError, match=said):
            hs.convert(source, tmp_path / "b.h5", like=like)
    assert not (tmp_path / "b.h5").exists()


def test_an_advice_that_is_no_file_is_refused_at_once(source: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(UsageError, match="but a folder or a device"):
            hs.convert(source, tmp_path / "b.h5", like=path)
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(UsageError, match="not JSON"):
        hs.convert(source, tmp_path / "b.h5", like=tmp_path / "deep.json")


def test_keys_may_come_in_any_order(source: Path, tmp_path: Path) -> None:
    one = {"append_axis": 0, "shuffle": True, "level": 1, "codec": "deflate", "chunks": [8, 30], "format": "hdf5"}
    advice = {"arrays": {"/sst": one}, "source": "x", "version": 1, "schema": "hyperslab-advice"}
    for like in (advice, {"arrays": {"sst": dict(reversed(one.items()))}}):
        hs.convert(source, tmp_path / "b.h5", like=like, overwrite=True)
        with h5py.File(tmp_path / "b.h5") as file:
            found = file["sst"]
            assert (found.chunks, found.maxshape, found.compression_opts, found.shuffle) == (
                (8, 30),
                (None, 60),
                1,
                True,
            )


@pytest.mark.parametrize(
    "options",
    [{"chunks": "10,10"}, {"chunks": {"sst": [10, 10]}}, {"codec": "zstd:1"}, {"codec": {"/sst": "none"}}],
)
def test_what_the_advice_says_cannot_be_said_again(source: Path, tmp_path: Path, options: Any) -> None:
    advice = {"arrays": {"sst": {"chunks": [8, 30], "codec": "deflate:1"}}}
    with pytest.raises(UsageError, match=f"--{next(iter(options))} and --like both say"):
        hs.convert(source, tmp_path / "b.h5", like=advice, **options)
    hs.convert(source, tmp_path / "b.h5", like={"arrays": {"sst": {"chunks": [8, 30]}}}, codec="shuffle+deflate:2")
    with h5py.File(tmp_path / "b.h5") as file:
        assert (file["sst"].chunks, file["sst"].compression_opts, file["sst"].shuffle) == ((8, 30), 2, True)


@pytest.mark.parametrize("codec", ["blosc-lz4", "blosc-zstd"])
def test_blosc_means_the_same_in_bench_advice_and_convert(source: Path, tmp_path: Path, codec: str) -> None:
    pytest.importorskip("hdf5plugin")
    spec = ArraySpec((8, 60), np.dtype("f4"), StoredLayout((4, 60), codecs=CodecChain.parse(f"{codec}:5")))
    with closing(make_format("hdf5").create(tmp_path / "bench.h5")) as made:
        made.create_array("x", spec).write(np.zeros((8, 60), "f4"))
    with h5py.File(tmp_path / "bench.h5") as file:
        _, _, expected, _ = file["x"].id.get_create_plist().get_filter(0)
    advised = {"format": "hdf5", "chunks": [4, 60], "codec": codec, "level": 5, "shuffle": False}
    advice = {"schema": "hyperslab-advice", "version": 1, "source": "x", "arrays": {"/sst": advised}}
    texts = (f"{codec}:5", f"{codec}-5", f"{codec}-5+shuffle")
    for options in ({"like": advice}, *({"codec": text} for text in texts)):
        hs.convert(source, tmp_path / "b.h5", overwrite=True, **options)
        with h5py.File(tmp_path / "b.h5") as file:
            _, _, values, _ = file["sst"].id.get_create_plist().get_filter(0)
        assert values[4:7] == expected[4:7]  # the level, the shuffle, the compressor
        assert values[5] == 1


@pytest.mark.parametrize(
    ("text", "shuffle"),
    [
        ("blosc-lz4", "shuffle"), ("blosc-lz4:5", "shuffle"), ("shuffle+blosc-lz4:5", "shuffle"),
        ("blosc-lz4-noshuffle:5", ""), ("blosc-lz4-5-noshuffle", ""), ("blosc-lz4-bitshuffle:5", "bits"),
        ("blosc-lz4-5+bits", "bits"), ("shuffle+deflate:5", "shuffle"), ("deflate", ""), ("no codec", ""),
    ],
)  # fmt: skip
def test_the_text_of_a_codec_is_read_as_it_is_printed(text: str, shuffle: str) -> None:
    chain = CodecChain.parse(text)
    assert chain.shuffle == shuffle
    assert CodecChain.parse(str(chain)) == chain
    assert wish(codec=text).every.codec == chain


@pytest.mark.parametrize("text", ["blosc-lz4-noshuffle+shuffle", "deflate:4:5", "deflate-noshuffle", "4", "deflate:"])
def test_codecs_that_contradict_themselves_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="codec"):
        CodecChain.parse(text)
