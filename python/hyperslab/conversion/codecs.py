"""`CodecChain`: how chunks are encoded, in the words of the command line, HDF5, Zarr and our encoders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hyperslab.errors import Refused, UsageError
from hyperslab.meant import meant

# A step of our encoders: its name and parameters, as `_core.encode_chunks` takes them.
Step: TypeAlias = tuple[str, list[int]]
# A filter of HDF5: its number, its flags and its parameters.
Filter: TypeAlias = tuple[int, int, tuple[int, ...]]

DEFAULT_LEVELS = {"deflate": 4, "gzip": 4, "zstd": 3, "blosc-lz4": 5, "blosc-zlib": 5, "blosc-zstd": 5}
MOST_LEVELS = {"deflate": 9, "gzip": 9, "zstd": 22, "blosc-lz4": 9, "blosc-zlib": 9, "blosc-zstd": 9}
PLAIN = ("lzf", "lz4", "bitshuffle", "bitshuffle-lz4", "bitshuffle-zstd")
CODECS = (*DEFAULT_LEVELS, *PLAIN)
OTHERS = ("shuffle", "bits", "fletcher32", "crc32c")
BLOSC_NUMBERS = {"lz4": 1, "zlib": 4, "zstd": 5}
BLOSC_NAMES = {number: name for name, number in BLOSC_NUMBERS.items()}
BITSHUFFLE_NUMBERS = {"": (-1, 0), "lz4": (1, 2), "zstd": (5, 3)}  # our encoder's, and the filter's
DEFLATE, SHUFFLE, FLETCHER32, LZF, BLOSC, LZ4, BITSHUFFLE, ZSTD = 1, 2, 3, 32000, 32001, 32004, 32008, 32015
OPTIONAL = 1
MOST_BLOSC_WIDTH = 255
# What every libhdf5 has, though szip only where it was built in; the others by what has them, and by name.
USUAL_FILTERS = frozenset([DEFLATE, SHUFFLE, FLETCHER32, 4, 5, 6])
FILTER_NAMES = {LZF: "lzf", BLOSC: "blosc", LZ4: "lz4", BITSHUFFLE: "bitshuffle", ZSTD: "zstd"}
# Blosc shuffles bytes if nobody says otherwise, as in the bench and in Blosc's own libraries.
BLOSC_SHUFFLES = {"": "noshuffle", "shuffle": "", "bits": "bitshuffle"}
NOTHING = ("none", "no codec")


@dataclass(frozen=True)
class CodecChain:
    """How chunks are encoded: a shuffle, a compressor with its level, and a checksum; each may be missing.

    Attributes
    ----------
    codec
        The name of the codec that makes chunks smaller; "" for none.
    level
        Its level; 0 for codecs without levels.
    shuffle
        "", "shuffle" (bytes of equal significance together) or "bits" (inside Blosc only). Blosc shuffles by itself.
    checksum
        "", "fletcher32" (HDF5) or "crc32c" (Zarr).
    """

    codec: str = ""
    level: int = 0
    shuffle: str = ""
    checksum: str = ""

    @classmethod
    def parse(cls, text: str) -> CodecChain:
        """Read a chain from its name, such as "shuffle+deflate:4" or "none"; the order of the parts does not matter.

        "deflate-4" is the same as "deflate:4". "blosc-lz4" includes Blosc's own shuffle of bytes, as everywhere in
        hyperslab; "blosc-lz4-noshuffle" does not, and "blosc-lz4-bitshuffle" shuffles bits.

        Raises
        ------
        UsageError
            There is no such codec.
        """
        found = {"codec": "", "shuffle": "", "checksum": ""}
        level, of_blosc = 0, None
        for part in text.replace(",", "+").split("+"):
            name, number, inner = _split(part.strip().lower())
            if name in NOTHING:
                continue
            kind = "codec" if name in CODECS else "shuffle" if name in ("shuffle", "bits") else "checksum"
            if name not in (*CODECS, *OTHERS) or found[kind]:
                known = ("none", *CODECS, *OTHERS)
                said = f"codec {text!r}: {part!r} is unknown or one too many{meant(name, known)}"
                raise UsageError(f"{said}; combine these by +: {', '.join(known)}")
            found[kind] = name
            if kind == "codec":
                level, of_blosc = _level(text, name, number), inner
        if found["codec"].startswith("blosc-"):
            found["shuffle"] = _shuffle_of_blosc(text, of_blosc, found["shuffle"])
        return cls(level=level, **found)

    def __str__(self) -> str:
        is_blosc = self.codec.startswith("blosc-")
        inner = BLOSC_SHUFFLES[self.shuffle] if is_blosc else ""
        level = f":{self.level}" if self.codec in DEFAULT_LEVELS else ""
        codec = "-".join(filter(None, (self.codec, inner))) + level
        return "+".join(filter(None, ("" if is_blosc else self.shuffle, codec, self.checksum))) or "none"

    def hdf5(self, width: int, chunk_nbytes: int) -> tuple[list[Filter], list[Step]]:
        """The filters of HDF5, and the steps of our encoder that make the same bytes.

        Raises
        ------
        Refused
            HDF5 has no such filter.
        """
        filters: list[Filter] = []
        name, _, inner = self.codec.partition("-")
        if self.shuffle == "shuffle" and name not in ("blosc", "bitshuffle"):
            filters.append((SHUFFLE, OPTIONAL, (width,)))
        if self.codec in ("deflate", "gzip"):
            filters.append((DEFLATE, OPTIONAL, (self.level,)))
        elif name == "blosc":
            shuffle = {"": 0, "shuffle": 1, "bits": 2}[self.shuffle]
            short = width if width <= MOST_BLOSC_WIDTH else 1
            values: tuple[int, ...] = (2, 2, short, chunk_nbytes, self.level, shuffle, BLOSC_NUMBERS[inner])
            filters.append((BLOSC, OPTIONAL, values))
        elif name == "bitshuffle":
            filters.append((BITSHUFFLE, OPTIONAL, (0, 4, width, 0, BITSHUFFLE_NUMBERS[inner][1], self.level)))
        elif self.codec:
            values = {"lzf": (4, 261, chunk_nbytes), "zstd": (self.level,), "lz4": (0,)}[self.codec]
            filters.append(({"lzf": LZF, "zstd": ZSTD, "lz4": LZ4}[self.codec], OPTIONAL, values))
        if self.checksum == "crc32c":
            raise Refused("HDF5 has no filter crc32c: use fletcher32")
        if self.checksum:
            filters.append((FLETCHER32, 0, ()))
        steps = hdf5_steps([(number, values) for number, _, values in filters])
        assert steps is not None
        return filters, steps

    def zarr2(self, width: int) -> tuple[list[dict[str, Any]] | None, dict[str, Any] | None, list[Step]]:
        """Zarr 2's filters and compressor, and the steps of our encoder.

        Raises
        ------
        Refused
            numcodecs has no such codec.
        """
        filters, last, steps = self._numcodecs(width)
        return filters or None, last, steps

    def zarr3(self, width: int) -> tuple[list[dict[str, Any]], list[Step]]:
        """Zarr 3's codecs after the one that makes bytes of elements, and the steps of our encoder.

        Raises
        ------
        Refused
            Zarr 3 has no such codec.
        """
        name = self.codec.partition("-")[0]
        if name in ("gzip", "deflate", "zstd", "blosc", "") and (self.shuffle == "" or name == "blosc"):
            codecs, steps = self._of_specification(name, width)
        else:
            filters, last, steps = self._numcodecs(width)
            listed = [*filters, *([last] if last else [])]
            codecs = [{"name": f"numcodecs.{one.pop('id')}", "configuration": one} for one in listed]
        if self.checksum == "crc32c":
            codecs, steps = [*codecs, {"name": "crc32c"}], [*steps, ("crc32c", [])]
        return codecs, steps

    def _of_specification(self, name: str, width: int) -> tuple[list[dict[str, Any]], list[Step]]:
        if self.checksum == "fletcher32":
            raise Refused("Zarr 3 has no codec fletcher32: use crc32c")
        if name in ("gzip", "deflate"):
            return [{"name": "gzip", "configuration": {"level": self.level}}], [("gzip", [self.level])]
        if name == "zstd":
            settings = {"level": self.level, "checksum": False}
            return [{"name": "zstd", "configuration": settings}], [("zstd", [self.level])]
        if name == "blosc":
            step = self._blosc(width)
            shuffle = {"": "noshuffle", "shuffle": "shuffle", "bits": "bitshuffle"}[self.shuffle]
            inner = self.codec.partition("-")[2]
            sizes = {"typesize": width, "blocksize": 0}
            config = {"cname": inner, "clevel": self.level, "shuffle": shuffle, **sizes}
            return [{"name": "blosc", "configuration": config}], [step]
        return [], []

    def _blosc(self, width: int) -> Step:
        shuffle = {"": 0, "shuffle": 1, "bits": 2}[self.shuffle]
        inner = self.codec.partition("-")[2]
        return "blosc", [BLOSC_NUMBERS[inner], of_zstd(inner, self.level), shuffle, width]

    def _numcodecs(self, width: int) -> tuple[list[dict[str, Any]], dict[str, Any] | None, list[Step]]:
        filters: list[dict[str, Any]] = []
        steps: list[Step] = []
        name, _, inner = self.codec.partition("-")
        if self.shuffle == "shuffle" and name != "blosc":
            filters.append({"id": "shuffle", "elementsize": width})
            steps.append(("shuffle", [width]))
        last: dict[str, Any] | None = None
        if name == "blosc":
            shuffle = {"": 0, "shuffle": 1, "bits": 2}[self.shuffle]
            last = {"id": "blosc", "cname": inner, "clevel": self.level, "shuffle": shuffle, "blocksize": 0}
            steps.append(self._blosc(width))
        elif name in ("deflate", "gzip", "zstd", "lz4"):
            level = {} if name == "lz4" else {"level": self.level}
            extra = {"acceleration": 1} if name == "lz4" else {}
            last = {"id": "zlib" if name == "deflate" else name, **level, **extra}
            steps.append((name, list(level.values())))
        elif name:
            raise Refused(f"Zarr has no codec {self.codec}: choose deflate, gzip, zstd, lz4 or blosc-...")
        if self.checksum:
            raise Refused(f"in Zarr 2, and beside shuffle in Zarr 3, we do not write {self.checksum}")
        return filters, last, steps


def _split(part: str) -> tuple[str, int | None, str | None]:
    """The name of a codec, its level after a colon or a hyphen, and how Blosc shuffles; None if it does not say."""
    found = re.fullmatch(r"(.+?)(?:[-:](\d+))?(?:-(noshuffle|bitshuffle))?(?:[-:](\d+))?", part)
    if found is None or (found[2] and found[4]) or (found[3] and not part.startswith("blosc-")):
        return part, None, None
    number = found[2] or found[4]
    return found[1], int(number) if number else None, found[3]


def _shuffle_of_blosc(text: str, inner: str | None, beside: str) -> str:
    """Blosc's shuffle, as its name says it or the word beside it; bytes if neither does."""
    said = {shuffle: name for name, shuffle in BLOSC_SHUFFLES.items()}[inner] if inner else None
    if said is not None and beside and said != beside:
        raise UsageError(f"codec {text!r}: {inner} and {beside} contradict each other")
    return (beside or "shuffle") if said is None else said


