"""The command line of the speed tables: which rows, how much data, where files go, and which results to keep."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import kept
import peers
import speed_table
from files import Files

from hyperslab.lab.environment import observe

QUICK_MEGABYTES = 64
Groups = dict[str, Callable[[], Iterator[dict[str, Any]]]]


def arguments(about: str) -> argparse.Namespace:
    """Parse the command line. `about` is the script's docstring."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="groups of rows")
    parser.add_argument("--quick", action="store_true", help="less data and three turns; does not save results")
    parser.add_argument(
        "--files", type=Path, help=("create the files here and leave them; files that exist are used again")
    )
    parser.add_argument("--list", action="store_true", help="names of the groups")
    return parser.parse_args()


def limit_processors() -> None:
    """Give every side the same two processors, before any of them starts threads."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: peers.THREADS])
    os.environ["RAYON_NUM_THREADS"] = str(peers.THREADS)


@contextmanager
def directory(said: argparse.Namespace) -> Iterator[Path]:
    """The directory for files: a temporary one, unless the user gave one."""
    with tempfile.TemporaryDirectory(prefix="hyperslab-") as scratch:
        chosen = (said.files or Path(scratch)).resolve()
        chosen.mkdir(parents=True, exist_ok=True)
        yield chosen


def run_locally(about: str, groups: Callable[[Files, bool], Groups], path: Path, megabytes: int) -> None:
    """Run the whole script of a table of local files; `groups` makes its rows from the files and `--quick`."""
    said = arguments(about)
    limit_processors()
    with directory(said) as where:
        known = groups(Files(where, QUICK_MEGABYTES if said.quick else megabytes), said.quick)
        run(said, known, path, peers.versions(), where, megabytes=megabytes)


def run(
    said: argparse.Namespace, known: Groups, path: Path, libraries: dict[str, str], where: Path, **about: Any
) -> None:
    """Measure and print the rows of the chosen groups. Results are saved in `path` unless the run is a quick one."""
    if said.list:
        print(*known, sep="\n")
        return
    unknown = set(said.only or ()) - set(known)
    if unknown:
        sys.exit(f"unknown group {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
    environment = asdict(observe(where, [])) | {"libraries": libraries}
    results = {} if said.quick else kept.begun(path, environment, not said.only, **about)
    for name in said.only or known:
        print(f"{name}:", flush=True)
        for made in known[name]():
            print(speed_table.lines(made), flush=True)
            if results:
                kept.keep(path, results, made | {"group": name}, list(known))
