"""`hyperslab audit` says which files are slow from far or from disk, why, and which command makes them fast."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperslab.cli.archives import allowed_prefixes, storage_options
from hyperslab.cli.arguments import Allowed, Options
from hyperslab.cli.output import console, line
from hyperslab.cli.progress import after, live
from hyperslab.cli.sizes import nbytes_of
from hyperslab.errors import RunError, UsageError
from hyperslab.meant import meant_or_choose

if TYPE_CHECKING:
    from hyperslab.audit.distance import Distance
    from hyperslab.audit.file_audit import FileAudit
    from hyperslab.audit.judging import Question
    from hyperslab.audit.ledger import Ledger, Sums

QUIET_SECONDS = 2.0
WORST = 20
KINDS = (".html", ".json", ".parquet")


def audit(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="file...",
            show_default=False,
            help="Files, Zarr folders, URLs, quoted patterns, and folders: each stands for all array files below it.",
        ),
    ],
    round_trip: Annotated[float, typer.Option(help="Milliseconds from here to the server and back.")] = 40.0,
    bandwidth: Annotated[str, typer.Option(help="Bytes that the server sends in a second.")] = "100MB",
    trace: Annotated[
        Path | None, typer.Option(help="Judge by the accesses of this trace instead of the usual ones.")
    ] = None,
    store_profile: Annotated[
        Path | None, typer.Option("--profile", help="Store profile (default: the one from `calibrate`).")
    ] = None,
    require: Annotated[
        str | None, typer.Option(help="cloud or cmip7: the exit status is 1 if a file does not suit this purpose.")
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option("-o", "--output", help="Also write a page (.html), or every file's facts (.json, .parquet)."),
    ] = None,
    worst: Annotated[int, typer.Option(help="How many files to print, the worst first.")] = WORST,
    threads: Annotated[int | None, typer.Option(help="Number of files to audit at a time.")] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Audit on the workers of the Dask scheduler with this address.")
    ] = None,
    option: Options = None,
    allowed: Allowed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show which files are slow to read from a server or a disk, why, and which commands make them fast.

    A file is judged from its metadata alone. The exit status is 1 if a file cannot be read, or is not as required.

    Example: hyperslab audit archive/ -o audit.html
    Example: hyperslab audit 's3://bucket/cmip7/*.nc' --require cmip7
    """
    _check(require, output or [], scheduler, trace, worst)
    distance = _distance(round_trip, bandwidth)
    from hyperslab.audit.auditing import audits
    from hyperslab.audit.judging import Question
    from hyperslab.audit.ledger import Ledger
    from hyperslab.audit.traced import TracedFiles
    from hyperslab.model.store_profile import profile_if_any

    question = Question(
        distance, storage_options(option or []), allowed_prefixes(allowed), require, profile_if_any(store_profile),
        None if trace is None else TracedFiles(trace),
    )  # fmt: skip
    with Ledger() as ledger:
        with live(console(stderr=True), "files") as progress:
            show = after(QUIET_SECONDS, progress)
            for found in audits(files, question, threads=threads, scheduler=scheduler):
                ledger.add(found)
                show(found.name, ledger.sums.file_count, 0)
        for path in output or []:
            _write(path, ledger, question)
        if as_json:
            _print_json(ledger, question)
        else:
            _print(ledger, distance, worst)
        _end(ledger.sums, require)


def _check(require: str | None, output: list[Path], scheduler: str | None, trace: Path | None, worst: int) -> None:
    """Refuse what cannot end well, before any file is opened."""
    from hyperslab.needed import need

    if require not in (None, "cloud", "cmip7"):
        raise UsageError(f"--require {require} is unknown{meant_or_choose(require, ('cloud', 'cmip7'))}")
    if worst < 0:
        raise UsageError(f"--worst is {worst}: use at least 0")
    for path in output:
        if path.suffix not in KINDS:
            raise UsageError(f"the name {path} does not say what to write: end it with {', '.join(KINDS)}")
        if not path.absolute().parent.is_dir():
            raise UsageError(f"there is no folder {path.absolute().parent} to write {path.name} to: create it first")
        if path.suffix == ".parquet":
            need("-o audit.parquet", "pyarrow")
    if scheduler is not None:
        need("--scheduler", "distributed")
        if trace is not None:
            raise UsageError("--trace is read in this process: leave --scheduler out")


