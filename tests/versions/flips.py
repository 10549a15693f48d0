"""Files of versions of all kinds in which one bit is flipped, and what each reader then sees."""

from __future__ import annotations

import faulthandler
import os
import pickle
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.versions.inspect import second_look, verify, witness
from hyperslab.versions.layout.fingerprints import type_text

LOADED = (second_look, verify)  # loaded before processes are forked, each of which would load them again
MOST_SECONDS = 15  # of processors: other programs may run too
MOST_NBYTES = 8 << 30  # beyond what is in use
COLOURS = h5py.enum_dtype({"red": 0, "green": 1, "blue": 5}, "i2")
RECORD = np.dtype([("place", "<f8", (3,)), ("name", "S5"), ("mass", ">i4")])


def isolated(work: Callable[..., Any], *arguments: Any) -> Any:
    """What some work returns in a process of its own; if it returns nothing, how the process ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # pytest's own would wait for libhdf5, which may never return
        signal.alarm(10 * MOST_SECONDS)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        for what, most in ((resource.RLIMIT_CPU, MOST_SECONDS), (resource.RLIMIT_AS, used + MOST_NBYTES)):
            resource.setrlimit(what, (most, resource.getrlimit(what)[1]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        warnings.simplefilter("ignore")
        faulthandler.disable()
        try:
            given = pickle.dumps(work(*arguments))
        except BaseException as error:  # of any kind
            given = pickle.dumps(("raised", type(error).__name__, str(error)))
        with os.fdopen(writing, "wb") as file:
            file.write(given)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        given = file.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(given) if given else ("ended", status)


def ask(path: str, names: Any) -> witness.Testimony:
    """What a hired witness does, in a process that need not import everything first."""
    given = isolated(witness.testify, path, names, lambda _: None)
    if isinstance(given, witness.Testimony):
        return given
    return witness.Testimony([(f"HDF5 cannot read the file: {given}", None, None)])


def later(answer: Callable[[str, Any], witness.Testimony]) -> Any:
    """In the place of `witness.hired`: answers when somebody waits for it."""
    return lambda: nullcontext(lambda path, names: partial(answer, path, names))


hired = later(ask)


def plain(path: Path) -> None:
    """Numbers, some of which change, grow, shrink and disappear."""
    rng = np.random.default_rng(1)
    with hs.VersionedFile(path, "w") as file:
        for number in range(8):
            with file.stage_version(f"v{number}", timestamp=np.datetime64(f"2024-01-0{number + 1}")) as version:
                if not number:
                    version.create_dataset("x", data=rng.normal(size=900), chunks=(64,))
                    version.create_dataset("deep/y", data=np.arange(360).reshape(20, 18), chunks=(8, 5))
                    version.create_dataset("deep/er/z", shape=(50,), dtype="f4", fillvalue=7.5, chunks=(9,))
                    version["x"].attrs.update(units="m", scale=2.5, valid=np.array([0, 9]))
                    version.attrs["made by"] = "a test"
                    continue
                version["x"][number * 30 : number * 30 + 5] = number
                version["deep/er/z"][number] = number
                version["deep/y"].resize((20 + number % 3, 18))
                version["x"].attrs["run"] = number


def kinds(path: Path) -> None:
    """Elements and attributes of all kinds."""
    words = np.array([f"word {number} é" * (number % 3) for number in range(23)], object)
    arrays = {
        "little": (np.arange(40, dtype="<i2"), {}),
        "big": (np.arange(40, dtype=">f8"), {}),
        "yes": (np.arange(40) % 3 == 0, {}),
        "colour": ((np.arange(40) % 2).astype("i2"), {"dtype": COLOURS}),
        "record": (np.zeros(17, RECORD), {}),
        "fixed": (np.array([b"ab", b"cde", b""] * 7, "S3"), {}),
        "words": (words, {"dtype": h5py.string_dtype()}),
        "complex": (np.arange(20) * (1 + 2j), {}),
    }
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("first") as version:
            for name, (data, options) in arrays.items():
                version.create_dataset(f"g/{name}", data=data, chunks=(8,), **options)
                version[f"g/{name}"].attrs["what"] = name
            version["g"].attrs.update(text="grün", number=np.int8(3), many=np.arange(6.0).reshape(2, 3), yes=True)
            version["g/record"].attrs.update(record=np.zeros((), RECORD), words=["a", "bc"], fixed=np.bytes_(b"xyz"))
        for number in range(3):
            with file.stage_version(f"next {number}") as version:
                version["g/words"][number * 5] = f"changed {number}"
                version["g/record"][number] = np.ones((), RECORD)
                version["g/yes"][number] = True
                version["g/big"][number * 9] = -1


def encoded(path: Path) -> None:
    """Chunks of every codec."""
    rng = np.random.default_rng(2)
    data = np.cumsum(rng.integers(-2, 3, 2000)).astype("<i4")
    options: dict[str, dict[str, Any]] = {
        "deflate": {"compression": "gzip", "compression_opts": 4, "shuffle": True, "fletcher32": True},
        "lzf": {"compression": "lzf"},
        "sum": {"fletcher32": True},
        "offset": {"scaleoffset": 0},
    }
    with hs.VersionedFile(path, "w") as file:
        for number in range(4):
            with file.stage_version(f"r{number}") as version:
                for name, codecs in options.items():
                    if not number:
                        version.create_dataset(name, data=data, chunks=(400,), **codecs)
                    version[name][number * 300] = number


def deleted(path: Path) -> None:
    """Versions with branches, some of them deleted, and an array that was stored in another way."""
    with hs.VersionedFile(path, "w") as file:
        for number in range(14):
            parent = None if number < 6 else f"release {number - 6}"
            with file.stage_version(f"release {number}", parent) as version:
                if not number:
                    version.create_dataset("a", data=np.arange(300), chunks=(20,))
                    version.create_dataset("b", data=np.arange(300) / 7, chunks=(30,), compression="gzip")
                    continue
                version["a"][number * 20] = -number
                version["b"][number] = number
        file.modify_metadata("b", chunks=(25,), fillvalue=3.0)
        file.delete_versions(["release 3", "release 8", "release 13"])
        file.delete_versions("release 6", repack=False)
        file.current_version = "release 11"


def latest(path: Path) -> None:
    """The newest structures of HDF5."""
    with h5py.File(path, "w", libver="latest") as h5:
        file = hs.VersionedFile(h5)
        for number in range(10):
            with file.stage_version(f"v{number}") as version:
                if not number:
                    version.create_dataset("x", data=np.arange(500.0), chunks=(50,), shuffle=True, compression="gzip")
                    version.create_dataset("w", data=np.array(["a", "b"] * 9, object), dtype=h5py.string_dtype())
                    version["x"].attrs.update({f"attribute {one}": one for one in range(10)})
                    continue
                version["x"][number * 40] = number
                version["w"][number] = f"w{number}"


FILES: tuple[Callable[[Path], None], ...] = (plain, kinds, encoded, deleted, latest)


def chunk_ranges(path: Path) -> list[tuple[int, int]]:
    """Where the chunks are in a file."""
    found: list[tuple[int, int]] = []
    with h5py.File(path) as file:

        def see(_: str, one: Any) -> None:
            if isinstance(one, h5py.Dataset) and one.chunks is not None:
                for number in range(one.id.get_num_chunks()):
                    info = one.id.get_chunk_info(number)
                    found.append((info.byte_offset, info.byte_offset + info.size))

        file["_version_data"].visititems(see)
    return found


def flips(path: Path, count: int, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Bytes and bits to flip: half of them anywhere, half outside chunks."""
    length = path.stat().st_size
    is_chunk = np.zeros(length, bool)
    for start, stop in chunk_ranges(path):
        is_chunk[start:stop] = True
    outside = np.flatnonzero(~is_chunk)
    for number in range(count):
        place = rng.integers(length) if number % 2 else outside[rng.integers(len(outside))]
        yield int(place), int(rng.integers(8))


