"""`hyperslab convert` and `save`, compared with the tools that people use for the same, on warm files.

    python benchmarks/convert_speed.py [--only NAME ...] [--quick] [--files DIRECTORY] [--list]

NAME is a group of rows (`series`, `columns`, `compressed`, `relayout`). Both sides of a row are programs of their own,
with two threads and the same memory, except for the compressed write and the relayout, where calls inside one process
are compared. Every output is read back through h5py and must hold the same elements. All sides run in one run, in a new
random order each turn. Nobody syncs, and we do not verify, because nobody else does: `series-verified` says what that
costs. Results are saved in benchmarks/results/convert_speed.json row by row. CONVERT_SPEED_MEGABYTES=128 in the
environment makes everything smaller than 1024 MB.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
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
# Smaller runs have three turns instead of five.
MANY_MEGABYTES = 512
MEMORY_NBYTES = 2 << 30
OUR_CODE = """
import json, sys, hyperslab
hyperslab.convert(sys.argv[1], sys.argv[2], overwrite=True, sync=False, **json.loads(sys.argv[3]))
"""
DASK = """
import sys, dask, xarray
source, target = sys.argv[1:3]
dask.config.set(scheduler="threads", num_workers={threads})
opened = xarray.open_dataset(source, engine="netcdf4", chunks=dict(d_time=1))
encoding = dict(x=dict(zlib=True, complevel=4, shuffle=True, chunksizes={series}))
opened.chunk(dict(d_time=-1, d_y=128, d_x_=128)).to_netcdf(target, engine="netcdf4", encoding=encoding)
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
    """What an output holds, through h5py: some rows of it, and its shape."""

    def read(_: Any) -> Any:
        with h5py.File(path, "r") as file:
            array = file["x"]
            return np.asarray(array[:: max(1, array.shape[0] // 16)], "f4")[..., ::7]

    return read


def expected(path: Path) -> Any:
    """The same of the source."""
    return answer(path)(None)


def program(words: list[str], target: Path) -> Callable[[], Side]:
    """A side that is a program; it is absent if the program is not installed."""

    def ready() -> Side:
        if shutil.which(words[0]) is None:
            raise FileNotFoundError(words[0])

        def run() -> None:
            target.unlink(missing_ok=True)
            subprocess.run(words, check=True, capture_output=True)

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


def row(
    key: str, work: str, source: Path, sides: dict[str, Any], targets: dict[str, float], quick: bool
) -> dict[str, Any]:
    """One row."""
    measured = comparison.measure(
        Row(
            key, work, [source], expected(source), sides, targets, turns=3 if quick or MEGABYTES < MANY_MEGABYTES else 5
        ),
        quick,
    )
    sizes = {one.name: one.stat().st_size for one in source.parent.glob(f"{key}-*")}
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
        "nccopy": program(
            ["nccopy", "-k", "nc4", "-m", "2G", "-s", "-d", "4", "-c", f"x:{wanted}", str(source), str(out["nccopy"])],
            out["nccopy"],
        ),
        "xarray + Dask": program([sys.executable, "-c", code, str(source), str(out["dask"])], out["dask"]),
    }
    targets = {"h5repack": 0.5, "nccopy": 0.5, "xarray + Dask": 0.5}
    yield row("series", f"maps to series, {megabytes} MiB", source, sides, targets, quick)
    checked = {OURS: ours(source, out["ours"], chunks=wanted, codec="deflate-4+shuffle")}
    measured = row("series-verified", "the same with every chunk verified", source, checked, {}, quick)
    yield measured | {"prediction": predicted(source, out["ours"], chunks=wanted, codec="deflate-4+shuffle")}


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


def groups(files: Files, quick: bool) -> command.Groups:
    """The groups of rows."""
    megabytes = QUICK_MEGABYTES if quick else MEGABYTES
    where = files.directory
    return {
        "series": lambda: series(where, megabytes, quick),
        "columns": lambda: columns(where, megabytes, quick),
        "compressed": lambda: compressed(where, megabytes, quick),
        "relayout": lambda: relayout(where, megabytes, quick),
    }


def main() -> None:
    """Measure, print a line for each comparison, and save the figures after each row."""
    command.run_locally(__doc__, groups, RESULTS, MEGABYTES)


if __name__ == "__main__":
    main()
