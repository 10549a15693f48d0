"""The commands that remedy faults. Every command that an audit names is made here, and nowhere else."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from hyperslab.conversion.suffixes import SUFFIXES
from hyperslab.errors import printable

PLAIN_CODEC = "shuffle+deflate:4"
# What the better file is named if `convert` does not know the suffix, or takes it for another format; otherwise `.nc`.
NEW_SUFFIXES = {"hdf5": ".h5", "zarr": ".zarr"}


def commands(
    name: str,
    *,
    format: str = "hdf5",
    purpose: str | None = None,
    chunks: Mapping[str, Sequence[int]] | None = None,
    relayout: bool = False,
    plain_codec: bool = False,
) -> tuple[str, ...]:
    """The command for one file; none if it needs nothing. New files have their metadata in front in any case.

    Parameters
    ----------
    name : str
        The file.
    format : str
        How it is stored.
    purpose : str | None
        A purpose of `convert --for` that needs all of this and nothing else, or that was required.
    chunks : Mapping[str, Sequence[int]] | None
        Chunk shapes by array.
    relayout : bool
        Whether the metadata have to come to the front.
    plain_codec : bool
        Whether a codec is needed that every HDF5 has.
    """
    options = [f"--for {purpose}"] if purpose else _options(chunks or {}, relayout=relayout, plain_codec=plain_codec)
    if not options:
        return ()
    target = _beside(name, "netcdf4" if purpose and format == "zarr" else format)
    return (f"hyperslab convert {_file(name)} {_file(target)} {' '.join(options)}",)


def _options(chunks: Mapping[str, Sequence[int]], *, relayout: bool, plain_codec: bool) -> list[str]:
    wishes = [f"{array}:{','.join(map(str, shape))}" for array, shape in chunks.items()]
    options = [f"--chunks {_quoted(wish)}" for wish in wishes]
    options += [f"--codec {PLAIN_CODEC}"] if plain_codec else []
    return options or (["--relayout"] if relayout else [])


def check(name: str) -> tuple[str, ...]:
    """The command that finds out what is wrong with a file that cannot be read."""
    return (f"hyperslab verify {_file(name)}",)


def _beside(name: str, format: str) -> str:
    """The name of the better file, beside a local file, and here for a URL. Its suffix says the format to `convert`."""
    path = PurePosixPath(name.partition("?")[0].rpartition("/")[2] if "://" in name else name)
    meant = SUFFIXES.get(path.suffix.lower())
    is_kept = meant is not None and meant.startswith("zarr") == (format == "zarr")
    suffix = path.suffix if is_kept else NEW_SUFFIXES.get(format, ".nc")
    return str(path.with_name(f"{path.stem}-better{suffix}")) if path.name else f"better{suffix}"


def _file(name: str) -> str:
    """The name of a file as a word, which no command takes for an option."""
    return _quoted(f"./{name}" if name.startswith("-") else name)


def _quoted(text: str) -> str:
    """A word of a shell's line; control characters in a form that a shell reads back."""
    if printable(text) == text:
        return shlex.quote(text)
    return "$'" + "".join(_ansi(one) for one in text) + "'"


def _ansi(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if printable(character) == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