# --------------------------------------------------------------------------------------------------- three readers


def seen_by_us(path: str) -> Any:
    """What hyperslab shows of a file of versions."""
    with hs.VersionedFile(path, chunk_cache_nbytes=0) as file:
        table = [(one.name, one.parent, one.time) for one in file.table.values()]
        return file.current_version, table, {name: dict(_of_us(file[name], "")) for name in file}


def _of_us(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    yield prefix, {name: kept(value) for name, value in group.attrs.items()}
    for name in group:
        child = group[name]
        if isinstance(child, hs.Group):
            yield from _of_us(child, f"{prefix}{name}/")
        else:
            attributes = {key: kept(value) for key, value in child.attrs.items()}
            yield f"{prefix}{name}", (child.shape, type_text(child.dtype), kept(child[...]), attributes)


def seen_by_h5py(path: str) -> Any:
    """What h5py shows of the versions of a file, including the attributes that versioned-hdf5 reads."""
    with h5py.File(path) as file:
        versions = file["_version_data/versions"]
        said = {name: kept(value) for name, value in versions.attrs.items()}
        return said, {name: dict(_of_h5py(versions[name], "")) for name in versions if name != "__first_version__"}


def _of_h5py(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    yield prefix, {name: kept(value) for name, value in group.attrs.items()}
    for name in group:
        child = group[name]
        if isinstance(child, h5py.Group):
            yield from _of_h5py(child, f"{prefix}{name}/")
        else:
            attributes = {key: kept(value) for key, value in child.attrs.items()}
            form = (child.shape, child.maxshape, type_text(child.dtype), kept(child.fillvalue), child.is_virtual)
            yield f"{prefix}{name}", (form, kept(child[()]), attributes)


def seen_by_versioned_hdf5(path: str) -> Any:
    """What versioned-hdf5 shows."""
    with h5py.File(path) as h5:
        file = VersionedHDF5File(h5)
        found = {}
        for name in file.versions:
            version = file[name]
            arrays: dict[str, Any] = {}

            def see(path: str, one: Any, arrays: dict[str, Any] = arrays) -> None:
                if hasattr(one, "dtype"):
                    attributes = {key: kept(value) for key, value in one.attrs.items()}
                    arrays[path] = (one.shape, type_text(one.dtype), one.chunks, kept(one[()]), attributes)

            version.visititems(see)
            found[name] = arrays
        return file.current_version, sorted(file.versions), found


READERS = (seen_by_us, seen_by_h5py, seen_by_versioned_hdf5)


def kept(value: Any) -> Any:
    """A value in a form that can be compared and pickled."""
    if isinstance(value, h5py.Empty):
        return "empty"
    array = np.asarray(value)
    if array.dtype.hasobject:
        return array.shape, [one.encode() if isinstance(one, str) else one for one in array.reshape(-1).tolist()]
    return array.shape, type_text(array.dtype), array.tobytes()
