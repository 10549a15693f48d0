"""Judging many files by the rule of CMIP7: `hyperslab audit`, which says much more of each, and `check_cmip7_packing`.

    python benchmarks/audit_speed.py [--files N] [--quick] [--keep]

N files (1,000) of eleven arrays each, half of which pass, warm. Each side is a process of its own, as users start it.
The row is printed; `--keep` writes benchmarks/results/audit_speed.json, with the files a second of each side.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import speed_table
from comparison import OURS, Row, Side, measure

RESULTS = Path(__file__).parent / "results" / "audit_speed.json"
FILES, DISTINCT, TURNS = 1000, 10, 9
CHECK, TARGET = "check_cmip7_packing", 0.5


def make(folder: Path, count: int) -> list[Path]:
    """Files of a model: time steps in one chunk or in many, eight fields."""
    names = [folder / f"{number:05}.nc" for number in range(count)]
    for number, path in enumerate(names):
        if number >= DISTINCT:
            shutil.copy(names[number % DISTINCT], path)
            continue
        with h5py.File(path, "w", meta_block_size=1 << 17) as made:
            made.attrs["variable_id"] = "v0"
            made.create_dataset("time", data=np.arange(60.0), chunks=(60 if passes(number) else 1,))
            for name, length in (("lat", 61), ("lon", 62)):
                made[name] = np.arange(float(length))
            for variable in range(8):
                shape, chunks = (60, 61, 62), (60 if variable == 0 else 1 + number, 61, 62)
                made.create_dataset(f"v{variable}", data=np.ones(shape, "f4"), chunks=chunks, compression="gzip")
    return names


def passes(number: int) -> bool:
    """Whether a file has what is asked."""
    return number % 2 == 0


def by_us(names: list[Path]) -> list[bool]:
    """What `hyperslab audit` says of each file."""
    line = [sys.executable, "-m", "hyperslab", "audit", str(names[0].parent), "--require", "cmip7", "--json"]
    said = subprocess.run(line, capture_output=True, text=True, check=False).stdout
    unmet = {one["name"]: one["unmet"] for one in json.loads(said)["files"]}
    return [unmet[str(name)] == [] for name in names]


def by_check(names: list[Path]) -> list[bool]:
    """What the check of CMIP7 says of each file."""
    tool = Path(sys.executable).with_name(CHECK)
    said = subprocess.run([str(tool), *map(str, names)], capture_output=True, text=True, check=False).stdout
    verdicts = {line.split("'")[1]: line.startswith("PASS") for line in said.splitlines()}
    return [verdicts[str(name)] for name in names]


def main() -> None:
    """Create the files, measure, print, and save the results if requested."""
    from hyperslab.lab.environment import observe

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--quick", action="store_true", help="three turns")
    parser.add_argument("--keep", action="store_true", help="save the results")
    said = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hyperslab-") as scratch:
        names = make(Path(scratch).resolve(), said.files)
        sides = {OURS: lambda: Side(lambda: by_us(names)), CHECK: lambda: Side(lambda: by_check(names))}
        expected = [passes(number % DISTINCT) for number in range(said.files)]
        row = Row("audit", f"{said.files:,} files judged", names, expected, sides, {CHECK: TARGET}, turns=TURNS)
        result: dict[str, Any] = measure(row, said.quick)
        result["files_per_second"] = {name: said.files / took for name, took in result["seconds"].items()}
        result["environment"] = asdict(observe(Path(scratch), []))
    print(speed_table.lines(result))
    print({name: round(speed) for name, speed in result["files_per_second"].items()}, "files a second")
    if said.keep:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
