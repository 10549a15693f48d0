"""The codecs that a layout may name, and those that a library has."""

from __future__ import annotations

from hyperslab.errors import UsageError
from hyperslab.formats import make_format
from hyperslab.formats.contract import Codec
from hyperslab.meant import meant_or_choose

# Libraries read these as well, although none of our formats writes them.
READABLE = frozenset(
    ["bitshuffle", "blosc", "blosc2", "bzip2", "fletcher32", "gzip", "lz4", "nbit", "scaleoffset", "szip", "zfp"]
)
ONLY_HDF5 = frozenset(["nbit", "szip", "zfp"])
_FORMATS = ("hdf5", "zarr2", "zarr3")


def known_codecs() -> frozenset[str]:
    """Every codec that some library has."""
    return READABLE.union(*(make_format(name).capabilities.codecs for name in _FORMATS))


def check_codec(text: str) -> None:
    """Refuse a codec that no library has.

    Raises
    ------
    UsageError
        The codec is unknown. The message names the known ones.
    """
    known = known_codecs()
    name = Codec.parse(text).name
    if name not in known:
        raise UsageError(f"codec {text!r} is unknown{meant_or_choose(name, sorted(known))}")


def zarr_has(text: str) -> bool:
    """Whether zarr-python has a codec of this name, in either version of the format."""
    name = Codec.parse(text).name
    if name.startswith("blosc") or name in READABLE - ONLY_HDF5:
        return True
    return any(name in make_format(each).capabilities.codecs for each in _FORMATS[1:])