def needs(filters: Iterable[int], decodable: Iterable[int] = USUAL_FILTERS) -> str | None:
    """What a reader of HDF5 needs for some filters beside those that it can decode; None if nothing."""
    missing = [number for number in dict.fromkeys(filters) if number not in decodable]
    if not missing:
        return None
    names = ", ".join(FILTER_NAMES.get(number, f"filter {number}") for number in missing)
    library = "h5py" if missing == [LZF] else "hdf5plugin"
    return f"{library} or `hyperslab run` ({names})"


def _level(text: str, name: str, given: int | None) -> int:
    if name not in DEFAULT_LEVELS:
        if given is not None:
            raise UsageError(f"codec {text!r}: {name} has no levels")
        return 3 if name == "bitshuffle-zstd" else 0
    level = DEFAULT_LEVELS[name] if given is None else given
    if not 0 <= level <= MOST_LEVELS[name]:
        raise UsageError(f"codec {text!r}: the levels of {name} are 0 to {MOST_LEVELS[name]}")
    return level


def of_zstd(inner: str, level: int) -> int:
    """Blosc's level in terms of Zstandard's, as Blosc 1 translates it."""
    return {8: 20, 9: 22}.get(level, 2 * level - 1 if level else 1) if inner == "zstd" else level


def hdf5_steps(filters: Sequence[tuple[int, Sequence[int]]]) -> list[Step] | None:
    """The steps of our encoder for filters of HDF5, given by number and parameters; None if it lacks one of them."""
    steps = [_hdf5_step(number, list(values)) for number, values in filters]
    return None if None in steps else [step for step in steps if step is not None]


