"""Whatever array is drawn, there is advice that `convert` accepts, or a sentence that says why there is none."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab as hs
from hyperslab.advise.advising import advise
from hyperslab.advise.asking import ask
from hyperslab.advise.formats import encodings_of
from hyperslab.advise.limits import Limits
from hyperslab.advise.results import ArrayAdvice, Option
from hyperslab.conversion.advice import AdviceFile
from hyperslab.errors import Refused, UsageError
from hyperslab.model.codec_sample import MeasuredCodec
from hyperslab.model.costs import CodecRate
from hyperslab.model.store_profile import StoreProfile
from hyperslab.storage.chain import PLAIN

h5py = pytest.importorskip("h5py")
netcdf = pytest.importorskip("netCDF4")
zarr = pytest.importorskip("zarr")

Random = np.random.Generator
FEW_CALLS = 3
# Of the rows that may be advised, by format.
TRIED = 2 if os.environ.get("HYPERSLAB_DRAWS") == "new" else 1
COMPOUND = np.dtype([("a", "<f4"), ("b", ">i2"), ("c", "S3")])
NUMBERS = ["<f4", ">f8", "<i2", ">i4", "u1", "<u8", "<i8", "<f8"]
WORDS = ["everything", "rows", "columns", "boxes", "points", "random batches", "appends", "rows and columns 2"]
CODECS: list[dict[str, Any]] = [{}, {}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True},
                                {"compression": "lzf"}, {"compression": "gzip", "fletcher32": True}]  # fmt: skip


def drawn_shape(random: Random, most: int = 5) -> tuple[int, ...]:
    if random.random() < 0.05:
        return ()
    shape = random.integers(1, [24, 12, 9, 5, 3][: random.integers(1, most + 1)]).tolist()
    if random.random() < 0.05:
        shape[random.integers(len(shape))] = 0
    return tuple(shape)


def drawn_chunks(random: Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(random.integers(max(1, length // 4), max(2, length + 1))) for length in shape)


def elements(random: Random, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    numbers = random.integers(0, 90, shape)
    if np.dtype(dtype) == COMPOUND:
        made = np.zeros(shape, COMPOUND)
        made["a"], made["b"], made["c"] = numbers, numbers, b"xy"
        return made
    return numbers.astype(dtype)


def in_hdf5(path: Path, random: Random, count: int) -> list[str]:
    dtypes = [*NUMBERS, "?", "<c8", ">c16", "S5", "<f2", COMPOUND, h5py.string_dtype(), h5py.vlen_dtype("i4"),
              h5py.enum_dtype({"NO": 0, "YES": 1}, "i1")]  # fmt: skip
    with h5py.File(path, "w") as file:
        for place in range(count):
            shape, dtype, name = drawn_shape(random), dtypes[random.integers(len(dtypes))], f"g{place % 7}/a{place}"
            options: dict[str, Any] = {}
            if shape and 0 not in shape and random.random() < 0.8:
                options = {"chunks": drawn_chunks(random, shape), **CODECS[random.integers(len(CODECS))]}
                if random.random() < 0.4:
                    options["maxshape"] = tuple(None if random.random() < 0.5 else length for length in shape)
            is_variable = dtype is not COMPOUND and np.dtype(dtype).kind == "O"
            if not is_variable and np.dtype(dtype).kind in "iuf" and random.random() < 0.3:
                options["fillvalue"] = 7
            made = file.create_dataset(name, shape, dtype, **options)
            if not is_variable and 0 not in shape and random.random() < 0.9:
                made[...] = elements(random, shape, dtype)
    return [f"/g{place % 7}/a{place}" for place in range(count)]


def in_netcdf(path: Path, random: Random, count: int) -> list[str]:
    lengths = {"time": 21, "lat": 13, "lon": 17, "level": 3}
    with netcdf.Dataset(path, "w") as file:
        for name, length in lengths.items():
            file.createDimension(name, None if name == "time" else length)
        for place in range(count):
            dims = tuple(name for name in lengths if random.random() < 0.6)
            options: dict[str, Any] = {}
            shape = tuple(lengths[name] for name in dims)
            if dims and random.random() < 0.7:
                options = {"chunksizes": drawn_chunks(random, shape), "zlib": bool(random.random() < 0.6)}
            dtype = NUMBERS[random.integers(len(NUMBERS))]
            made = file.createVariable(f"v{place}", dtype, dims, fill_value=[None, False][place % 2], **options)
            if random.random() < 0.3:
                made.units = "days since 2000-01-01"
            made[...] = elements(random, shape, dtype)
    return [f"/v{place}" for place in range(count)]


def in_zarr(version: Any) -> Callable[[Path, Random, int], list[str]]:
    def make(path: Path, random: Random, count: int) -> list[str]:
        group = zarr.open_group(path, mode="w", zarr_format=version)
        dtypes = [*NUMBERS, "?", "<c8", "<f2", "<M8[s]"]
        for place in range(count):
            shape, dtype = drawn_shape(random, 4), dtypes[random.integers(len(dtypes))]
            chunks = drawn_chunks(random, shape)
            shards = tuple(2 * length for length in chunks) if version == 3 and random.random() < 0.3 else None
            made = group.create_array(f"a{place}", shape=shape, chunks=chunks or "auto", dtype=dtype,
                                      **({"shards": shards} if shards else {}))  # fmt: skip
            if 0 not in shape:
                made[...] = elements(random, shape, "<i8").astype(dtype)
        return [f"/a{place}" for place in range(count)]

    return make


def at_the_root(path: Path, random: Random, count: int) -> list[str]:
    shape = (int(random.integers(2, 40)), int(random.integers(2, 30)))
    made = zarr.create_array(path, shape=shape, chunks=drawn_chunks(random, shape), dtype="<f4")
    made[...] = elements(random, shape, "<f4")
    return ["/"]


def advised(path: Path, name: str, words: str, profile: StoreProfile, *, is_traced: bool) -> ArrayAdvice:
    """For a few calls, with codecs that all halve the bytes: what they cost is not asked here.

    A traced program keeps the format of its file; for words, other formats are considered too.
    """
    ((array, demands),) = ask(f"{path}:{name}", [], None, words).arrays
    library = array.library if is_traced else None
    demands = [replace(one, steps=one.steps[:FEW_CALLS], library=library) for one in demands]
    encodings = encodings_of(array, Limits(), profile, demands)
    chains = {array.encoding, *(one for listed in encodings.values() for one in listed)} - {PLAIN}
    known = MeasuredCodec(CodecRate(1e-9, 1e-8), 2.0)
    measured = {(library, one): known for one in chains for library in ("hdf5", "zarr", "hyperslab")}
    return advise(array, demands, profile, Limits(), measured, encodings)


def possible(found: ArrayAdvice) -> dict[str, list[Option]]:
    """What may be advised, by the format of the file: what is chosen first."""
    options = [found.chosen, *(one for one in found.options if one.is_possible and one.seconds is not None)]
    by_format: dict[str, list[Option]] = {}
    for one in options:
        if not one.candidate.is_today:
            by_format.setdefault(one.candidate.format, []).append(one)
    return by_format


ENDINGS = {"hdf5": ".h5", "netcdf4": ".nc", "zarr2": ".zarr", "zarr3": ".zarr"}


def convert_all(path: Path, folder: Path, advice: dict[str, dict[str, list[Option]]]) -> int:
    """Convert as the first options say, then the second ones, and so on; each format into a file of its own."""
    converted = 0
    for format_name in ENDINGS:
        rows = {name: options[format_name] for name, options in advice.items() if format_name in options}
        for place in range(min(TRIED, max(map(len, rows.values()), default=0))):
            chosen = {name: options[place] for name, options in rows.items() if len(options) > place}
            arrays = {name: one.candidate.advised("drawn", None) for name, one in chosen.items()}
            target = folder / f"{path.stem}-{format_name}-{place}{ENDINGS[format_name]}"
            like = AdviceFile(str(path), arrays)
            like.save(folder / "advice.json")
            hs.convert(path, target, format=format_name, like=folder / "advice.json", skip_unsupported=True,
                       verify="none", sync=False)  # fmt: skip
            check(path, target, chosen)
            converted += len(chosen)
    return converted


def check(path: Path, target: Path, chosen: dict[str, Option]) -> None:
    with hs.open(path) as before, hs.open(target) as after:
        for name, one in chosen.items():
            source = before.get(name if name != "/" else "")
            made = after.get(name if name != "/" else "") if name != "/" else next(iter(after.walk()))
            layout = one.candidate.layout
            assert made.chunks == (None if layout.contiguous else layout.chunk_shape), (name, one.candidate.title)
            assert len(made.max_shape) == len(source.max_shape)
            np.testing.assert_array_equal(made[...], source[...])
            if made.format == source.format == "hdf5":
                assert made.max_shape == source.max_shape, f"{name} can grow as it could"


@pytest.mark.parametrize(
    ("make", "file", "count"),
    [(in_hdf5, "drawn.h5", 80), (in_netcdf, "drawn.nc", 50), (in_zarr(3), "drawn3.zarr", 40),
     (in_zarr(2), "drawn2.zarr", 26), *((at_the_root, f"root{place}.zarr", 1) for place in range(4))],
)  # fmt: skip
def test_convert_accepts_whatever_is_advised(
    make: Callable[[Path, Random, int], list[str]], file: str, count: int, profile: StoreProfile, tmp_path: Path
) -> None:
    random = np.random.default_rng(29 + count + len(file) + sum(map(ord, file)))
    path = tmp_path / file
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of types that Zarr 3 does not specify
        names = make(path, random, count)
        advice, reasons = {}, []
        for name in names:
            words = WORDS[random.integers(len(WORDS))]
            try:
                found = advised(path, name, words, profile, is_traced=random.random() < 0.75)
            except (Refused, UsageError) as error:
                reasons.append(str(error))
                continue
            assert all(one.conversion is not None and one.conversion.seconds > 0 for one in found.options
                       if not one.candidate.is_today)  # fmt: skip
            advice[name] = possible(found)
        converted = convert_all(path, tmp_path, advice)
    assert len(advice) >= 0.6 * count, reasons
    assert converted >= len(advice)
    for said in reasons:
        assert "fixed width" in said or "nothing to read in parts" in said or "no price" in said or "axes" in said, said
