"""Is `hyperslab advise` right on programs drawn by seeds? Forty are traced, priced, advised, and run again.

    python benchmarks/advice_programs.py [--seed N] [--count N] [--scale FACTOR] [--turns N] [--only NUMBER ...]
                                         [--files DIRECTORY] [--profile FILE] [-o FILE]

Each program is a file of 20 to 150 MB with a script that reads it: the patterns that `hyperslab trace show` names, by
the idioms of h5py, xarray, netCDF4, pandas and zarr-python. The program is traced on a cold file. `predict --trace`
prices it, and its seconds are compared with those that the program takes for its reads, cold. `advise` is asked, and
`convert --like` applies what it says. Then the program itself runs on today's file, on the advised copy, and on six
other layouts, each with the plain library and under `hyperslab run`. Where the advice is to keep the file and to open
the array once, before the loop, the program does so in the place of the advised copy. The runs are interleaved in
random order, and each has a cold file, which is proved. All follows from the seed, but for the seconds. Run it while
nothing else runs, after `hyperslab calibrate`. Results are saved program by program in
benchmarks/results/advice_programs.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import advice_drawn
import advice_table
import comparison
import numpy as np
import peers
from advice_drawn import Drawn, Shape, cube, slab, tall
from forked_programs import Ran, Server
from typer.testing import CliRunner

from hyperslab.cli.program import app
from hyperslab.lab import cache
from hyperslab.lab.environment import observe

RESULTS = Path(__file__).parent / "results" / "advice_programs.json"
HYPERSLAB = [sys.executable, "-m", "hyperslab"]
RUN = [*HYPERSLAB, "run", "--quiet", "--"]
TODAY, ADVISED = "today", "advised"
ONCE = "open the array once"
"""What is advised where a loop opens the array each time, and HDF5's chunk cache goes with it."""
MOST_SECONDS = 10.0
"""A run that takes longer is ended."""
HOPELESS = 3.0
"""A layout whose first run took so many times as long as the fastest one gets no more turns."""
CLOSE = (1.08, 1.8)
"""If the advised layout takes between so many times as long as the best of six, both get more turns."""


@dataclass
class Column:
    """One way to run the program: the seconds of each layout's runs."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def median(self, name: str) -> float | None:
        """The median of a layout; None if it has no run."""
        took = self.seconds.get(name)
        return statistics.median(took) if took else None

    def best(self) -> tuple[str, float] | None:
        """The fastest layout of the six others."""
        others = {name: statistics.median(took) for name, took in self.seconds.items() if name not in (TODAY, ADVISED)}
        return min(others.items(), key=lambda one: one[1]) if others else None


def others(drawn: Drawn) -> dict[str, tuple[Shape | None, str]]:
    """Six other layouts that somebody might try by hand: chunks (None: in one piece) and codec."""
    shape, element = drawn.shape, np.dtype(drawn.dtype).itemsize
    if drawn.idiom.format == "table":
        element *= shape[1]
        shape = shape[:1]
    codec = drawn.codec
    if len(shape) == 1:
        sizes = {"16 KiB": 16e3, "64 KiB": 64e3, "256 KiB": 256e3, "1 MiB": 1e6, "4 MiB": 4e6}
        made: dict[str, tuple[Shape | None, str]] = {
            name: (slab(shape, element, nbytes), codec) for name, nbytes in sizes.items()
        }
    else:
        box = drawn.box
        made = {
            "slabs": (slab(shape, element, 1e6), codec),
            "tall": (tall(shape, element, 1e6), codec),
            "cubes": (cube(shape, element, 5e5), codec),
            "as selected": (_near(box, shape, element), codec),
            "small cubes": (cube(shape, element, 6e4), codec),
        }
    if drawn.idiom.format in ("zarr3", "table"):
        made["without codec"] = (slab(shape, element, 5e5), "none" if codec != "none" else _usual(drawn))
    else:
        made["in one piece"] = (None, "none")
    return made


def _usual(drawn: Drawn) -> str:
    return "zstd:3" if drawn.idiom.format == "zarr3" else "shuffle+deflate:4"


def _near(box: Shape, shape: Shape, element: int) -> Shape:
    """Chunks like what is selected, between 32 KiB and 2 MiB."""
    made = list(box)
    for axis in sorted(range(len(box)), key=lambda axis: -made[axis]):
        over = np.prod(made) * element / 2e6
        if over > 1:
            made[axis] = max(1, round(made[axis] / over))
    for axis in range(len(box)):
        under = 32e3 / (np.prod(made) * element)
        if under > 1:
            made[axis] = min(shape[axis], max(1, round(made[axis] * under)))
    return tuple(int(one) for one in made)


# --- our commands ---------------------------------------------------------------------------------------------


class Refusal(Exception):
    """A command of ours did not do what it was asked to do."""


def command(*words: str | Path) -> str:
    """What a command of ours prints; it runs in this process, so that Python does not start anew."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exit_code != 0:
        said = f"{done.exception} {done.output}"
        raise Refusal(f"{words[0]}: {said.strip()[-400:]}")
    return done.stdout


