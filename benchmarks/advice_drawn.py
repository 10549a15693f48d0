"""Programs drawn by seeds, for `advice_programs.py`: a file with today's layout, and a script that reads it.

Each script is text that runs as a program of its own: `python script.py FILE`. It sums what it reads, prints the sum,
and keeps the seconds of its reads in `seconds`, so that neither imports nor opening the file count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Random = np.random.Generator
Shape = tuple[int, ...]

MOST_DECODED = 400_000_000
"""Bytes: a program makes so many calls that today's layout decodes at most about this much for them, one by one."""
MOST_CALLS = 200
SLOW_CALLS, SLOW_DECODED = 50, 150_000_000
"""The same for libraries whose calls take milliseconds, however little they read; zarr-python decodes more slowly."""
LEAST_CALLS = 3
MOST_CHUNKS, MOST_FILES = 40_000, 3_000

# --- idioms: how libraries are called -------------------------------------------------------------------------

HEAD = """import sys
from time import perf_counter

import numpy as np
{imports}

seconds, total = 0.0, 0.0
{keys}
{opens}
    for key in keys:
        begun = perf_counter()
        part = {read}
        seconds += perf_counter() - begun
        total += float(np.ma.filled(part, 0).reshape(-1)[::97].sum(dtype="f8"))
print(total)
"""


@dataclass(frozen=True)
class Idiom:
    """A way to write the loop: what is imported and opened, and how `key` is read."""

    name: str
    format: str  # of the file: hdf5, netcdf4, zarr3, or pandas' "fixed" and "table"
    imports: str
    opens: str
    read: str

    @property
    def array(self) -> str:
        """The path of the array that is read."""
        return {"fixed": "x/block0_values", "table": "x/table"}.get(self.format, "x")

    @property
    def libraries(self) -> tuple[str, ...]:
        """The modules that its programs import, also behind the scenes."""
        own = self.imports.split()[1]
        engine = {"xarray": ("h5netcdf",) if "h5netcdf" in self.opens else ("netCDF4",), "pandas": ("tables",)}
        return ("numpy", own, *engine.get(own, ()))

    @property
    def suffix(self) -> str:
        """The ending of its files."""
        return {"netcdf4": ".nc", "zarr3": ".zarr"}.get(self.format, ".h5")


H5PY = "with h5py.File(sys.argv[1]) as file:"
NETCDF = "with netCDF4.Dataset(sys.argv[1]) as file:"
XARRAY = 'with xr.open_dataset(sys.argv[1], engine="{}") as opened:'
STORE = 'with pd.HDFStore(sys.argv[1], "r") as store:'
SELECT = 'store.select("x", start=key.start, stop=key.stop).to_numpy()'
ZARR = 'file = zarr.open_group(sys.argv[1], mode="r")\nif True:'
IDIOMS = [
    Idiom('h5py: f["x"][k]', "hdf5", "import h5py", H5PY, 'file["x"][key]'),
    Idiom("h5py: d[k]", "hdf5", "import h5py", f'{H5PY}\n    array = file["x"]', "array[key]"),
    Idiom("xarray, netcdf4", "netcdf4", "import xarray as xr", XARRAY.format("netcdf4"), 'opened["x"][key].values'),
    Idiom("xarray, h5netcdf", "netcdf4", "import xarray as xr", XARRAY.format("h5netcdf"), 'opened["x"][key].values'),
    Idiom("netCDF4", "netcdf4", "import netCDF4", NETCDF, 'file["x"][key]'),
    Idiom("pandas, fixed", "fixed", "import pandas as pd", STORE, SELECT),
    Idiom("pandas, table", "table", "import pandas as pd", STORE, SELECT),
    Idiom('zarr: f["x"][k]', "zarr3", "import zarr", ZARR, 'file["x"].oindex[key]'),
    Idiom("zarr: a[k]", "zarr3", "import zarr", f'{ZARR}\n    array = file["x"]', "array.oindex[key]"),
]

# --- patterns: what is selected -------------------------------------------------------------------------------

RANDOM = "rng = np.random.default_rng({seed})\n"