def _distance(round_trip: float, bandwidth: str) -> Distance:
    from hyperslab.audit.distance import Distance

    nbytes = nbytes_of(bandwidth, "--bandwidth") or 0
    if not 0 <= round_trip < 1e6:
        raise UsageError(f"--round-trip {round_trip} is no time between 0 and 1,000,000 ms")
    if nbytes < 1:
        raise UsageError(f"--bandwidth {bandwidth} is too small: name the bytes of a second, such as 100MB")
    return Distance(round_trip / 1000, float(nbytes))


def _write(path: Path, ledger: Ledger, question: Question) -> None:
    from hyperslab.replacing import replacing

    if path.suffix == ".html":
        from hyperslab.report.audit_page import write_page

        write_page(path, ledger, question.distance)
    elif path.suffix == ".parquet":
        from hyperslab.audit.parquet import write_parquet

        write_parquet(path, ledger)
    else:
        with replacing(path) as beside, beside.open("w", encoding="utf-8") as file:
            file.writelines(_json_parts(ledger, question))


def _print_json(ledger: Ledger, question: Question) -> None:
    for part in _json_parts(ledger, question):
        sys.stdout.write(part)


def _json_parts(ledger: Ledger, question: Question) -> Iterator[str]:
    """The document in parts: of very many files, it never stands in memory as a whole."""
    distance = question.distance
    head = {
        "round_trip_seconds": distance.round_trip_seconds, "nbytes_per_second": distance.nbytes_per_second,
        "require": question.require, "archive": ledger.sums.to_dict(),
    }  # fmt: skip
    yield json.dumps(head, indent=1)[:-2] + ',\n "files": ['
    for number, one in enumerate(ledger.worst_first()):
        yield ("," if number else "") + "\n  " + json.dumps(one.to_dict())
    yield "\n ]\n}\n"


def _print(ledger: Ledger, distance: Distance, worst: int) -> None:
    from hyperslab.audit.words import file_lines, group_lines, sum_lines

    out, sums = console(), ledger.sums

    def say(text: str) -> None:
        out.print(line(text), soft_wrap=True)

    if sums.file_count == 1:
        (only,) = ledger.worst_first()
        first, *others = file_lines(only, distance)
        say(f"{only.name}: {first}")
        for text in others:
            say(text)
        return
    for text in (*sum_lines(sums, distance), *group_lines(sums.worst_groups())):
        say(text)
    shown = [one for one, _ in zip(ledger.worst_first(), range(worst), strict=False) if _is_shown(one)]
    for one in shown:
        say("")
        say(f"{one.name}: {one.grade}: {one.reason}")
        for text in _below(one):
            say(text)
    hidden = sums.file_count - sums.grades["good"] - len(shown)
    if hidden > 0:
        say(f"… and {hidden:,} more that are not good: -o audit.html or --json has all of them")


def _is_shown(one: FileAudit) -> bool:
    return one.grade != "good" or bool(one.unmet)


def _below(one: FileAudit) -> Iterator[str]:
    from hyperslab.audit.words import remedy_lines

    yield from remedy_lines(one)
    yield from (f"required, but not met: {said}" for said in one.unmet)


def _end(sums: Sums, require: str | None) -> None:
    from hyperslab.archive.views import display

    files = display.counted(sums.file_count, "file", "files")
    if require is not None and sums.unmet_count:
        verb = "does" if sums.unmet_count == 1 else "do"
        raise RunError(f"{sums.unmet_count:,} of {files} {verb} not meet --require {require}")
    if sums.unreadable_count:
        verb = "is" if sums.unreadable_count == 1 else "are"
        raise RunError(f"{sums.unreadable_count:,} of {files} {verb} damaged or cannot be read")