def traced(drawn: Drawn, file: Path, folder: Path) -> Path:
    """Run the program under `hyperslab trace` on a cold file."""
    script, trace = folder / "script.py", folder / "run.trace"
    script.write_text(drawn.text)
    make_cold(file)
    words = [*HYPERSLAB, "trace", "--quiet", "-o", str(trace), "--", sys.executable, str(script), str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refusal(f"trace: {done.stderr[-400:]}")
    return trace


def make_cold(path: Path) -> str | None:
    """Evict a file or folder: why it is not cold, or None."""
    files = cache.files_below(path)
    cache.evict(files, others=path.is_dir())
    resident = cache.resident_fraction(files)
    return cache.why_not("cold", resident, 1, 1)


def is_timed(drawn: Drawn, array: str) -> bool:
    """Whether the seconds of the program contain the reads of an array: not so for coordinates, which opening reads."""
    name = array.strip("/")
    return name == drawn.idiom.array or (drawn.idiom.format in ("fixed", "table") and name.startswith("x/"))


def predicted(drawn: Drawn, trace: Path, profile: list[str]) -> dict[str, Any]:
    """What `predict --trace` says of the arrays that the program's seconds are for."""
    said = json.loads(command("predict", "--trace", trace, *profile, "--json"))
    arrays = [one for one in said["arrays"] if is_timed(drawn, one["array"])]
    known = [one["predicted_seconds"] for one in arrays]
    return {
        "predicted": None if None in known or not known else sum(known),
        # which no trace times
        "opening": sum(one["counsel"][name] or 0.0 for one in arrays for name in ("opening_seconds", "own_seconds")),
        "low": sum(one["counsel"]["low"] or 0.0 for one in arrays),
        "high": sum(one["counsel"]["high"] or 0.0 for one in arrays),
        "traced": sum(one["measured_seconds"] for one in arrays),
        "tips": [tip["what"] for one in arrays for tip in one["counsel"]["tips"]],
    }


def advised(file: Path, trace: Path, folder: Path, profile: list[str]) -> dict[str, Any]:
    """What `advise` says, and the advice file if it is not to keep all as it is."""
    advice = folder / "advice.json"
    target = ["--target", *profile[1:]] if profile else []
    began = time.perf_counter()
    said = json.loads(command("advise", file, "--trace", trace, *target, "-o", advice, "--json"))
    wished = json.loads(advice.read_text())["arrays"] if advice.exists() else {}
    return {
        "advice_seconds": time.perf_counter() - began,
        "verdicts": {one["array"]: one["verdict"] for one in said["arrays"]},
        "chosen": {one["array"]: one.get("chosen") for one in said["arrays"]},
        "keep": all(one.get("keep", False) for one in wished.values()),
        "options": {one["array"]: [_known(option) for option in one["options"]] for one in said["arrays"]},
    }


def _known(option: Mapping[str, Any]) -> dict[str, Any]:
    """What was predicted for a layout, so that one can see why the advice was wrong."""
    return {name: option.get(name) for name in ("title", "label", "seconds", "with_run", "unknown", "refused")}


def convert(drawn: Drawn, file: Path, target: Path, chunks: Shape | None, codec: str) -> None:
    """Write the file with another layout of its array."""
    path = drawn.idiom.array
    cut = "contiguous" if chunks is None else ",".join(map(str, chunks))
    more = ["--verify", "none", "--overwrite"]
    command("convert", file, target, "--chunks", f"{path}:{cut}", "--codec", f"{path}:{codec}", *more)


# --- a program ------------------------------------------------------------------------------------------------


class Trials:
    """The runs of one program on all its layouts, in the columns that are possible for it."""

    def __init__(
        self,
        drawn: Drawn,
        files: Mapping[str, Path],
        servers: Mapping[str, Server],
        turns: int,
        texts: Mapping[str, str],
    ) -> None:
        self.drawn, self.files, self.servers, self.turns, self.texts = drawn, files, servers, turns, texts
        self.random = np.random.default_rng((drawn.seed, drawn.number, 2))
        self.columns = {name: Column() for name in servers}
        self.printed: set[str] = set()
        self.device_nbytes: dict[str, int] = {}

    def measure(self) -> None:
        """One turn of all, more turns of those that may be the best, and more of advice that is a close call."""
        self._turn({name: list(self.files) for name in self.columns})
        for _ in range(self.turns - 1):
            self._turn({name: self._hopeful(column) for name, column in self.columns.items()})
        for _ in range(2 * self.turns):
            close = {name: self._close(column) for name, column in self.columns.items()}
            if not any(close.values()):
                break
            self._turn(close)

    def _turn(self, layouts: Mapping[str, list[str]]) -> None:
        pairs = [(column, layout) for column, each in layouts.items() for layout in each]
        for place in self.random.permutation(len(pairs)).tolist():
            self._run(*pairs[place])

    def _run(self, column: str, layout: str) -> None:
        path = self.files[layout]
        mine = self.columns[column]
        if layout in mine.problems:
            return
        not_cold = make_cold(path)
        ran: Ran = self.servers[column].run(self.texts.get(layout, self.drawn.text), path, MOST_SECONDS)
        if ran.error is not None or ran.seconds is None:
            mine.problems[layout] = ran.error or "it failed"
            return
        self.printed.add(ran.printed)
        if not_cold is None and ran.device_nbytes > 0:
            mine.seconds.setdefault(layout, []).append(ran.seconds)
            self.device_nbytes[layout] = ran.device_nbytes

    def _hopeful(self, column: Column) -> list[str]:
        known = {name: seconds for name in self.files if (seconds := column.median(name)) is not None}
        least = min(known.values(), default=0.0)
        return [name for name, took in known.items() if took < HOPELESS * least or name in (TODAY, ADVISED)]

    def _close(self, column: Column) -> list[str]:
        """The advised layout and its rivals, if it is not sure yet how they compare."""
        ours = column.median(ADVISED if ADVISED in self.files else TODAY)
        best, today = column.best(), column.median(TODAY)
        if ours is None or best is None or today is None:
            return []
        name = ADVISED if ADVISED in self.files else TODAY
        listed = [best[0]] if CLOSE[0] < ours / best[1] < CLOSE[1] else []
        listed += [TODAY] if name == ADVISED and 0.8 < ours / today < 1.5 else []
        return [name, *listed] if listed else []


def tried(drawn: Drawn, folder: Path, servers: Mapping[str, Server], turns: int, profile: list[str]) -> dict[str, Any]:
    """All that is found out about one program."""
    row = facts(drawn)
    file = advice_drawn.make_file(drawn, folder)
    cache.make_durable(file)
    row["stored_nbytes"] = cache.disk_usage(file)[0]
    files, texts = {TODAY: file}, dict[str, str]()
    try:
        trace = traced(drawn, file, folder)
        row |= predicted(drawn, trace, profile)
        row |= advised(file, trace, folder, profile)
        if not row["keep"]:
            target = folder / f"advised{drawn.idiom.suffix}"
            command("convert", file, target, "--like", folder / "advice.json", "--verify", "none")
            files[ADVISED] = target
        elif drawn.opens_once is not None and any(ONCE in verdict for verdict in row["verdicts"].values()):
            files[ADVISED], texts[ADVISED] = file, drawn.opens_once
    except Refusal as error:
        row["refused"] = str(error)
    for name, (chunks, codec) in others(drawn).items():
        target = folder / f"{name.replace(' ', '-')}{drawn.idiom.suffix}"
        try:
            convert(drawn, file, target, chunks, codec)
        except Refusal as error:
            row.setdefault("not_written", {})[name] = str(error)
            continue
        files[name] = target
    for path in files.values():
        cache.make_durable(path)
    possible = {name: one for name, one in servers.items() if name == "plain" or drawn.idiom.format != "zarr3"}
    trials = Trials(drawn, files, possible, turns, texts)
    trials.measure()
    return row | compared(trials, row)


def facts(drawn: Drawn) -> dict[str, Any]:
    """What was drawn."""
    return {
        "number": drawn.number, "seed": drawn.seed, "idiom": drawn.idiom.name, "pattern": drawn.pattern.name,
        "shape": drawn.shape, "dtype": drawn.dtype, "chunks": drawn.chunks, "codec": drawn.codec,
        "calls": drawn.calls, "nbytes": drawn.nbytes, "program": drawn.text,
    }  # fmt: skip


def compared(trials: Trials, row: Mapping[str, Any]) -> dict[str, Any]:
    """The ratios that the tables are made of."""
    plain = trials.columns["plain"]
    today = plain.median(TODAY)
    guess = row.get("predicted")
    made: dict[str, Any] = {
        "measured": today,
        "predicted_over_measured": guess / today if guess and today else None,
        "predicted_over_traced": (guess - row["opening"]) / row["traced"] if guess and row["traced"] else None,
        "is_deterministic": len(trials.printed) == 1,
        "device_nbytes": trials.device_nbytes,
        "layouts": {name: cache.disk_usage(path)[0] for name, path in trials.files.items()},
        "columns": {},
    }
    for name, column in trials.columns.items():
        ours, best = column.median(ADVISED if ADVISED in trials.files else TODAY), column.best()
        mine = column.median(TODAY)
        made["columns"][name] = {
            "seconds": column.seconds,
            "problems": column.problems,
            "best": best,
            "advised_over_best": ours / best[1] if ours and best else None,
            "advised_over_today": ours / mine if ours and mine else None,
        }
    return made


# --- the campaign ---------------------------------------------------------------------------------------------


def campaign(said: argparse.Namespace, where: Path) -> Iterator[dict[str, Any]]:
    """The rows of all programs, one after the other."""
    profile = ["--profile", str(said.profile)] if said.profile else []
    pairs = advice_drawn.paired(said.seed, said.count)
    numbers = [number for number in range(said.count) if not said.only or number in said.only]
    libraries = list(dict.fromkeys(name for number in numbers for name in pairs[number][0].libraries))
    with ExitStack() as ended:
        servers = {"plain": Server(libraries), "run": Server(libraries, RUN)}
        for one in servers.values():
            ended.callback(one.close)
        for number in numbers:
            idiom, pattern = pairs[number]
            drawn = advice_drawn.draw(number, said.seed, idiom, pattern, said.scale)
            folder = where / f"program-{number}"
            folder.mkdir()
            began = time.perf_counter()
            try:
                row = tried(drawn, folder, servers, said.turns, profile)
            finally:
                shutil.rmtree(folder)
            yield row | {"row_seconds": time.perf_counter() - began}


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--scale", type=float, default=1.0, help="of the files: 1 means 20 to 150 MB")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="these programs only")
    parser.add_argument("--files", type=Path, help="a directory on the file system that was calibrated")
    parser.add_argument("--profile", type=Path, help="the store profile, if it is not where `calibrate` saves it")
    parser.add_argument("-o", "--output", type=Path, default=None)
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    """Run the campaign, print a line for each program and the summary, and save all."""
    said = arguments(words)
    whole = said.scale == 1.0 and said.only is None
    output = said.output or (RESULTS if whole else None)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the files are removed then too
    try:
        _save_campaign(said, output)
    finally:
        signal.signal(signal.SIGTERM, before)


def _save_campaign(said: argparse.Namespace, output: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="hyperslab-", dir=said.files) as scratch:
        where = Path(scratch)
        results: dict[str, Any] = {
            "seed": said.seed, "count": said.count, "scale": said.scale, "turns": said.turns, **comparison.provenance(),
            "environment": asdict(observe(where, [])) | {"libraries": peers.versions()}, "programs": [],
        }  # fmt: skip
        for row in campaign(said, where):
            results["programs"].append(row)
            print(advice_table.line(row), flush=True)
            if output is not None:
                output.write_text(json.dumps(results, indent=1) + "\n")
    print(advice_table.summary(results))


if __name__ == "__main__":
    main()
