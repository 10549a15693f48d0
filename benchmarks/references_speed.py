"""Opening references to very many chunks: seconds until the first element is read, and peak memory.

    python benchmarks/references_speed.py [--chunks N] [--turns N] [--files DIRECTORY] [--keep]

One array has N chunks (10,000,000) of one element. Their bytes are in one file in random order, so that no side can
compress the references. Each side opens its references and reads one element, in its own process, after importing its
libraries. The sides run in a new random order each turn. The table is printed; `--keep` writes
benchmarks/results/references.json.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import speed_table
from comparison import OURS, compared, interleaved, provenance, verdict

from hyperslab.chunk_grid import ceil_div

RESULTS = Path(__file__).parent / "results" / "references.json"
CHUNKS, RECORD_SIZE, ICECHUNK_BATCH = 10_000_000, 100_000, 200_000
MOST_SECONDS, MOST_NBYTES = 1.0, 300 << 20
PARQUET = "hyperslab, kerchunk's Parquet"
KERCHUNK, ICECHUNK = "kerchunk's Parquet, fsspec + zarr", "icechunk"


def order(count: int) -> np.ndarray[Any, Any]:
    """The element that each chunk holds."""
    return np.random.default_rng(1).permutation(count)


def make(folder: Path, count: int) -> None:
    """Create the file of elements, and references to it in every form that can be written here.

    Existing ones are kept.
    """
    if not (folder / "refs.hs").exists():
        np.arange(count).tofile(folder / "elements")
        make_parquet(folder, count)
        import hyperslab

        hyperslab.index(folder / "refs.parquet").save(folder / "refs.hs")
    if not (folder / "icechunk").exists():
        try:
            make_icechunk(folder, count)
        except ImportError as error:
            print(f"icechunk: not installed: {error}", flush=True)


def make_parquet(folder: Path, count: int) -> None:
    """What fsspec's `LazyReferenceMapper` writes, but in less than an hour."""
    import pyarrow
    from pyarrow import parquet

    document = {"zarr_format": 2, "shape": [count], "chunks": [1], "dtype": "<i8", "compressor": None}
    document |= {"filters": None, "fill_value": None, "order": "C"}
    keys = {".zgroup": {"zarr_format": 2}, "x/.zarray": document, "x/.zattrs": {"_ARRAY_DIMENSIONS": ["x"]}}
    (folder / "refs.parquet" / "x").mkdir(parents=True, exist_ok=True)
    text = json.dumps({"metadata": keys, "record_size": RECORD_SIZE})
    (folder / "refs.parquet" / ".zmetadata").write_text(text)
    offsets = np.zeros(ceil_div(count, RECORD_SIZE) * RECORD_SIZE, np.int64)
    offsets[:count] = order(count) * 8
    path = pyarrow.array([str(folder / "elements")]).dictionary_encode()
    for number, part in enumerate(offsets.reshape(-1, RECORD_SIZE)):
        first = pyarrow.DictionaryArray.from_arrays(np.zeros(RECORD_SIZE, np.int32), path.dictionary)
        columns = {"path": first, "offset": part, "size": np.full(RECORD_SIZE, 8)}
        columns["raw"] = pyarrow.nulls(RECORD_SIZE, pyarrow.binary())
        file = folder / "refs.parquet" / "x" / f"refs.{number}.parq"
        parquet.write_table(pyarrow.table(columns), file, compression="zstd", write_statistics=False)


def make_icechunk(folder: Path, count: int) -> None:
    """The same references as virtual chunks of a repository."""
    import icechunk
    import zarr

    repository = icechunk.Repository.create(*icechunk_parts(folder))
    session = repository.writable_session("main")
    zarr.create_array(session.store, name="x", shape=(count,), chunks=(1,), dtype="i8", compressors=None)
    session.commit("array")
    positions, url = (order(count) * 8).tolist(), f"file://{folder / 'elements'}"
    session = repository.writable_session("main")
    for start in range(0, count, ICECHUNK_BATCH):
        part = positions[start : start + ICECHUNK_BATCH]
        chunks = [icechunk.VirtualChunkSpec([start + n], url, offset, 8) for n, offset in enumerate(part)]
        session.store.set_virtual_refs("x", chunks)
    session.commit("chunks")


def icechunk_parts(folder: Path) -> tuple[Any, Any]:
    """The storage and configuration of the repository."""
    import icechunk

    configuration = icechunk.RepositoryConfig.default()
    store = icechunk.local_filesystem_store(str(folder))
    configuration.set_virtual_chunk_container(icechunk.VirtualChunkContainer(f"file://{folder}/", store))
    return icechunk.local_filesystem_storage(str(folder / "icechunk")), configuration


def by_hyperslab(name: str) -> Callable[[Path], Callable[[int], int]]:
    """Open either of the two forms with hyperslab."""

    def ready(folder: Path) -> Callable[[int], int]:
        import hyperslab

        if name == "refs.parquet":
            import pyarrow.parquet  # noqa: F401
        opened = hyperslab.open  # this imports it
        return lambda position: int(opened(folder / name)["x"][position])

    return ready


