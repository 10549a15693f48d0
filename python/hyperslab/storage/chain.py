"""`CodecChain`: the steps between elements and stored bytes, in the words of people, HDF5, Zarr and our encoder."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from hyperslab.errors import Refused, UsageError
from hyperslab.meant import meant_or_choose
from hyperslab.storage.table import (
    FIRST_PLUGIN,
    NAMES_OF_SHUFFLES,
    TABLE,
    KnownCodec,
    filter_name,
    filters_of_hdf5,
    known,
    known_codecs,
)

# A step of our encoders: its name and parameters, as `_core.encode_chunks` takes them.
Step: TypeAlias = tuple[str, list[int]]
# A filter of HDF5: its number, its flags and its parameters.
Filter: TypeAlias = tuple[int, int, tuple[int, ...]]

OPTIONAL = 1
NOTHING = ("none", "no codec", "uncompressed")
# What every libhdf5 has, though szip only where it was built in.
USUAL_FILTERS = frozenset(row.hdf5 for row in TABLE if row.hdf5 is not None and row.hdf5 < FIRST_PLUGIN)
KINDS = ("shuffle", "compressor", "checksum")
SHUFFLES = {name: number for number, name in NAMES_OF_SHUFFLES.items()}
BITS = "bits"  # beside Blosc, the same as bitshuffle in its name
UNKNOWN = re.compile(r"hdf5-filter-\d+")
_PART = re.compile(r"(.+?)(?:[-:](\d+))?(?:-(noshuffle|bitshuffle|autoshuffle))?(?:[-:](\d+))?")


@dataclass(frozen=True)
class Codec:
    """One step of a chain: `deflate`, `zstd`, `blosc-zstd`, `shuffle`, …, and its level; None if nobody said it.

    `blosc-*` codecs include Blosc's own byte shuffle; `blosc-zstd-noshuffle` does not, and `blosc-zstd-bitshuffle`
    shuffles bits.
    """

    name: str
    level: int | None = None

    @classmethod
    def parse(cls, text: str) -> Codec:
        """Read one step, whose name may be unknown: `deflate:4` (or `deflate-4`) -> Codec("deflate", 4).

        Raises
        ------
        UsageError
            What follows the colon is no level.
        """
        plain = text.strip().lower()
        matched = None if UNKNOWN.fullmatch(plain) else _PART.fullmatch(plain)
        if ":" in plain and (matched is None or ":" in matched[1] or (matched[2] and matched[4])):
            raise UsageError(f"codec {text!r}: the part after ':' must be a level, an integer; for example deflate:4")
        if matched is None or (matched[2] and matched[4]) or (matched[3] and not plain.startswith("blosc-")):
            return cls(plain)
        number = matched[2] or matched[4]
        return cls("-".join(filter(None, (matched[1], matched[3]))), int(number) if number else None)

    def __str__(self) -> str:
        return self.name if self.level is None else f"{self.name}:{self.level}"

    @property
    def known(self) -> KnownCodec | None:
        """Its line of the table."""
        return known(self.name)

    @property
    def plain_name(self) -> str:
        """The name without Blosc's shuffle."""
        return self.name if self.known is None else self.known.name

    @property
    def kind(self) -> str:
        """Whether it shuffles, makes chunks smaller, or adds a checksum."""
        return "compressor" if self.known is None else self.known.kind

    @property
    def inner_shuffle(self) -> int:
        """How Blosc shuffles: its number; 0 for other codecs."""
        if self.known is None or not self.known.is_blosc:
            return 0
        return SHUFFLES.get(self.name.removeprefix(self.known.name)[1:], 1)

    def hdf5(self, width: int = 0, chunk_nbytes: int = 0) -> tuple[Filter, Step]:
        """HDF5's filter, and the step of our encoder that makes the same bytes.

        Raises
        ------
        Refused
            HDF5 has no such filter, or we do not write it.
        """
        row = self.known
        if row is not None and row.parameters is None and row.same_as is not None:
            row = known(row.same_as)
        if row is None or row.hdf5 is None:
            raise Refused(f"HDF5 has no filter {self.name}{': use fletcher32' if self.kind == 'checksum' else ''}")
        words = row.words(self.level, width, chunk_nbytes, self.inner_shuffle)
        step = row.encoder_step(words)
        if row.parameters is None or step is None:
            raise Refused(f"we do not write {self.name}: choose {_listed(row.name for row in TABLE if row.parameters)}")
        return (row.hdf5, 0 if row.kind == "checksum" else OPTIONAL, row.values(words)), step

    def zarr2(self, width: int) -> tuple[dict[str, Any], Step | None]:
        """numcodecs' configuration, and the step of our encoder; None if we have none.

        Raises
        ------
        Refused
            numcodecs has no such codec.
        """
        row = self.known
        if row is None or row.numcodecs is None:
            raise Refused(f"Zarr has no codec {self.name}: choose deflate, gzip, zstd, lz4 or blosc-...")
        words = row.words(self.level, width, 0, self.inner_shuffle)
        name, settings = row.settings(row.numcodecs, words)
        return {"id": name, **settings}, row.encoder_step(words, in_zarr=True)

    def zarr3(self, width: int) -> tuple[dict[str, Any], Step | None]:
        """Zarr 3's description, and the step of our encoder; None if we have none.

        Raises
        ------
        Refused
            Zarr 3 has no such codec.
        """
        row = self.known
        if row is not None and row.zarr3 is None and row.same_as is not None:
            row = known(row.same_as)
        if row is None or row.zarr3 is None:
            settings, step = self.zarr2(width)
            return {"name": f"numcodecs.{settings.pop('id')}", "configuration": settings}, step
        words = row.words(self.level, width, 0, self.inner_shuffle)
        name, settings = row.settings(row.zarr3, words)
        described = {"name": name, "configuration": settings} if settings else {"name": name}
        return described, row.encoder_step(words, in_zarr=True)

    def encoder_step(self, width: int) -> Step | None:
        """The step of our encoder in Zarr; None if we have none."""
        if self.known is None or self.inner_shuffle < 0:
            return None
        return self.known.encoder_step(self.known.words(self.level, width, 0, self.inner_shuffle), in_zarr=True)

    @classmethod
    def of_hdf5(cls, number: int, values: Sequence[int]) -> Codec:
        """The codec of a filter in a file."""
        rows = [row for row in filters_of_hdf5(number) if row.inner is None or _has_inner(row, values)]
        row = rows[-1] if rows else None
        if row is None or (row.parameters is None and not row.is_blosc):
            return cls(filter_name(number))
        place = _places(row).get("level")
        level = values[place] if row.most is not None and place is not None and place < len(values) else None
        if not row.is_blosc:
            return cls(row.name, level)
        return _blosc(row.name, int(values[_places(row)["shuffle"]]), level)

    @classmethod
    def of_zarr(cls, name: str, settings: Mapping[str, Any]) -> Codec:
        """The codec of numcodecs' or Zarr 3's name and settings. One that we do not know keeps its own name."""
        if name == "blosc" and isinstance(settings.get("cname"), str):
            shuffle = settings.get("shuffle", 1)
            return _blosc(f"blosc-{settings['cname']}", SHUFFLES.get(shuffle, shuffle), settings.get("clevel"))
        row = next((row for row in TABLE if (row.numcodecs or "").partition(" ")[0] == name), None)
        of_level = re.search(r"(\w+)=level", (row and row.numcodecs) or "")
        level = settings.get("level", settings.get(of_level[1]) if of_level else None)
        return cls(name if row is None else row.name, level if isinstance(level, int) else None)