@dataclass(frozen=True)
class Pattern:
    """A pattern as docs/trace.md names it: on arrays of so many axes, `keys(shape, count, random)` is its code."""

    name: str
    ndims: tuple[int, ...]
    keys: Callable[[Shape, int, Random], str]
    formats: tuple[str, ...] = ("hdf5", "netcdf4", "zarr3")

    def ndims_for(self, idiom: Idiom) -> tuple[int, ...]:
        """For how many axes the idiom can have this pattern; empty if for none."""
        if idiom.format not in self.formats:
            return ()
        wished = (2,) if idiom.format in ("fixed", "table") else self.ndims
        return tuple(one for one in wished if one in self.ndims)


EVERY = ("hdf5", "netcdf4", "zarr3", "fixed", "table")


def _drawn(random: Random) -> str:
    return RANDOM.format(seed=int(random.integers(1 << 16)))


def _between(random: Random, low: float, high: float) -> int:
    """A number, all orders of magnitude alike."""
    least = math.log(max(low, 1))
    return max(1, round(math.exp(random.uniform(least, max(least, math.log(max(high, 1)))))))


def _whole(_: Shape, count: int, random: Random) -> str:  # noqa: ARG001
    return f"keys = [slice(None)] * {min(count, 2)}"


def _rows(shape: Shape, count: int, random: Random) -> str:
    step = max(1, shape[0] // count) if random.random() < 0.5 else 1
    return f"keys = range(0, {min(shape[0], count * step)}, {step})"


def _blocks_of_rows(shape: Shape, count: int, random: Random) -> str:
    length = _between(random, 2, shape[0] / 8)
    stop = min(shape[0], count * length)
    return f"keys = [slice(k, k + {length}) for k in range(0, {stop}, {length})]"


def _random_rows(shape: Shape, count: int, random: Random) -> str:
    return f"{_drawn(random)}keys = rng.integers(0, {shape[0]}, {count}).tolist()"


def _random_blocks(shape: Shape, count: int, random: Random) -> str:
    length = _between(random, 2, shape[0] / 20)
    starts = f"rng.integers(0, {shape[0] - length}, {count}).tolist()"
    return f"{_drawn(random)}keys = [slice(k, k + {length}) for k in {starts}]"


def _columns(shape: Shape, count: int, random: Random) -> str:
    """One index of each axis but the first, at random."""
    others = ", ".join(f"int(rng.integers({length}))" for length in shape[1:])
    return f"{_drawn(random)}keys = [(slice(None), {others}) for _ in range({count})]"


def _columns_in_order(shape: Shape, count: int, random: Random) -> str:
    step = max(1, shape[1] // count) if random.random() < 0.5 else 1
    return f"keys = [(slice(None), k) for k in range(0, {min(shape[1], count * step)}, {step})]"


def _boxes(shape: Shape, count: int, random: Random) -> str:
    lengths = [_between(random, 2, length / 4) for length in shape]
    axes = ", ".join(f"slice(k{n}, k{n} + {length})" for n, length in enumerate(lengths))
    starts = ", ".join(f"int(rng.integers({n - length}))" for n, length in zip(shape, lengths, strict=True))
    names = ", ".join(f"k{n}" for n in range(len(shape)))
    return f"{_drawn(random)}starts = [({starts}) for _ in range({count})]\nkeys = [({axes}) for {names} in starts]"


def _boxes_in_loops(shape: Shape, count: int, random: Random) -> str:
    lengths = [_between(random, max(2, length / 12), length / 2) for length in shape]
    axes = ", ".join(f"slice(k{n}, k{n} + {length})" for n, length in enumerate(lengths))
    loops = " ".join(
        f"for k{n} in range(0, {shape[n]}, {length})" for n, length in enumerate(lengths)
    )  # the last axis is the innermost loop
    return f"keys = [({axes}) {loops}][:{count}]"


def _strided(shape: Shape, count: int, random: Random) -> str:
    steps = [int(random.integers(2, 6)) for _ in shape]
    axes = ", ".join(f"slice(k % {step}, None, {step})" for step in steps)
    return f"keys = [({axes},) for k in range({min(count, 6)})]"


def _elements(shape: Shape, count: int, random: Random) -> str:
    one = ", ".join(f"int(rng.integers({length}))" for length in shape)
    return f"{_drawn(random)}keys = [({one},) for _ in range({count})]"


def _lists(shape: Shape, count: int, random: Random) -> str:
    length = min(_between(random, 8, 64), shape[0] // 2)
    batch = f"np.sort(rng.choice({shape[0]}, {length}, replace=False))"
    return f"{_drawn(random)}keys = [{batch} for _ in range({count})]"


def _points(shape: Shape, count: int, random: Random) -> str:  # noqa: ARG001
    """As many elements as there are calls in others: h5py takes them as a mask."""
    axes = ", ".join(f"rng.integers(0, {length}, 60)" for length in shape)
    return f"{_drawn(random)}mask = np.zeros({shape}, bool)\nmask[{axes}] = True\nkeys = [mask]"


def _again(shape: Shape, count: int, random: Random) -> str:
    lengths = [_between(random, max(2, length / 20), length / 3) for length in shape]
    firsts = [int(random.integers(n - length)) for n, length in zip(shape, lengths, strict=True)]
    axes = ", ".join(f"slice({a}, {a + n})" for a, n in zip(firsts, lengths, strict=True))
    return f"keys = [({axes},)] * {min(count, 20)}"


def _rows_again(shape: Shape, count: int, random: Random) -> str:
    length = _between(random, 8, shape[0] / 10)
    first = int(random.integers(shape[0] - length))
    return f"keys = [slice({first}, {first + length})] * {min(count, 20)}"


PATTERNS = [
    Pattern("the whole array", (1, 2, 3), _whole, EVERY),
    Pattern("rows, in order", (2, 3), _rows),
    Pattern("blocks of rows, in order", (2, 3), _blocks_of_rows, EVERY),
    Pattern("rows, in random order", (2, 3), _random_rows),
    Pattern("blocks of rows, in random order", (2, 3), _random_blocks, EVERY),
    Pattern("columns, in random order", (2, 3), _columns),
    Pattern("columns, in order along axis 1", (2, 3), _columns_in_order),
    Pattern("boxes, in random order", (2, 3), _boxes),
    Pattern("boxes, in loops over the axes", (2, 3), _boxes_in_loops),
    Pattern("strided boxes", (1, 2, 3), _strided),
    Pattern("single elements", (1, 2, 3), _elements),
    Pattern("ranges, in order", (1,), _blocks_of_rows),
    Pattern("ranges, in random order", (1,), _random_blocks),
    Pattern("lists of indices", (2, 3), _lists),
    Pattern("points", (2, 3), _points, ("hdf5",)),
    Pattern("boxes, always the same", (1, 2, 3), _again),
    Pattern("rows, always the same", (2,), _rows_again, ("fixed", "table")),
]


def paired(seed: int, count: int) -> list[tuple[Idiom, Pattern]]:
    """Idioms by turns, each with the patterns that were drawn least often until then."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(IDIOMS)).tolist()
    used: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    made = []
    for number in range(count):
        idiom = IDIOMS[order[number % len(IDIOMS)]]
        possible = [one for one in PATTERNS if one.ndims_for(idiom)]
        shuffled = [possible[place] for place in random.permutation(len(possible))]
        pattern = min(shuffled, key=lambda one: (pairs[idiom.name, one.name], used[one.name]))
        used[pattern.name] += 1
        pairs[idiom.name, pattern.name] += 1
        made.append((idiom, pattern))
    return made


# --- files ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """A program with its file: `chunks` is None for an array in one piece."""

    number: int
    seed: int
    idiom: Idiom
    pattern: Pattern
    shape: Shape
    dtype: str
    chunks: Shape | None
    codec: str
    keys: str
    text: str
    calls: int
    box: Shape  # the lengths of what the calls select, on average

    @property
    def nbytes(self) -> int:
        """The bytes of the array, decoded."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def opens_once(self) -> str | None:
        """The program as it is when it opens the array once, before the loop; None if that is not in its hands."""
        array = 'file["x"]'
        if not self.idiom.read.startswith(array):
            return None
        begins = f"{self.idiom.opens}\n"
        return self.text.replace(f"part = {array}", "part = array").replace(begins, f"{begins}    array = {array}\n")


def draw(number: int, seed: int, idiom: Idiom, pattern: Pattern, scale: float = 1.0) -> Drawn:
    """A program: all of it follows from `(seed, number)` and the scale."""
    random = np.random.default_rng((seed, number))
    possible = pattern.ndims_for(idiom)
    ndim = possible[-1] if random.random() < 0.5 else possible[int(random.integers(len(possible)))]
    dtype = "f8" if idiom.format in ("fixed", "table") else str(random.choice(["f4", "f8", "i2"]))
    element = np.dtype(dtype).itemsize
    shape = _shape(ndim, _between(random, 20e6, 150e6) * scale / element, random)
    chunks = _chunks(shape, element, idiom, random)
    codec = _codec(chunks, idiom, random)
    code = str(random.integers(1 << 30))
    is_slow = idiom.format == "zarr3" or "h5py" not in idiom.imports
    count, most = (SLOW_CALLS, SLOW_DECODED) if is_slow else (MOST_CALLS, MOST_DECODED)
    while True:
        keys = pattern.keys(shape, count, np.random.default_rng(int(code)))
        boxes = [lengths_of(key, shape) for key in keys_of(keys)]
        decoded = sum(_decoded(box, chunks or box, element) for box in boxes)
        if decoded <= most or count <= LEAST_CALLS:
            break
        count = max(LEAST_CALLS, min(count - 1, round(count * most / decoded)))
    text = HEAD.format(imports=idiom.imports, keys=keys, opens=idiom.opens, read=idiom.read)
    mean = tuple(max(1, round(sum(axis) / len(boxes))) for axis in zip(*boxes, strict=True))
    return Drawn(number, seed, idiom, pattern, shape, dtype, chunks, codec, keys, text, len(boxes), mean)


def _shape(ndim: int, elements: float, random: Random) -> Shape:
    if ndim == 1:
        return (round(elements),)
    if ndim == 2:
        width = _between(random, 16, min(2048, elements / 24))
        return (max(24, round(elements / width)), width)
    y = _between(random, min(64, elements ** (1 / 3)), min(512, math.sqrt(elements / 24)))
    x = max(8, round(y * random.uniform(0.8, 2.0)))
    return (max(24, round(elements / x / y)), y, x)


def _chunks(shape: Shape, element: int, idiom: Idiom, random: Random) -> Shape | None:
    """Slabs, whole first axes, cubes, crumbs, or one piece."""
    kind = str(random.choice(["slabs", "tall", "cubes", "crumbs", "one piece"], p=[0.3, 0.2, 0.2, 0.1, 0.2]))
    if kind == "one piece" and idiom.format in ("hdf5", "netcdf4", "fixed"):
        return None
    if idiom.format in ("fixed", "table"):  # PyTables cuts along the first axis
        return (max(16, min(shape[0], _between(random, 16e3, 1e6) // (element * shape[1]))), shape[1])
    least = math.prod(shape) * element // (MOST_FILES if idiom.format == "zarr3" else MOST_CHUNKS)
    if kind == "tall":
        return tall(shape, element, _between(random, 64e3, 2e6))
    if kind in ("cubes", "one piece"):
        return cube(shape, element, _between(random, 16e3, 2e6))
    if kind == "crumbs":
        return cube(shape, element, max(_between(random, 1e3, 8e3), least))
    return slab(shape, element, max(_between(random, 16e3, 4e6), least))


def slab(shape: Shape, element: int, nbytes: float) -> Shape:
    """Whole rows: about so many bytes along the first axis."""
    return fitted(shape, (0, *(1,) * (len(shape) - 1)), element, nbytes)


def tall(shape: Shape, element: int, nbytes: float) -> Shape:
    """The whole first axis, and about so many bytes of the others."""
    return fitted(shape, (1, *(0,) * (len(shape) - 1)), element, nbytes)


def cube(shape: Shape, element: int, nbytes: float) -> Shape:
    """As long on each axis, or as long as it is."""
    return fitted(shape, (0,) * len(shape), element, nbytes)


def fitted(shape: Shape, whole: Sequence[int], element: int, nbytes: float) -> Shape:
    """Axes that are whole, and the others as long as each other, with about so many bytes."""
    left = nbytes / element / math.prod(n for n, one in zip(shape, whole, strict=True) if one)
    made = list(shape)
    free = sorted((axis for axis, one in enumerate(whole) if not one), key=lambda axis: shape[axis])
    for place, axis in enumerate(free):
        made[axis] = max(1, min(shape[axis], round(max(left, 1) ** (1 / (len(free) - place)))))
        left /= made[axis]
    return tuple(made)


def _codec(chunks: Shape | None, idiom: Idiom, random: Random) -> str:
    if chunks is None:
        return "none"
    known = {
        "hdf5": ["none", "deflate:4", "shuffle+deflate:4", "shuffle+deflate:4", "lzf"],
        "zarr3": ["none", "zstd:3", "deflate:4"],
        "fixed": ["shuffle+deflate:4"],
    }.get(idiom.format, ["none", "shuffle+deflate:4", "shuffle+deflate:4"])
    return str(random.choice(known))


def keys_of(code: str) -> list[Any]:
    """The keys that the code of a program makes."""
    names: dict[str, Any] = {"np": np}
    exec(code, names)
    return list(names["keys"])


def lengths_of(key: Any, shape: Shape) -> Shape:
    """How long the box is that a key selects; a list counts as whole rows, a mask as the rows of its elements."""
    parts = key if isinstance(key, tuple) else (key,)
    if isinstance(parts[0], np.ndarray) and parts[0].dtype == bool:
        return (int(parts[0].sum()), *(1,) * (len(shape) - 1))
    made = []
    for length, part in zip(shape, (*parts, *(slice(None),) * (len(shape) - len(parts))), strict=True):
        if isinstance(part, slice):
            made.append(len(range(*part.indices(length))) * (part.step or 1))
        else:
            made.append(len(part) if isinstance(part, np.ndarray) else 1)
    return tuple(min(pair) for pair in zip(made, shape, strict=True))


def _decoded(box: Shape, chunks: Shape, element: int) -> float:
    """The bytes of the chunks that such a box touches, wherever it is."""
    touched = ((length - 1) / chunk + 1 for length, chunk in zip(box, chunks, strict=True))
    return math.prod(touched) * math.prod(chunks) * element


def elements(drawn: Drawn) -> np.ndarray:
    """Smooth waves with a little noise, rounded as measurements are."""
    random = np.random.default_rng((drawn.seed, drawn.number, 1))
    made = random.standard_normal(drawn.shape, np.float32)
    made *= np.float32(0.05)
    for axis, length in enumerate(drawn.shape):
        wave = np.sin(np.arange(length, dtype=np.float32) / max(length / 9, 1))
        made += wave.reshape([-1 if one == axis else 1 for one in range(len(drawn.shape))])
    made *= np.float32(100)
    np.rint(made, out=made)
    return made.astype(drawn.dtype) if drawn.dtype[0] == "i" else (made / np.float32(100)).astype(drawn.dtype)


def make_file(drawn: Drawn, folder: Path) -> Path:
    """Write the file with today's layout."""
    path = folder / f"today{drawn.idiom.suffix}"
    {"hdf5": _hdf5, "netcdf4": _netcdf, "zarr3": _zarr}.get(drawn.idiom.format, _pandas)(path, drawn, elements(drawn))
    return path


def _filters(codec: str) -> dict[str, Any]:
    if codec == "none":
        return {}
    if codec == "lzf":
        return {"compression": "lzf"}
    return {"compression": "gzip", "compression_opts": 4, "shuffle": codec.startswith("shuffle")}


def _hdf5(path: Path, drawn: Drawn, data: np.ndarray) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, chunks=drawn.chunks, **_filters(drawn.codec))


def _netcdf(path: Path, drawn: Drawn, data: np.ndarray) -> None:
    import netCDF4

    names = ("time", "lat", "lon")[: len(drawn.shape)]
    cut = {"contiguous": True} if drawn.chunks is None else {"chunksizes": drawn.chunks}
    packed = {"zlib": True, "complevel": 4, "shuffle": True} if drawn.codec != "none" else {}
    with netCDF4.Dataset(path, "w") as file:
        for name, length in zip(names, drawn.shape, strict=True):
            file.createDimension(name, length)
            file.createVariable(name, "f8", (name,))[:] = np.arange(length)
        file.createVariable("x", drawn.dtype, names, fill_value=False, **cut, **packed)[:] = data


def _zarr(path: Path, drawn: Drawn, data: np.ndarray) -> None:
    import zarr
    from zarr.codecs import GzipCodec, ZstdCodec

    known = {"none": None, "zstd:3": ZstdCodec(level=3), "deflate:4": GzipCodec(level=4)}
    group = zarr.open_group(path, mode="w", zarr_format=3)
    made = group.create_array("x", shape=drawn.shape, chunks=drawn.chunks, dtype=drawn.dtype,
                              compressors=known[drawn.codec])  # fmt: skip
    made[...] = data


def _pandas(path: Path, drawn: Drawn, data: np.ndarray) -> None:
    import pandas as pd

    frame = pd.DataFrame(data, columns=[f"c{number}" for number in range(drawn.shape[1])])
    packed = {"complevel": 4, "complib": "zlib"} if drawn.codec != "none" else {}
    frame.to_hdf(path, key="x", format=drawn.idiom.format, index=False, **packed)
