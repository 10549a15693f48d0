"""`hyperslab convert` and `save`, compared with the tools that people use for the same, on warm files.

    python benchmarks/convert_speed.py [--only NAME ...] [--quick] [--files DIRECTORY] [--list]

NAME is a group of rows (`series`, `rechunked`, `columns`, `compressed`, `relayout`, `cmip7`). Both sides of a row are
programs of their own, with two threads and the same memory, except for the compressed write and the relayout, where
calls inside one process are compared. Every output is read back through h5py or zarr-python and must hold the same
elements. All sides run in one run, in a new random order each turn. Nobody syncs, and we do not verify, because nobody
else does: `series-verified` says what that costs. Results are saved in benchmarks/results/convert_speed.json row by
row.
CONVERT_SPEED_MEGABYTES=128 in the environment makes everything smaller than 1024 MB, for which the script takes about
twelve minutes. rechunker 0.5.4 needs zarr-python 2: name a Python that has it in RECHUNKER_PYTHON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import command
import comparison
import h5py
import numpy as np
import peers
from comparison import OURS, Row, Side
from files import Files

RESULTS = Path(__file__).parent / "results" / "convert_speed.json"
MEGABYTES, QUICK_MEGABYTES = int(os.environ.get("CONVERT_SPEED_MEGABYTES", "1024")), 64
# All rows together then take about twelve minutes.
TURNS = 3
LARGE_NBYTES = 100 << 20
MEMORY_NBYTES = 2 << 30
OUR_CODE = """
import json, sys, hyperslab
hyperslab.convert(sys.argv[1], sys.argv[2], overwrite=True, sync=False, **json.loads(sys.argv[3]))
"""
CMIP7_CODE = """
import sys, hyperslab
options = dict(purpose="cmip7", overwrite=True, sync=False, verify="none", threads={threads})
for source in sys.argv[1:]:
    hyperslab.convert(source, source + "{suffix}", in_place={in_place}, **options)
"""
DASK = """
import sys, dask, xarray
source, target = sys.argv[1:3]
dask.config.set(scheduler="threads", num_workers={threads})
opened = xarray.open_dataset(source, engine="netcdf4", chunks=dict(d_time=1))
encoding = dict(x=dict(zlib=True, complevel=4, shuffle=True, chunksizes={series}))
opened.chunk(dict(d_time=-1, d_y=128, d_x_=128)).to_netcdf(target, engine="netcdf4", encoding=encoding)
"""

RECHUNKER = """
import json, sys, dask, numcodecs, rechunker, zarr
source, target, between, chunks, memory = sys.argv[1:6]
dask.config.set(scheduler="threads", num_workers={threads})
rechunker.rechunk(zarr.open(source, mode="r")["x"], tuple(json.loads(chunks)), int(memory) // {threads}, target,
                  target_options=dict(compressor=numcodecs.Zstd(3)), temp_store=between).execute()