class CodecChain(tuple[Codec, ...]):
    """The codecs of an array in the order of encoding. As text: `shuffle+deflate:4`, `none`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> CodecChain:
        """Read a chain. The order of the parts does not matter: a shuffle comes first, a checksum last.

        `deflate-4` is the same as `deflate:4`, `,` the same as `+`, and `no codec` the same as `none`. Blosc shuffles
        bytes by itself, as in its own libraries, so a shuffle beside it says nothing new; `bits` beside it is the same
        as `-bitshuffle` in its name. Without a level, the level is the default of whoever writes.

        Raises
        ------
        UsageError
            There is no such codec.
        """
        codecs: dict[str, Codec] = {}
        beside = ""
        for part in text.replace(",", "+").split("+"):
            if part.strip().lower() in NOTHING:
                continue
            codec = Codec.parse(part)
            if codec.name == BITS and not beside:
                beside = BITS
                continue
            _check(text, part, codec, codecs)
            codecs[codec.kind] = codec
        return cls(_with_blosc(text, codecs, beside))

    @classmethod
    def read(cls, text: str | None) -> CodecChain:
        """The chain of a text that a file or a program gave; a name that nobody knows stays as it is."""
        try:
            return cls.parse(text or "none")
        except UsageError:
            return cls(Codec.parse(part) for part in str(text).split("+"))

    def __str__(self) -> str:
        return "+".join(map(str, self)) or NOTHING[0]

    def __repr__(self) -> str:
        return f"CodecChain.read({str(self)!r})"

    @property
    def text(self) -> str:
        """The chain in a sentence, where `none` would say none of what."""
        return str(self) if self else NOTHING[1]

    @property
    def codec(self) -> Codec | None:
        """The codec that makes chunks smaller, and that takes the time."""
        return next((one for one in reversed(self) if one.kind == "compressor"), None)

    @property
    def codec_text(self) -> str | None:
        """The same as text, or that of the last step if nothing makes chunks smaller; None without any."""
        return str(self.without_shuffle) if self else None

    @property
    def without_shuffle(self) -> CodecChain:
        """What the cost model counts: the codec that takes the time, or the last step if there is none."""
        return CodecChain([self.codec or self[-1]] if self else [])

    @property
    def shuffle(self) -> str:
        """How elements are shuffled: "", "shuffle" (bytes of equal significance together) or "bits"."""
        inner = 0 if self.codec is None else self.codec.inner_shuffle
        return BITS if inner == 2 else "shuffle" if inner == 1 or Codec("shuffle") in self else ""

    @property
    def is_in_zarr(self) -> bool:
        """Whether zarr-python has all its codecs, in either version of the format."""
        return all(one.known is not None and one.known.is_in_zarr for one in self)

    @property
    def with_levels(self) -> CodecChain:
        """The same with our level where nobody said one."""
        return CodecChain(
            replace(one, level=one.known.level) if one.level is None and one.known and one.known.most else one
            for one in self
        )

    def named_in(self, names: Collection[str]) -> CodecChain:
        """The same, by the names of a format: Zarr's gzip is HDF5's deflate, the same stream in another frame."""
        others = [one.known.same_as if one.known else None for one in self]
        return CodecChain(
            one if one.name in names or other is None or other not in names else replace(one, name=other)
            for one, other in zip(self, others, strict=True)
        )

    def check_written(self) -> None:
        """Refuse a codec that we only read.

        Raises
        ------
        UsageError
            The chain has such a codec.
        """
        for one in self:
            if one.known is None or one.known.step is None:
                names = _listed(["none", *(row.name for row in TABLE if row.step is not None)])
                raise UsageError(f"codec {one.name!r}: we read it, but do not write it; combine these by +: {names}")

    def hdf5(self, width: int, chunk_nbytes: int) -> tuple[list[Filter], list[Step]]:
        """The filters of HDF5, and the steps of our encoder that make the same bytes.

        Raises
        ------
        Refused
            HDF5 has no such filter.
        """
        listed = [one for one in self if not (one.kind == "shuffle" and self._shuffles_inside)]
        made = [one.hdf5(width, chunk_nbytes) for one in listed]
        return [given for given, _ in made], [step for _, step in made]

    @property
    def _shuffles_inside(self) -> bool:
        return self.codec is not None and self.codec.name.startswith("bitshuffle")

    def zarr2(self, width: int) -> tuple[list[dict[str, Any]] | None, dict[str, Any] | None, list[Step]]:
        """Zarr 2's filters and compressor, and the steps of our encoder.

        Raises
        ------
        Refused
            numcodecs has no such codec.
        """
        before, last, steps = [], None, []
        for one in self:
            if one.kind == "checksum":
                raise Refused(f"in Zarr 2, we do not write {one.name}")
            settings, step = one.zarr2(width)
            steps.append(self._written(one, step))
            if one.kind == "compressor":
                last = settings
            else:
                before.append(settings)
        return before or None, last, steps

    def zarr3(self, width: int) -> tuple[list[dict[str, Any]], list[Step]]:
        """Zarr 3's codecs after the one that makes bytes of elements, and the steps of our encoder.

        Raises
        ------
        Refused
            Zarr 3 has no such codec.
        """
        described_codecs: list[dict[str, Any]] = []
        steps: list[Step] = []
        is_extension = any(one.kind == "shuffle" for one in self)
        for one in self:
            if one.name == "fletcher32":
                raise Refused("Zarr 3 has no codec fletcher32: use crc32c")
            if one.kind == "checksum" and any(each["name"].startswith("numcodecs.") for each in described_codecs):
                raise Refused(f"beside shuffle or lz4 in Zarr 3, we do not write {one.name}")
            if is_extension and one.kind == "compressor":  # numcodecs decodes both, if it encodes both
                settings, step = one.zarr2(width)
                described = {"name": f"numcodecs.{settings.pop('id')}", "configuration": settings}
            else:
                described, step = one.zarr3(width)
            described_codecs.append(described)
            steps.append(self._written(one, step))
        return described_codecs, steps

    @staticmethod
    def _written(one: Codec, step: Step | None) -> Step:
        if step is None:
            raise Refused(f"we do not write {one.name} in Zarr: choose deflate, gzip, zstd, lz4 or blosc-...")
        return step

    def h5repack(self) -> list[str] | None:
        """The filters in the words of h5repack; None if it lacks one of them."""
        spelled = []
        for one in self:
            if one.known is None or one.known.h5repack is None:
                return None
            spelled.append(one.known.h5repack.format(level=one.known.level if one.level is None else one.level))
        return spelled or ["NONE"]

    @classmethod
    def nearest(cls, names: Sequence[str], filters: Iterable[tuple[int, Sequence[int]]] = ()) -> CodecChain:
        """The chain to write that comes nearest to the codecs of an array, which its parser names.

        Only HDF5 records levels.
        """
        shuffle = [Codec("shuffle")] if "shuffle" in names else []
        levels = {codec.plain_name: codec for codec in (Codec.of_hdf5(*each) for each in filters)}
        blosc = next((one for one in levels.values() if one.known and one.known.is_blosc), None)
        for name in names:
            row = known(name)
            if row is None or row.kind != "compressor":
                continue
            if name in ("blosc", "blosc2") and blosc is not None and blosc.known is not None:
                inner = blosc.name if blosc.known.step else blosc.name.replace(blosc.known.name, "blosc-lz4")
                return cls([Codec(inner, blosc.level)])
            if row.most is not None and row.step is not None:
                level = levels[name].level if name in levels else None
                return cls([*shuffle, Codec(name, min(max(level, 0), row.most) if level is not None else row.level)])
            like = cls.parse(row.like)
            return like if like[0].kind == "shuffle" or like[0].inner_shuffle else cls([*shuffle, *like])
        return cls(shuffle)


PLAIN = CodecChain()


def hdf5_steps(filters: Sequence[tuple[int, Sequence[int]]]) -> list[Step] | None:
    """The steps of our encoder for filters of HDF5, given by number and parameters; None if it lacks one of them."""
    steps: list[Step] = []
    for number, values in filters:
        rows = [row for row in filters_of_hdf5(number) if row.inner is None or _has_inner(row, values)]
        words = rows[-1].read(values) if rows else None
        step = None if words is None or words["shuffle"] not in (0, 1, 2) else rows[-1].encoder_step(words)
        if step is None:
            return None
        steps.append(step)
    return steps


def needs(filters: Iterable[int], decodable: Iterable[int] = USUAL_FILTERS) -> str | None:
    """What a reader of HDF5 needs for some filters beside those that it can decode; None if nothing."""
    missing = [number for number in dict.fromkeys(filters) if number not in decodable]
    if not missing:
        return None
    names = ", ".join(filter_name(number).replace("hdf5-filter-", "filter ") for number in missing)
    libraries = {row.needs for number in missing for row in filters_of_hdf5(number)}
    return f"{'h5py' if libraries == {'h5py'} else 'hdf5plugin'} or `hyperslab run` ({names})"


def _places(row: KnownCodec) -> dict[str, int]:
    """Where a filter's parameters say what; Blosc's are those of its first line that we write."""
    words = row.parameters or next(other.parameters for other in TABLE if other.is_blosc and other.parameters) or ""
    return {word.rstrip("?"): index for index, word in enumerate(words.split())}


def _has_inner(row: KnownCodec, values: Sequence[int]) -> bool:
    place = _places(row)["inner"]
    return row.inner is not None and len(values) > place and values[place] == row.inner[0]


def _blosc(name: str, shuffle: Any, level: Any) -> Codec:
    said = NAMES_OF_SHUFFLES.get(shuffle, "")
    return Codec(name if said in ("", "shuffle") else f"{name}-{said}", level if isinstance(level, int) else None)


def _check(text: str, part: str, codec: Codec, before: Mapping[str, Codec]) -> None:
    if UNKNOWN.fullmatch(codec.name):
        return
    row = codec.known
    if row is None:
        names = sorted(known_codecs())
        raise UsageError(f"codec {part.strip()!r} is unknown{meant_or_choose(codec.plain_name, names)}")
    if codec.kind in before:
        raise UsageError(f"codec {text!r}: {part!r} is one too many: it has {before[codec.kind]}")
    if codec.level is None:
        return
    if row.most is None:
        raise UsageError(f"codec {text!r}: {row.name} has no levels")
    if codec.level > row.most:
        raise UsageError(f"codec {text!r}: the levels of {row.name} are 0 to {row.most}")


def _with_blosc(text: str, codecs: Mapping[str, Codec], bits: str) -> list[Codec]:
    """The codecs in order, with what stands beside Blosc put into it."""
    codec, beside = codecs.get("compressor"), bits or ("shuffle" if "shuffle" in codecs else "")
    if codec is None or codec.known is None or not codec.known.is_blosc:
        if bits:
            raise UsageError(f"codec {text!r}: bits are shuffled inside Blosc only: write blosc-lz4-bitshuffle")
        return [codecs[kind] for kind in KINDS if kind in codecs]
    inner = codec.name.removeprefix(codec.known.name)[1:]
    if inner and beside and inner != {BITS: "bitshuffle"}.get(beside, beside):
        raise UsageError(f"codec {text!r}: {inner} and {beside} contradict each other")
    if beside == BITS:
        codec = replace(codec, name=f"{codec.known.name}-bitshuffle")
    return [codec, *([codecs["checksum"]] if "checksum" in codecs else [])]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