def by_kerchunk(folder: Path) -> Callable[[int], int]:
    """As in kerchunk's documentation: fsspec's mapper of the tables, and zarr."""
    import fsspec
    import pandas
    import pyarrow.parquet  # noqa: F401
    import zarr
    from fsspec.implementations.reference import LazyReferenceMapper

    pandas.set_option("future.infer_string", False)  # fsspec mistakes NaN, pandas 3's missing text, for a path

    def read(position: int) -> int:
        mapper = LazyReferenceMapper(str(folder / "refs.parquet"), fs=fsspec.filesystem("file"), engine="pyarrow")
        options = {"remote_protocol": "file", "asynchronous": True, "remote_options": {"asynchronous": True}}
        system = fsspec.filesystem("reference", fo=mapper, **options)
        store = zarr.storage.FsspecStore(system, read_only=True, path="")
        return int(zarr.open_group(store, mode="r", zarr_format=2)["x"][position])

    return read


def by_icechunk(folder: Path) -> Callable[[int], int]:
    """A repository with virtual chunks."""
    import icechunk
    import zarr

    if not (folder / "icechunk").exists():
        raise FileNotFoundError("icechunk: the repository was not written")

    def read(position: int) -> int:
        storage, configuration = icechunk_parts(folder)
        allowed = {f"file://{folder}/": getattr(icechunk.credentials, "LocalFileSystemAccess", None)}  # 1 takes None
        repository = icechunk.Repository.open(storage, configuration, authorize_virtual_chunk_access=allowed)
        return int(zarr.open_group(repository.readonly_session("main").store, mode="r")["x"][position])

    return read


SIDES = {
    OURS: by_hyperslab("refs.hs"),
    PARQUET: by_hyperslab("refs.parquet"),
    KERCHUNK: by_kerchunk,
    ICECHUNK: by_icechunk,
}


def run_side(name: str, folder: Path, position: int) -> None:
    """In a new process, print seconds, peak memory in bytes, and the element that was read."""
    read = SIDES[name](folder)
    start = time.perf_counter()
    value = read(position)
    seconds = time.perf_counter() - start
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert peak is not None
    print(json.dumps({"seconds": seconds, "peak_nbytes": int(peak[1]) * 1024, "value": value}))


def measure(folder: Path, count: int, turns: int) -> dict[str, Any]:
    """Measure the row."""
    position = count // 2
    expected = int(order(count)[position])
    samples: dict[str, list[dict[str, Any]]] = {name: [] for name in SIDES}

    def seconds_of(name: str) -> float:
        command = [sys.executable, "-W", "ignore", __file__, "--side", name, str(position), "--files", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1][:300])
        found = json.loads(done.stdout.splitlines()[-1])
        if found["value"] != expected:
            raise RuntimeError("wrong: it read something else")
        samples[name].append(found)
        return float(found["seconds"])

    absent: dict[str, str] = {}
    for name in SIDES:
        try:
            seconds_of(name)
        except RuntimeError as error:
            absent[name] = str(error)
    if OURS in absent:
        raise RuntimeError(f"hyperslab itself: {absent[OURS]}")
    interleaved({name: partial(seconds_of, name) for name in SIDES if name not in absent}, turns)
    samples = {name: found[-turns:] for name, found in samples.items()}  # without the warm-up turns
    return {"chunks": count, "turns": turns, "sides": sides(samples, absent), "samples": samples, **provenance()}


def sides(samples: dict[str, list[dict[str, Any]]], absent: dict[str, str]) -> dict[str, Any]:
    """What each side took, and our share of it."""
    made: dict[str, Any] = {}
    ours = [one["seconds"] for one in samples[OURS]]
    for name, found in samples.items():
        if name in absent:
            made[name] = {"status": absent[name]}
            continue
        seconds, peaks = [one["seconds"] for one in found], [one["peak_nbytes"] for one in found]
        made[name] = {"status": "measured", "seconds": float(np.median(seconds)), "peak_nbytes": max(peaks)}
        if name == OURS:
            made[name]["target"] = f"< {MOST_SECONDS:.0f} s, ≤ {MOST_NBYTES >> 20} MiB"
            made[name]["verdicts"] = [
                verdict(float(np.median(ours)), min(ours), max(ours), MOST_SECONDS),
                verdict(max(peaks), min(peaks), max(peaks), MOST_NBYTES),
            ]
        else:
            made[name] |= compared(ours, seconds)
    return made


def main() -> None:
    """Create the references, measure, print, and save the results if requested."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument(
        "--files", type=Path, help=("create the references here and leave them; existing ones are used again")
    )
    parser.add_argument("--only-make", action="store_true", help="create the references and measure nothing")
    parser.add_argument("--keep", action="store_true", help="save the results")
    parser.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.side:
        run_side(said.side[0], said.files, int(said.side[1]))
        return
    with tempfile.TemporaryDirectory(prefix="hyperslab-") as scratch:
        folder = (said.files or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        make(folder, said.chunks)
        if said.only_make:
            return
        results = measured(folder, said.chunks, said.turns)
    print(speed_table.references_markdown(results))
    if said.keep:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def measured(folder: Path, count: int, turns: int) -> dict[str, Any]:
    """The row with its machine and libraries."""
    from importlib.metadata import PackageNotFoundError, version

    from hyperslab.lab.environment import observe

    libraries = {}
    for name in ("hyperslab", "zarr", "fsspec", "pandas", "pyarrow", "icechunk"):
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"environment": asdict(observe(folder, [])), "libraries": libraries, **measure(folder, count, turns)}


if __name__ == "__main__":
    main()