"""


def made(files: Path, name: str, shape: tuple[int, ...], chunks: tuple[int, ...], level: int | None) -> Path:
    """A NetCDF4 file of smooth fields with some noise, rounded as people round them."""
    path = files / name
    if path.exists():
        return path
    random = np.random.default_rng(7)
    beside = path.with_suffix(".new")
    with h5py.File(beside, "w") as file:
        options: dict[str, Any] = (
            {} if level is None else {"compression": "gzip", "compression_opts": level, "shuffle": True}
        )
        array = file.create_dataset("x", shape, "f4", chunks=chunks, **options)
        rest = shape[1:]
        base = sum(np.sin(np.linspace(0, 9, length)).reshape([-1 if a == axis else 1 for a in range(len(rest))])
                   for axis, length in enumerate(rest))  # fmt: skip
        step = max(chunks[0], 1)
        for start in range(0, shape[0], step):
            count = min(step, shape[0] - start)
            noise = random.normal(0, 0.2, (count, *rest))
            array[start : start + count] = (base * 10 + noise + np.sin(start / 50)).round(2)
        for axis, name_ in enumerate(["time", "y", "x_"][: len(shape)]):
            scale = file.create_dataset(f"d_{name_}", data=np.arange(shape[axis], dtype="f8"))
            scale.make_scale(f"d_{name_}")
            array.dims[axis].attach_scale(scale)
    beside.rename(path)
    return path


def answer(path: Path) -> Callable[[Any], Any]:
    """What an output holds: every sixteenth row, of large arrays the middle of it; decoding all would take minutes."""

    def elements(array: Any) -> Any:
        whole = array.size * 4 < LARGE_NBYTES
        middle = [slice(None) if whole else slice(n * 3 // 8, n * 5 // 8) for n in array.shape[1:]]
        return np.asarray(array[(slice(None, None, max(1, array.shape[0] // 16)), *middle)], "f4")[..., ::7]

    def read(_: Any) -> Any:
        if path.suffix == ".zarr":
            import zarr

            opened: Any = zarr.open(path, mode="r")
            return elements(opened if hasattr(opened, "chunks") else opened["x"])
        with h5py.File(path, "r") as file:
            return elements(file["x"])

    return read


def expected(path: Path) -> Any:
    """The same of the source."""
    return answer(path)(None)


def program(words: list[str], target: Path, *others: Path) -> Callable[[], Side]:
    """A side that is a program, which writes `target` and `others`; it is absent if the program is not installed."""

    def ready() -> Side:
        if shutil.which(words[0]) is None:
            raise FileNotFoundError(words[0])

        def run() -> None:
            for path in (target, *others):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            done = subprocess.run(words, check=False, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{words[0]}: {done.stderr.strip()[-200:]}")

        return Side(run, answer(target))

    return ready


def ours(source: Path, target: Path, **options: Any) -> Callable[[], Side]:
    """Our side, a program of its own that does not sync."""
    given = json.dumps({"threads": peers.THREADS, "memory": MEMORY_NBYTES, **options})
    return program([sys.executable, "-c", OUR_CODE, str(source), str(target), given], target)


def predicted(source: Path, target: Path, **options: Any) -> dict[str, float]:
    """The seconds that a conversion predicts for itself, and those that it takes; with syncing and verifying."""
    import hyperslab

    done = hyperslab.convert(source, target, overwrite=True, threads=peers.THREADS, memory=MEMORY_NBYTES,
                             predicted=lambda _: None, **options)  # fmt: skip
    return {"predicted": done.predicted_seconds or 0.0, "took": done.seconds}


def nbytes_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    inner = path.rglob("*") if path.is_dir() else [path]
    return sum(one.stat().st_size for one in inner if one.is_file())


def row(
    key: str,
    work: str,
    source: Path,
    sides: dict[str, Any],
    targets: dict[str, float],
    quick: bool,
    *,
    turns: int = TURNS,
    files: Sequence[Path] = (),
) -> dict[str, Any]:
    """One row. Its source is one file, or these."""
    made = Row(key, work, files or [source], expected(source), sides, targets, turns=turns, warms_up=False)
    measured = comparison.measure(made, quick)
    sizes = {one.name: nbytes_of(one) for one in source.parent.glob(f"{key}-*")}
    return measured | {"nbytes": sizes}


def series(where: Path, megabytes: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Maps to series, both deflated."""
    count = max(16, megabytes // 4)
    source = made(where, f"maps-{megabytes}.nc", (count, 1024, 1024), (1, 512, 512), 4)
    wanted = f"{count},32,32"
    out = {name: where / f"series-{name}.nc" for name in ("ours", "h5repack", "nccopy", "dask")}
    code = DASK.format(threads=peers.THREADS, series=(count, 32, 32))
    sides = {
        OURS: ours(source, out["ours"], chunks=wanted, codec="deflate-4+shuffle", verify="none"),
        "h5repack": program(
            ["h5repack", "-l", f"x:CHUNK={wanted.replace(',', 'x')}", str(source), str(out["h5repack"])],
            out["h5repack"],
        ),
    }
    yield row("series", f"maps to series, {megabytes} MiB", source, sides, {"h5repack": 0.5}, quick, turns=2)
    # Both take a minute for 1 GiB, and the figure is far from its target: one turn is enough.
    slower = {
        OURS: ours(source, out["ours"], chunks=wanted, codec="deflate-4+shuffle", verify="none"),
        "nccopy": program(
            ["nccopy", "-k", "nc4", "-m", "2G", "-s", "-d", "4", "-c", f"x:{wanted}", str(source), str(out["nccopy"])],
            out["nccopy"],
        ),
        "xarray + Dask": program([sys.executable, "-c", code, str(source), str(out["dask"])], out["dask"]),
    }
    targets = {"nccopy": 0.5, "xarray + Dask": 0.5}
    yield row("series-others", f"the same, {megabytes} MiB", source, slower, targets, quick, turns=1)
    checked = {OURS: ours(source, out["ours"], chunks=wanted, codec="deflate-4+shuffle")}
    measured = row("series-verified", "the same with every chunk verified", source, checked, {}, quick, turns=1)
    yield measured | {"prediction": predicted(source, out["ours"], chunks=wanted, codec="deflate-4+shuffle")}


def rechunked(where: Path, megabytes: int, quick: bool) -> Iterator[dict[str, Any]]:
    """The same from Zarr 2 to Zarr 2, against rechunker, which needs zarr-python 2 and so an environment of its own."""
    import hyperslab

    count = max(16, megabytes // 4)
    maps = made(where, f"maps-{megabytes}.nc", (count, 1024, 1024), (1, 512, 512), 4)
    source = where / f"maps-{megabytes}.zarr"
    if not source.exists():
        hyperslab.convert(maps, source, format="zarr2", codec="zstd-3", threads=peers.THREADS)
    files = [path for path in source.rglob("*") if path.is_file()]
    out = {name: where / f"rechunked-{name}.zarr" for name in ("ours", "rechunker")}
    wanted, given = [count, 32, 32], {"threads": peers.THREADS, "memory": MEMORY_NBYTES, "verify": "none"}
    options = json.dumps({**given, "format": "zarr2", "chunks": {"x": wanted}, "codec": {"x": "zstd-3"}})
    between = where / "rechunked-between.zarr"
    other = [os.environ.get("RECHUNKER_PYTHON", "python-with-rechunker"), "-c", RECHUNKER.format(threads=peers.THREADS)]
    sides: dict[str, Any] = {
        OURS: program([sys.executable, "-c", OUR_CODE, str(source), str(out["ours"]), options], out["ours"]),
        "rechunker": program(
            [*other, str(source), str(out["rechunker"]), str(between), json.dumps(wanted), str(MEMORY_NBYTES)],
            out["rechunker"], between,
        ),
    }  # fmt: skip
    work = f"maps to series, {megabytes} MiB, Zarr 2"
    yield row("rechunked", work, maps, sides, {"rechunker": 0.5}, quick, turns=1, files=files)


def columns(where: Path, megabytes: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Chunks of 2000 x 1 to 67186 x 10, as in the report of h5repack's hours, on fewer columns.

    h5repack takes rows of 32 MiB at a time and encodes each chunk again for each of these blocks: 4 times with 480
    columns, thousands of times with the million columns of the report.
    """
    height, width = 67186, max(20, min(480, 2 * megabytes // 20 * 20))
    source = made(where, f"columns-{megabytes}.h5", (height, width), (2000, 1), 4)
    out = {name: where / f"columns-{name}.h5" for name in ("ours", "h5repack")}
    sides = {
        OURS: ours(source, out["ours"], chunks="67186,10", verify="none"),
        "h5repack": program(["h5repack", "-l", "x:CHUNK=67186x10", str(source), str(out["h5repack"])], out["h5repack"]),
    }
    yield row("columns", f"2000 x 1 to 67186 x 10, {width} columns", source, sides, {"h5repack": 0.3}, quick)


def compressed(where: Path, megabytes: int, quick: bool) -> Iterator[dict[str, Any]]:
    """A new file of deflate-4 with shuffle, from an array in memory."""
    import xarray

    import hyperslab
    from hyperslab._core import encode_chunks

    count = max(8, megabytes // 8)
    source = made(where, f"field-{megabytes}.nc", (count, 1024, 1024), (1, 512, 512), None)
    with h5py.File(source) as file:
        data = file["x"][...]
    dataset = xarray.Dataset({"x": (("time", "y", "z"), data)})
    encoding = {"x": {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": (1, 512, 512), "_FillValue": None}}
    out = {name: where / f"compressed-{name}.nc" for name in ("ours", "h5py", "xarray")}

    def by_us() -> None:
        hyperslab.save(dataset, out["ours"], encoding=encoding, threads=peers.THREADS, sync=False)

    def by_h5py() -> None:
        with h5py.File(out["h5py"], "w") as file:
            file.create_dataset("x", data=data, chunks=(1, 512, 512), compression=4, shuffle=True)

    def by_xarray() -> None:
        dataset.to_netcdf(out["xarray"], encoding=encoding, engine="netcdf4")

    def encoding_alone() -> None:
        plain, taken = data.reshape(-1).view(np.uint8), (lambda *_: None)
        shapes = (list(data.shape), [1, 512, 512])
        encode_chunks(plain, shapes, bytes(4), [("shuffle", [4]), ("deflate", [4])], taken, peers.THREADS)

    sides: dict[str, Any] = {
        OURS: lambda: Side(by_us, answer(out["ours"])),
        "h5py": lambda: Side(by_h5py, answer(out["h5py"])),
        "xarray": lambda: Side(by_xarray, answer(out["xarray"])),
        "encoding alone": lambda: Side(encoding_alone, lambda _: expected(source)),
    }
    targets = {"h5py": 0.6, "encoding alone": 1.15}
    yield row("compressed", f"deflate-4+shuffle, {data.nbytes >> 20} MiB", source, sides, targets, quick)


def relayout(where: Path, megabytes: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Chunks copied as they are stored."""
    count = max(16, megabytes // 4)
    source = made(where, f"maps-{megabytes}.nc", (count, 1024, 1024), (1, 512, 512), 4)
    out = {name: where / f"relayout-{name}.nc" for name in ("ours", "cp", "verified")}

    def by_us(name: str = "ours", verify: str = "none") -> None:
        import hyperslab

        out[name].unlink(missing_ok=True)  # ext4 flushes a file that replaces another by renaming
        hyperslab.convert(source, out[name], relayout=True, sync=False, verify=verify, threads=peers.THREADS)

    def by_cp() -> None:
        out["cp"].unlink(missing_ok=True)
        subprocess.run(["cp", "--reflink=never", str(source), str(out["cp"])], check=True)

    sides: dict[str, Any] = {
        OURS: lambda: Side(by_us, answer(out["ours"])),
        "cp": lambda: Side(by_cp, answer(out["cp"])),
        "ours, verified": lambda: Side(lambda: by_us("verified", "checksum"), answer(out["verified"])),
    }
    yield row("relayout", f"relayout of {source.stat().st_size >> 20} MiB", source, sides, {"cp": 1.2}, quick)


def model_output(files: Files, name: str, rest: tuple[int, ...], nbytes: int, *, is_good: bool) -> Path:
    """A file of one variable as a model writes it: one chunk for each step and level, indexes among the chunks."""
    path = files / f"{name}.nc"
    if path.exists():
        return path
    steps = max(8, nbytes // (4 * int(np.prod(rest))))
    random, beside = np.random.default_rng(11), path.with_suffix(".new")
    with h5py.File(beside, "w") as file:
        file.attrs["variable_id"] = "tas"
        time = file.create_dataset("time", (0,), "f8", chunks=(1,), maxshape=(None,))
        time.attrs["bounds"] = np.bytes_("time_bnds")
        bounds = file.create_dataset("time_bnds", (0, 2), "f8", chunks=(1, 2), maxshape=(None, 2))
        options: dict[str, Any] = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
        shape, chunks = (0, *rest), (*(1,) * (len(rest) - 1), *rest[-2:])
        data = file.create_dataset("tas", shape, "f4", chunks=chunks, maxshape=(None, *rest), **options)
        base = (np.sin(np.linspace(0, 9, rest[-2]))[:, None] + np.cos(np.linspace(0, 7, rest[-1]))) * 10
        for array in (time, bounds, data):
            array.resize(steps, axis=0)
        for step in range(steps):
            time[step], bounds[step] = step, (step, step + 1)
            data[step] = (base + random.normal(0, 0.2, rest) + np.sin(step / 50)).round(2)
    if is_good:
        import hyperslab

        hyperslab.convert(beside, path, purpose="cmip7")
        beside.unlink()
    else:
        beside.rename(path)
    return path


def cmip7(where: Path, megabytes: int, quick: bool) -> Iterator[dict[str, Any]]:
    """What the archive of CMIP7 asks for: four variables, two of them with levels, against its own tool."""
    grids = {"a": (192, 288), "b": (180, 360), "c": (19, 96, 192), "d": (8, 192, 288)}
    tool = str(Path(sys.executable).with_name("cmip7repack"))
    for key, is_good, target in (("cmip7", False, 0.22), ("cmip7-good", True, 0.3)):
        each = (megabytes << 20) // len(grids)
        sources = [
            model_output(where, f"{key}-{megabytes}-{name}", rest, each, is_good=is_good)
            for name, rest in grids.items()
        ]
        names = [str(source) for source in sources]
        suffix = "" if is_good else "-ours.nc"
        code = CMIP7_CODE.format(threads=peers.THREADS, suffix=suffix, in_place=is_good)
        mine = [Path(f"{name}{suffix}") for name in names]
        theirs = sources if is_good else [Path(f"{name}_cmip7repack") for name in names]
        sides: dict[str, Any] = {
            OURS: several([sys.executable, "-c", code, *names], mine, is_in_place=is_good),
            "cmip7repack": several([tool, *["-o"] * is_good, *names], theirs, is_in_place=is_good),
        }
        work = f"{len(names)} files for CMIP7, {megabytes} MiB{', good already, in place' if is_good else ''}"
        made = Row(key, work, sources, content(sources), sides, {"cmip7repack": target}, turns=TURNS, warms_up=False)
        measured = comparison.measure(made, quick)
        sizes = {side: sum(map(nbytes_of, paths)) for side, paths in ((OURS, mine), ("cmip7repack", theirs))}
        yield measured | {"nbytes": sizes}


def content(paths: Sequence[Path]) -> Any:
    """Some rows of each file."""
    found = []
    for path in paths:
        with h5py.File(path) as file:
            found.append(np.asarray(file["tas"][:: max(1, file["tas"].shape[0] // 16), ..., ::7], "f4").ravel())
    return np.concatenate(found)


def several(words: list[str], targets: Sequence[Path], *, is_in_place: bool) -> Callable[[], Side]:
    """A side that is a program which writes several files, or replaces its own."""
    first, *others = targets if not is_in_place else [targets[0].with_name("nothing")]
    ready = program(words, first, *others)
    return lambda: Side(ready().run, lambda _: content(targets))


def groups(files: Files, quick: bool) -> command.Groups:
    """The groups of rows."""
    megabytes = QUICK_MEGABYTES if quick else MEGABYTES
    where = files.directory
    return {
        "series": lambda: series(where, megabytes, quick),
        "rechunked": lambda: rechunked(where, megabytes, quick),
        "columns": lambda: columns(where, megabytes, quick),
        "compressed": lambda: compressed(where, megabytes, quick),
        "relayout": lambda: relayout(where, megabytes, quick),
        "cmip7": lambda: cmip7(where, megabytes, quick),
    }


def main() -> None:
    """Measure, print a line for each comparison, and save the figures after each row."""
    command.run_locally(__doc__, groups, RESULTS, MEGABYTES)


if __name__ == "__main__":
    main()
