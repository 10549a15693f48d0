"""The call of another tool that does about the same as a conversion, where there is one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from hyperslab.conversion.wishes import ArrayWish, Wish


def equivalents(source: str, target: str, source_format: str, target_format: str, wish: Wish) -> list[str]:
    """Calls of h5repack, nccopy or rechunker.

    Parameters
    ----------
    source, target : str
        The paths.
    source_format, target_format : str
        The formats; the source's as `Group.format` names it.
    wish : Wish
        The wanted chunks and codecs.
    """
    if any(-1 in lengths for lengths in _lengths(wish)):
        return []  # -1 is our word for the whole axis
    calls = []
    is_hdf5 = source_format == "hdf5" and target_format in ("hdf5", "netcdf4")
    if is_hdf5 and "://" not in source:
        call = _h5repack(source, target, wish)
        calls += [call] if call else []
    if target_format == "netcdf4" and source_format in ("hdf5", "netcdf3", "dmrpp"):
        call = _nccopy(source, target, wish)
        calls += [call] if call else []
    if source_format == "zarr" and target_format in ("zarr2", "zarr3") and wish.every.chunks is not None:
        chunks = dict(wish.every.chunks) if isinstance(wish.every.chunks, Mapping) else list(wish.every.chunks)
        calls.append(f"rechunker.rechunk(zarr.open({source!r}), {chunks!r}, '8GB', {target!r}, temp_store='temp.zarr')")
    return calls


def _lengths(wish: Wish) -> list[list[int]]:
    wanted = [one.chunks for one in (wish.every, *wish.arrays.values()) if one.chunks is not None]
    return [list(one.values() if isinstance(one, Mapping) else one) for one in wanted]


def _h5repack(source: str, target: str, wish: Wish) -> str | None:
    parts = ["h5repack"]
    wishes = {"": wish.every, **wish.arrays}
    for path, one in wishes.items():
        prefix = f"{path}:" if path else ""
        if isinstance(one.chunks, Mapping):
            return None  # h5repack does not know the names of dimensions
        if one.is_contiguous:
            parts += ["-l", f"{prefix}CONTI"]
        if one.chunks is not None:
            parts += ["-l", f"{prefix}CHUNK={'x'.join(map(str, one.chunks))}"]
        if one.codec is not None:
            filters = one.codec.h5repack()
            if filters is None:
                return None
            for each in filters:
                parts += ["-f", f"{prefix}{each}"]
    return shlex.join([*parts, source, target])


def _nccopy(source: str, target: str, wish: Wish) -> str | None:
    parts = ["nccopy", "-k", "nc4"]
    one: ArrayWish = wish.every
    if any(each.is_contiguous for each in (one, *wish.arrays.values())):
        return None
    if one.codec is not None:
        deflate = one.codec.with_levels.codec
        if {codec.name for codec in one.codec} - {"shuffle", "deflate"}:
            return None
        parts += [*(["-s"] if one.codec.shuffle else []), "-d", str(deflate.level if deflate else 0)]
    if one.chunks is not None and not isinstance(one.chunks, Mapping):
        return None  # nccopy knows dimensions by name only
    if isinstance(one.chunks, Mapping):
        parts += ["-c", ",".join(f"{name}/{length}" for name, length in one.chunks.items())]
    for path, own in wish.arrays.items():
        if own.codec is not None or own.chunks is None or isinstance(own.chunks, Mapping):
            return None
        parts += ["-c", f"{path}:{','.join(map(str, own.chunks))}"]
    return shlex.join([*parts, source, target])