def _hdf5_step(number: int, values: list[int]) -> Step | None:
    simple = {DEFLATE: "deflate", SHUFFLE: "shuffle"}
    if number in simple and len(values) == 1:
        return simple[number], values
    if number == FLETCHER32:
        return "fletcher32", []
    if number == LZF:
        return "lzf", []
    if number == ZSTD:
        return "zstd", [values[0] if values else 3]
    if number == LZ4:
        return "lz4_hdf5", [values[0] if values else 0]
    if number == BLOSC and len(values) >= 7 and values[6] in BLOSC_NAMES and values[5] in (0, 1, 2):
        level = of_zstd("zstd", values[4]) if values[6] == BLOSC_NUMBERS["zstd"] else values[4]
        return "blosc", [values[6], level, values[5], values[2]]
    if number == BITSHUFFLE and len(values) >= 5 and values[3] == 0:
        inner = {theirs: ours for ours, theirs in BITSHUFFLE_NUMBERS.values()}.get(values[4])
        level = values[5] if len(values) > 5 else 3
        return None if inner is None else ("bitshuffle", [values[2], inner, level])
    return None


def chain_of(names: Sequence[str], filters: Sequence[tuple[int, Sequence[int]]] = ()) -> CodecChain:
    """The chain that comes nearest to the codecs of an array, which its parser names; levels only HDF5 records."""
    levels = {number: values[0] for number, values in filters if values}
    shuffle = "shuffle" if "shuffle" in names else ""
    if "blosc" in names or "blosc2" in names:
        values = next((list(values) for number, values in filters if number == BLOSC), [])
        inner = BLOSC_NAMES.get(values[6], "lz4") if len(values) > 6 else "lz4"
        bits = {0: "", 2: "bits"}.get(values[5], "shuffle") if len(values) > 5 else "shuffle"
        return CodecChain(f"blosc-{inner}", values[4] if len(values) > 4 else 5, bits)
    for name, number in (("deflate", DEFLATE), ("gzip", DEFLATE), ("zstd", ZSTD)):
        if name in names:
            level = levels.get(number, DEFAULT_LEVELS[name])
            return CodecChain(name, min(max(level, 0), MOST_LEVELS[name]), shuffle)
    if "bitshuffle" in names:
        return CodecChain("blosc-lz4", 5, "bits")
    if "lzf" in names or "lz4" in names:
        return CodecChain("lz4", 0, shuffle)
    if set(names) & {"szip", "nbit", "scaleoffset", "bzip2", "rice", "zfp"}:
        return CodecChain("zstd", 3, "shuffle")
    return CodecChain("", 0, shuffle)
