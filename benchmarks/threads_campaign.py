"""Programs with threads, each many times: which of them crash, hang, or get wrong values.

    python benchmarks/threads_campaign.py [--runs N] [--seed N] [--plain] [--at-once N] [--only LIBRARY ...]

Each run is a program of its own (`threads_program.py`), under `hyperslab run` unless `--plain` is given: 4 or 8 threads
read or write one file or several, by h5py, netCDF4, xarray with and without its lock, or PyTables. Every second one
serves small reads too. What a run draws follows from the seed and its number. Results are saved in
benchmarks/results/threads_campaign.json, beside those of the other way.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import peers
import threads_program

from hyperslab.lab.environment import observe

RESULTS = Path(__file__).parent / "results" / "threads_campaign.json"
PROGRAM = Path(threads_program.__file__)
RUN = [sys.executable, "-m", "hyperslab", "run", "--json", "--"]
MOST_SECONDS = 120
Case = tuple[str, str, str, int]


def cases(libraries: list[str]) -> list[Case]:
    """What is run: the library, reading or writing, the same file or several, and how many threads."""
    drawn = itertools.product(libraries, ("read", "write"), ("same", "different"), (4, 8))
    can_share = threads_program.SHARED
    return [case for case in drawn if case[1:3] != ("write", "same") or case[0] in can_share]


def run(case: Case, seed: int, folder: Path, plain: bool) -> tuple[str, int]:
    """Run one program: "right", or what went wrong; and how often its threads waited."""
    words = [sys.executable, str(PROGRAM), *map(str, case), str(seed), str(folder)]
    environment = {**os.environ, "HYPERSLAB_SERVE_SMALL": str(seed % 2)}
    try:
        done = subprocess.run(
            words if plain else [*RUN, *words], capture_output=True, text=True, env=environment, timeout=MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return "hung", 0
    said = done.stderr.splitlines()
    if done.returncode < 0:
        return "crashed", 0
    waits = 0 if plain else json.loads(said[-1])["waits"]["count"]
    if done.stdout == "right\n" and done.returncode == 0:
        return "right", waits
    print(done.stderr[-500:])
    return ("wrong values" if "wrong values" in done.stderr else "an error"), waits


def campaign(runs: int, seed: int, folder: Path, plain: bool, at_once: int, libraries: list[str]) -> dict[str, Any]:
    """Run all, and count what became of them, by case."""
    known = cases(libraries)
    drawn = [(known[number % len(known)], seed * 1_000_000 + number) for number in range(runs)]
    found: dict[Case, Counter[str]] = {case: Counter() for case in known}
    with ThreadPoolExecutor(at_once) as pool:
        results = pool.map(lambda one: run(*one, folder, plain), drawn)
        for number, ((case, own), (became, waits)) in enumerate(zip(drawn, results, strict=True)):
            found[case].update({became: 1, "waits": waits})
            if became != "right":
                print(f"{became}: {' '.join(map(str, case))}, seed {own}", flush=True)
            elif number % 100 == 99:
                print(f"{number + 1} of {runs}", flush=True)
    return {"runs": runs, "seed": seed, **totals(found), "cases": list(rows(found))}


def totals(found: dict[Case, Counter[str]]) -> dict[str, int]:
    """The sums over all cases."""
    sums = sum(found.values(), Counter[str]())
    return {name: sums[name] for name in ("right", "crashed", "hung", "wrong values", "an error", "waits")}


def rows(found: dict[Case, Counter[str]]) -> Iterator[dict[str, Any]]:
    """A row for each case."""
    for (library, action, sharing, count), became in found.items():
        yield {"library": library, "action": action, "file": sharing, "threads": count, **became}


def main() -> None:
    """Run the campaign, and save its counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="without `hyperslab run`")
    parser.add_argument("--at-once", type=int, default=1, help="how many programs run at a time")
    parser.add_argument("--only", nargs="+", choices=threads_program.READS, default=list(threads_program.READS))
    said = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hyperslab-") as folder:
        threads_program.made(Path(folder))
        found = campaign(said.runs, said.seed, Path(folder), said.plain, said.at_once, said.only)
    print({name: value for name, value in found.items() if name != "cases"})
    saved = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    saved["without us" if said.plain else "hyperslab run"] = found
    saved["environment"] = asdict(observe(Path(tempfile.gettempdir()), [])) | {"libraries": peers.versions()}
    RESULTS.write_text(json.dumps(saved, indent=1) + "\n")


if __name__ == "__main__":
    main()
