"""The table of codecs: one line says all that we know of one, whichever file it stands in and whoever reads it.

By what number and names files call a codec stands in one table for Rust and Python, `codec_table.rs` of hyperslab-core.
The lines here add what writing takes; a codec that is only read needs none.

Settings are written as words. A number stands for itself; `level`, `width` (bytes of an element), `chunk` (bytes of a
decoded chunk), `shuffle` and `block` stand for what a chain says. `inner` is the compressor inside Blosc or bitshuffle;
with `=` in front a number must be the same in a file that we encode for, and a word with `?` may be missing there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hyperslab._core import codec_names

Kind = Literal["shuffle", "compressor", "checksum"]
MOST_BLOSC_WIDTH = 255
NAMES_OF_SHUFFLES = {-1: "autoshuffle", 0: "noshuffle", 1: "shuffle", 2: "bitshuffle"}
FIRST_PLUGIN = 256  # HDF5 has the filters below this number itself


@dataclass(frozen=True)
class KnownCodec:
    """One line of the table.

    Attributes
    ----------
    name
        Our name for it.
    kind
        What it does to a chunk.
    hdf5, parameters
        The number of HDF5's filter, and what it takes, in words; None if we do not write it.
    numcodecs, zarr3
        numcodecs' name and settings, which Zarr 2 uses; those of Zarr 3's specification, if it has the codec.
    step, zarr_step
        Our encoder's step and what it takes, in HDF5 and in Zarr; `zarr_step` is the same if it is not given.
    level, most
        The level if you give none, which is h5py's and hdf5plugin's; and the highest one, None if you cannot choose.
    inner
        The number of the compressor inside it, in HDF5's parameters and in ours.
    own
        How many parameters the filter itself puts in front when an array is created.
    h5repack, h5py, netcdf
        What the tools and libraries call it.
    needs
        The library that brings the filter, if HDF5 has not got it.
    like
        The chain to write in its place, if we cannot write it.
    same_as
        The codec that stands for it where only that one exists: DEFLATE in HDF5 and in Zarr 3.
    """

    name: str
    kind: Kind = "compressor"
    hdf5: int | None = None
    parameters: str | None = None
    numcodecs: str | None = None
    zarr3: str | None = None
    step: str | None = None
    zarr_step: str | None = None
    level: int | None = None
    most: int | None = None
    inner: tuple[int, int] | None = None
    own: int = 0
    h5repack: str | None = None
    h5py: str | None = None
    netcdf: str | None = None
    needs: str = "hdf5plugin"
    like: str = "shuffle+zstd:3"
    same_as: str | None = None

    @property
    def is_blosc(self) -> bool:
        """Whether it shuffles by itself, as Blosc does."""
        return self.name.startswith("blosc-")

    @property
    def is_in_zarr(self) -> bool:
        """Whether zarr-python has it, in either version of the format."""
        return (self.numcodecs or self.zarr3) is not None

    def words(self, level: int | None, width: int, chunk_nbytes: int, shuffle: int) -> dict[str, Any]:
        """What the words of its settings stand for."""
        wanted = self.level if level is None else level
        meanings: dict[str, Any] = {
            "level": wanted or 0, "width": width, "chunk": chunk_nbytes, "shuffle": shuffle, "block": 0,
            "shuffled": NAMES_OF_SHUFFLES[shuffle],
        }  # fmt: skip
        if self.inner is not None:
            meanings |= {"inner": self.inner[0], "ours": self.inner[1]}
        return meanings

    def values(self, words: Mapping[str, Any]) -> tuple[int, ...]:
        """The parameters of HDF5's filter."""
        given = dict(words)
        if self.is_blosc and given["width"] > MOST_BLOSC_WIDTH:
            given["width"] = 1
        return tuple(int(_value(word, given)) for word in (self.parameters or "").split())

    def read(self, values: Sequence[int]) -> dict[str, Any] | None:
        """What the parameters of a filter in a file say, by word; None if our encoder could not do the same."""
        words = (self.parameters or "").split()
        if self.parameters is None or (len(values) > len(words) and (self.hdf5 or 0) < FIRST_PLUGIN):
            return None
        meanings = self.words(None, 0, 0, 0)
        for index, word in enumerate(words):
            if index >= len(values):
                if not word.endswith("?"):
                    return None
            elif word.startswith("=") and values[index] != int(word[1:]):
                return None
            else:
                meanings[word.rstrip("?")] = values[index]
        return meanings

    def encoder_step(self, words: Mapping[str, Any], *, in_zarr: bool = False) -> tuple[str, list[int]] | None:
        """The step of our encoder, as `_core.encode_chunks` takes it; None if we have none."""
        text = (self.zarr_step if in_zarr else None) or self.step
        if text is None:
            return None
        name, *parameters = text.split()
        return name, [int(_value(word, words)) for word in parameters]

    @staticmethod
    def settings(text: str, words: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """A name and its settings, as numcodecs and Zarr 3 describe a codec."""
        name, *listed = text.split()
        given = {}
        for one in listed:
            key, _, word = one.partition("=")
            given[key] = _value(word or key, words)
        return name, given


def _value(word: str, words: Mapping[str, Any]) -> Any:
    plain = word.strip("=?")
    if plain in words:
        return words[plain]
    return {"False": False}.get(plain, int(plain) if plain.lstrip("-").isdigit() else plain)


def _names() -> dict[str, tuple[int | None, str | None, str | None]]:
    """HDF5's number and the names in numcodecs and Zarr 3, as the table in Rust has them."""
    names: dict[str, tuple[int | None, str | None, str | None]] = {}
    for name, hdf5, numcodecs, zarr3 in codec_names():
        before = names.get(name, (None, None, None))  # LZ4 has two framings, and one name
        names[name] = hdf5 or before[0], numcodecs or before[1], zarr3 or before[2]
    return names


_NAMES = _names()


def _line(
    name: str, kind: Kind = "compressor", numcodecs: str = "", zarr3: str = "", *, called: str = "", **said: Any
) -> KnownCodec:
    """A line of a codec that Rust's table has as `called`; `numcodecs` and `zarr3` are the settings there."""
    number, in_numcodecs, in_zarr3 = _NAMES[called or name]
    return KnownCodec(
        name, kind, number, numcodecs=in_numcodecs and f"{in_numcodecs} {numcodecs}".strip(),
        zarr3=in_zarr3 and f"{in_zarr3} {zarr3}".strip(), **said,
    )  # fmt: skip


_BLOSC_ZARR3 = "cname={} clevel=level shuffle=shuffled typesize=width blocksize=0"


def _blosc(inner: str, number: int, *, netcdf: str | None = None, is_written: bool = False) -> KnownCodec:
    return _line(
        f"blosc-{inner}", called="blosc", parameters="2 2 width chunk level shuffle inner" if is_written else None,
        numcodecs=f"cname={inner} clevel=level shuffle blocksize=0", zarr3=_BLOSC_ZARR3.format(inner),
        step="blosc inner level shuffle width" if is_written else None, level=5, most=9, inner=(number, number),
        netcdf=netcdf or f"blosc_{inner}", like="blosc-lz4:5",
    )  # fmt: skip


def _bitshuffle(name: str, theirs: int, ours: int, level: int | None = None) -> KnownCodec:
    return _line(
        name, called="bitshuffle", parameters="0 4 width =0 inner level?", step="bitshuffle width ours level",
        level=level, inner=(theirs, ours), own=3, like="blosc-lz4-bitshuffle:5",
    )  # fmt: skip


# What we say of a codec beside its number and names. Where two lines have the same number, the first one names the
# filter in general.
_LINES = (
    _line("shuffle", "shuffle", "elementsize=width", parameters="width", step="shuffle width", h5repack="SHUF"),
    _line("deflate", numcodecs="level", parameters="level", step="deflate level", level=4, most=9,
          h5repack="GZIP={level}", h5py="gzip", netcdf="zlib", same_as="gzip"),
    _line("gzip", numcodecs="level", zarr3="level", step="gzip level", level=4, most=9, same_as="deflate"),
    _line("fletcher32", "checksum", parameters="", step="fletcher32", h5repack="FLET"),
    _line("crc32c", "checksum", "location=end", step="crc32c"),
    _line("szip", h5py="szip", netcdf="szip"),
    _line("bzip2", numcodecs="level", netcdf="bzip2", level=1, most=9),
    _line("lzf", parameters="4? 261? chunk?", step="lzf", h5repack="UD=32000,0,0", h5py="lzf", needs="h5py",
          like="lz4"),
    _line("lz4", numcodecs="acceleration=1", parameters="block?", step="lz4_hdf5 block", zarr_step="lz4",
          h5repack="UD=32004,0,0"),
    _line("zstd", numcodecs="level", zarr3="level checksum=False", parameters="level?", step="zstd level",
          level=3, most=22, h5repack="UD=32015,0,1,{level}", netcdf="zstd"),
    _line("blosc", numcodecs="cname=lz4 clevel=5 shuffle=1 blocksize=0", zarr3=_BLOSC_ZARR3.format("lz4"),
          like="blosc-lz4:5"),
    _blosc("lz4", 1, is_written=True),
    _blosc("zlib", 4, is_written=True),
    _blosc("zstd", 5, is_written=True),
    _blosc("blosclz", 0, netcdf="blosc_lz"),
    _blosc("lz4hc", 2),
    _blosc("snappy", 3),
    _bitshuffle("bitshuffle", 0, -1),
    _bitshuffle("bitshuffle-lz4", 2, 1),
    _bitshuffle("bitshuffle-zstd", 3, 5, level=3),
    _line("blosc2", like="blosc-lz4:5"),
)  # fmt: skip

# Of all other codecs nothing is to say but how they are called.
TABLE = _LINES + tuple(_line(name) for name in _NAMES if name not in {row.name for row in _LINES})


def known_codecs() -> dict[str, KnownCodec]:
    """The table by name."""
    return {row.name: row for row in TABLE}


def known(name: str) -> KnownCodec | None:
    """The line of a codec, which may have Blosc's shuffle in its name."""
    bare, _, shuffle = name.rpartition("-")
    is_shuffled = bare.startswith("blosc-") and shuffle in NAMES_OF_SHUFFLES.values()
    return next((row for row in TABLE if row.name == (bare if is_shuffled else name)), None)


def filters_of_hdf5(number: int) -> Iterator[KnownCodec]:
    """The lines of a filter of HDF5: several, if its parameters choose among compressors."""
    return (row for row in TABLE if row.hdf5 == number)


def filter_name(number: int) -> str:
    """Our name for a filter of HDF5."""
    return next((row.name for row in filters_of_hdf5(number)), f"hdf5-filter-{number}")


def parameters_put_before(number: int) -> int:
    """How many parameters a filter of HDF5 itself puts in front of those that you give it."""
    return next((row.own for row in filters_of_hdf5(number)), 0)


def written_names(where: Literal["hdf5", "zarr2", "zarr3"]) -> frozenset[str]:
    """What a format of the bench writes, besides checksums, under the names by which its files are described."""
    rows = [row for row in TABLE if row.step is not None and row.kind != "checksum"]
    if where == "hdf5":
        return frozenset(row.name for row in rows if row.parameters is not None)
    if where == "zarr2":
        return frozenset(row.name for row in rows if row.numcodecs is not None)
    return frozenset(row.name for row in rows if (row.zarr3 is not None) != (row.same_as is not None))
