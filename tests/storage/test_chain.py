"""A chain of codecs has one text, and means the same in HDF5, in Zarr and for our encoder."""

from __future__ import annotations

import pytest

from hyperslab.errors import Refused, UsageError
from hyperslab.model.predict import parse_layout
from hyperslab.storage.chain import Codec, CodecChain, hdf5_steps, needs
from hyperslab.storage.table import TABLE

WRITTEN = [row for row in TABLE if row.step is not None]
TEXTS = [
    ("shuffle+deflate:4", "shuffle+deflate:4"),
    ("deflate-4+shuffle", "shuffle+deflate:4"),
    ("Shuffle, deflate:4", "shuffle+deflate:4"),
    ("blosc-zstd-noshuffle:5", "blosc-zstd-noshuffle:5"),
    ("blosc-zstd-5-noshuffle", "blosc-zstd-noshuffle:5"),
    ("blosc-lz4-5+bits", "blosc-lz4-bitshuffle:5"),
    ("shuffle+blosc-lz4:5", "blosc-lz4:5"),
    ("fletcher32+zstd-3+shuffle", "shuffle+zstd:3+fletcher32"),
    ("no codec", "none"),
    ("uncompressed", "none"),
    ("hdf5-filter-32099", "hdf5-filter-32099"),
]


@pytest.mark.parametrize(("given", "printed"), TEXTS)
def test_all_spellings_are_read_and_one_is_printed(given: str, printed: str) -> None:
    chain = CodecChain.parse(given)
    assert str(chain) == printed
    assert CodecChain.parse(printed) == chain
    assert eval(repr(chain)) == chain
    assert CodecChain.parse(chain.text) == chain


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_every_line_of_the_table_has_a_text(row: object) -> None:
    name = row.name  # type: ignore[attr-defined]
    assert str(CodecChain.parse(name)) == name
    assert CodecChain.parse(str(CodecChain.parse(name).with_levels)).with_levels == CodecChain.parse(name).with_levels


@pytest.mark.parametrize("row", [row for row in WRITTEN if row.parameters is not None], ids=lambda row: row.name)
@pytest.mark.parametrize("level", [1, 7])
def test_what_is_written_to_hdf5_is_read_back(row: object, level: int) -> None:
    codec = Codec(row.name, level if row.most else None)  # type: ignore[attr-defined]
    (number, _, values), step = codec.hdf5(8, 4096)
    assert Codec.of_hdf5(number, values) == codec
    assert hdf5_steps([(number, values)]) == [step]


@pytest.mark.parametrize("shuffle", ["", "-noshuffle", "-bitshuffle"])
def test_blosc_keeps_its_shuffle_in_every_format(shuffle: str) -> None:
    codec = Codec(f"blosc-zstd{shuffle}", 5)
    (number, _, values), step = codec.hdf5(8, 4096)
    assert Codec.of_hdf5(number, values) == codec
    of_zarr2, step2 = codec.zarr2(8)
    assert Codec.of_zarr(of_zarr2["id"], of_zarr2) == codec
    of_zarr3, step3 = codec.zarr3(8)
    assert Codec.of_zarr(of_zarr3["name"], of_zarr3["configuration"]) == codec
    assert step == step2 == step3


@pytest.mark.parametrize("row", [row for row in WRITTEN if row.numcodecs is not None], ids=lambda row: row.name)
def test_what_is_written_to_zarr_is_read_back(row: object) -> None:
    codec = Codec(row.name, 3 if row.most else None)  # type: ignore[attr-defined]
    settings, _ = codec.zarr2(4)
    assert Codec.of_zarr(settings["id"], settings) == codec


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("shufle+deflate", "did you mean 'shuffle'"), ("deflate+zstd", "is one too many: it has deflate"),
        ("zstd:23", "the levels of zstd are 0 to 22"), ("lzf:1", "lzf has no levels"), ("deflate:x", "must be a level"),
        ("bits+deflate:4", "inside Blosc only"), ("blosc-lz4-bitshuffle+shuffle", "contradict"),
    ],
)  # fmt: skip
def test_a_chain_that_cannot_be_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        CodecChain.parse(text)


def test_codecs_that_a_format_lacks_are_refused() -> None:
    with pytest.raises(Refused, match="use fletcher32"):
        CodecChain.parse("zstd+crc32c").hdf5(4, 64)
    with pytest.raises(Refused, match="use crc32c"):
        CodecChain.parse("zstd+fletcher32").zarr3(4)
    for text in ("shuffle+zstd+crc32c", "lz4+crc32c"):
        with pytest.raises(Refused, match="we do not write crc32c"):
            CodecChain.parse(text).zarr3(4)
    with pytest.raises(Refused, match="Zarr has no codec lzf"):
        CodecChain.parse("lzf").zarr2(4)
    with pytest.raises(Refused, match="we do not write szip"):
        CodecChain.parse("szip").hdf5(4, 64)
    with pytest.raises(UsageError, match="we read it, but do not write it"):
        CodecChain.parse("szip").check_written()


def test_a_reader_is_told_what_it_needs() -> None:
    assert needs([1, 2, 3]) is None
    assert needs([32000]) == "h5py or `hyperslab run` (lzf)"
    assert needs([32000, 32001]) == "hdf5plugin or `hyperslab run` (lzf, blosc)"
    assert needs([32099]) == "hdf5plugin or `hyperslab run` (filter 32099)"


def test_a_layout_takes_what_advise_and_convert_print() -> None:
    for text in ("shuffle+deflate:4", "blosc-lz4-noshuffle:5", "zstd:3"):
        assert str(parse_layout(f"100x8:{text}=2.5")) == f"100x8:{text}=2.5"
