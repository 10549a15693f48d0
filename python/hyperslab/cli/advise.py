"""`hyperslab advise` says which layout an array should have for what your program asks of it."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperslab.cli.archives import storage_options
from hyperslab.cli.arguments import Options
from hyperslab.cli.output import console, line
from hyperslab.errors import UsageError

if TYPE_CHECKING:
    from hyperslab.advise.applying import Application
    from hyperslab.advise.asking import Question
    from hyperslab.advise.limits import Limits
    from hyperslab.advise.results import ArrayAdvice
    from hyperslab.advise.stored import StoredArray
    from hyperslab.model.store_profile import StoreProfile

SHOWN = 12
Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE[:ARRAY]]...", help="Files, or an array (default: those that the trace names)."),
]


def advise(
    targets: Targets = None,
    trace: Annotated[
        list[Path] | None,
        typer.Option("--trace", help="What `hyperslab trace` recorded; TRACE:3 counts it three times. Repeatable."),
    ] = None,
    workload: Annotated[Path | None, typer.Option(help="A YAML file with reads and writes.")] = None,
    like: Annotated[str | None, typer.Option(help='What you do, in words, such as "maps 3 and series 1".')] = None,
    place: Annotated[
        str, typer.Option("--target", help="Where the file will be: local, or a store profile from `calibrate`.")
    ] = "local",
    keep: Annotated[
        str | None,
        typer.Option(help="Keep this format: hdf5 or netcdf; any: also those that your program cannot open."),
    ] = None,
    codecs: Annotated[
        str, typer.Option(help="own: codecs that your program's own library decodes; any: all of them.")
    ] = "own",
    max_files: Annotated[int | None, typer.Option(help="The most files that the stored array may have.")] = None,
    memory: Annotated[str | None, typer.Option(help="The most memory for chunks, such as 256MiB.")] = None,
    min_chunk: Annotated[str | None, typer.Option(help="The smallest chunk, decoded, such as 64KiB.")] = None,
    max_chunk: Annotated[str | None, typer.Option(help="The largest chunk, decoded, such as 8MiB.")] = None,
    max_size: Annotated[str | None, typer.Option(help="The largest stored array, such as 2GB.")] = None,
    append_axis: Annotated[str | None, typer.Option(help="The axis that must be able to grow.")] = None,
    price_per_request: Annotated[float | None, typer.Option(help="The price of one request, in your currency.")] = None,
    verify: Annotated[
        int | None,
        typer.Option("--verify", help="Write the best K layouts and the present one, and measure them.", metavar="K"),
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="`--verify` replays the calls, and does not run the traced program again.")
    ] = False,
    scratch: Annotated[Path | None, typer.Option(help="Where `--verify` writes (default: beside the file).")] = None,
    sample: Annotated[
        str, typer.Option(help="The largest array that `--verify` writes in full; of larger ones it writes a part.")
    ] = "256MiB",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the advice for `convert --like`.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with a figure into this file.")] = None,
    option: Options = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Recommend the layout that makes your accesses fast, and what helps without rewriting.

    Arrays that are alike, also in several files, get one advice, and one command applies it to all of them.

    Example: hyperslab advise ocean.nc:sst --trace run.trace -o advice.json
    Example: hyperslab advise ocean.nc:sst --like "maps and series" --verify 3
    Example: hyperslab advise --trace run.trace -o advice.json
    """
    from hyperslab.advise.answering import answer
    from hyperslab.advise.applying import applications
    from hyperslab.advise.several import ask_about
    from hyperslab.cli.predict_array import profile_text
    from hyperslab.cli.sizes import nbytes_of

    log = console(stderr=True)
    _check(keep, codecs, verify)
    sizes = [
        nbytes_of(memory, "--memory"), nbytes_of(min_chunk, "--min-chunk"), nbytes_of(max_chunk, "--max-chunk"),
        nbytes_of(max_size, "--max-size"),
    ]  # fmt: skip
    most_sampled = nbytes_of(sample, "--sample") or 0
    question = ask_about(
        targets or [], list(map(_weighted, trace or [])), workload, like, storage_options(option or [])
    )
    profile = _profile(place, question.file, log)
    if verify is not None and profile.is_far:
        raise UsageError("--verify measures on this machine: leave it out, or leave --target out")
    show = (lambda what: log.print(line(f"searching: {what}"), soft_wrap=True)) if log.is_terminal else lambda _: None
    limits_of = partial(_limits, sizes, max_files, append_axis, keep, price_per_request, codecs)
    advised = answer(question, profile, limits_of, show)
    for one in advised if verify is not None else ():
        _verify(one, profile, verify or 1, scratch, most_sampled, option or [], log, replays=replay)
    made = applications(advised, output)
    _write(question, advised, made, profile_text(profile), html)
    (_print_json if as_json else _print)(advised, made, question, profile_text(profile))


def _check(keep: str | None, codecs: str, verify: int | None) -> None:
    if keep not in (None, "hdf5", "netcdf", "any"):
        raise UsageError(f"--keep {keep} is unknown: write hdf5, netcdf or any")
    if codecs not in ("own", "any"):
        raise UsageError(f"--codecs {codecs} is unknown: write own or any")
    if verify is not None and verify < 1:
        raise UsageError(f"--verify {verify}: give at least 1")


def _weighted(given: Path) -> tuple[Path, float]:
    """`run.trace:3` is run.trace with the weight 3."""
    matched = re.fullmatch(r"(.+):(\d+(?:\.\d+)?)", str(given))
    if matched is None or given.exists():
        return given, 1.0
    if float(matched[2]) <= 0:
        raise UsageError(f"--trace {given}: the weight must be larger than 0")
    return Path(matched[1]), float(matched[2])


def _profile(place: str, file: str, log: Any) -> StoreProfile:
    from hyperslab.archive.far.remote import is_url
    from hyperslab.cli.predict_array import doubts, profile_or_offer

    profile = profile_or_offer(None if place == "local" else Path(place), log)
    warnings = doubts(profile, None if is_url(file) else Path(file).resolve().parent)
    if is_url(file) and not profile.is_far:
        warnings.append(f"the store profile describes a {profile.store}, but {file} is far away: give its profile "
                        "with --target")  # fmt: skip
    for warning in warnings:
        log.print(line(f"warning: {warning}"), soft_wrap=True)
    return profile


def _limits(
    sizes: list[int | None],
    max_files: int | None,
    axis: str | None,
    keep: Any,
    price: float | None,
    codecs: Any,
    array: StoredArray,
) -> Limits:
    from hyperslab.advise.limits import Limits, axis_of

    memory, least, most, size = sizes
    return Limits(max_files, memory, least, most, axis_of(axis, array.shape, array.dims), keep, price, size, codecs)


def _verify(
    one: ArrayAdvice,
    profile: StoreProfile,
    count: int,
    scratch: Path | None,
    most: int,
    option: list[str],
    log: Any,
    *,
    replays: bool,
) -> None:
    from hyperslab.advise.judging import judge
    from hyperslab.advise.proving import prove
    from hyperslab.cli.progress import live
    from hyperslab.running.command import library
    from hyperslab.running.programs import obstacle

    directory = scratch or Path(one.array.file).resolve().parent
    if not directory.is_dir():
        raise UsageError(f"--scratch {directory} is not a directory")
    with live(log, "passes") as progress:
        verification = prove(one, profile, count, directory, library=library(), obstacle=obstacle, replays=replays,
                             most_nbytes=most, storage_options=storage_options(option), progress=progress)  # fmt: skip
    judge(one, verification)


def _write(
    question: Question, advised: list[ArrayAdvice], made: list[Application], profile: str, html: Path | None
) -> None:
    for one in made:
        if one.path is not None:
            one.advice.save(one.path)
    if html is not None:
        from hyperslab.report.advice_page import write_page

        write_page(html, question.files, advised, profile, made)


def _print_json(advised: list[ArrayAdvice], made: list[Application], question: Question, profile: str) -> None:
    from hyperslab.advise.documents import document

    head = {"file": question.file, "files": question.files, "profile": profile, "notes": question.notes}
    commands = [{"files": one.files, "advice": one.path, "command": one.command} for one in made]
    typer.echo(json.dumps({**head, "apply": commands, "arrays": [document(one) for one in advised]}, indent=1))


def _print(advised: list[ArrayAdvice], made: list[Application], question: Question, profile: str) -> None:
    from hyperslab.advise.applying import SAVED

    out = console()
    for one in advised:
        _print_one(one, out)
    for note in question.notes:
        out.print(line(f"note: {note}"), soft_wrap=True)
    out.print(line(f"store: {profile}"), soft_wrap=True)
    for each in made:
        if each.is_saved_first:
            out.print(line(f"to apply it, repeat this command with -o {SAVED}; then:"), soft_wrap=True)
        if each.command is not None:
            out.print(line(f"apply it: {each.command}"), soft_wrap=True)
    if any(one.needs_run and one.tip is None for one in advised):
        program = next((each.program for one in advised if one.needs_run for each in one.demands), "")
        out.print(line(f"and start your program so: hyperslab run -- {program}"), soft_wrap=True)


def _print_one(one: ArrayAdvice, out: Any) -> None:
    from hyperslab.advise.applying import command_of
    from hyperslab.archive.views.display import counted
    from hyperslab.report.advice_rows import tip_lines

    calls = ", ".join(f"{counted(len(each.steps), 'call', 'calls')} of {each.name}" for each in one.demands)
    out.print(line(f"{one.array.title}, {' × '.join(map(str, one.array.shape))} {one.array.dtype}: {calls}"))
    out.print(line(f"advice: {one.verdict}"), soft_wrap=True)
    if one.with_run is not None:
        out.print(line(f"with `hyperslab run`: {one.with_run.verdict}"), soft_wrap=True)
        option = one.with_run.option
        command = None if option is one.chosen or option.candidate.is_today else command_of(one, option)
        if command is not None:
            out.print(line(f"     {command}"), soft_wrap=True)
    if one.tips:
        out.print("without rewriting any data:")
    for place, (text, call) in enumerate(tip_lines(one), start=1):
        out.print(line(f"  {place}. {text}"), soft_wrap=True)
        if call:
            out.print(line(f"     {call}"), soft_wrap=True)
    _print_table(one, out)
    reasons = dict.fromkeys((option.candidate.title, option.reason) for option in _shown(one)[:3] if option.reason)
    for title, reason in reasons:
        out.print(line(f"why {title}: {reason}"), soft_wrap=True)
    for said in [*one.verified, *one.notes]:
        out.print(line(said), soft_wrap=True)
    if any(option.price.extrapolating for option in one.options):
        out.print("* outside what was calibrated", soft_wrap=True)
    out.print(f"{one.considered} layouts were considered", soft_wrap=True)


def _print_table(one: ArrayAdvice, out: Any) -> None:
    from rich.table import Table

    from hyperslab.quantities import UNKNOWN
    from hyperslab.report.advice_rows import HEADER, cells_of

    rows = [cells_of(option, one) for option in _shown(one)]
    kept = [place for place in range(len(HEADER) - 1) if any(row[place] != UNKNOWN for row in rows)]
    table = Table(box=None, padding=(0, 1, 0, 0))
    for place in kept:
        table.add_column(HEADER[place], overflow="fold", no_wrap=place not in (0, 1))
    for row in rows:
        table.add_row(*(line(row[place]) for place in kept))
    out.print(table)


def _shown(one: ArrayAdvice) -> list[Any]:
    """The best rows, and always today's and the libraries' defaults."""
    best = one.options[:SHOWN]
    return [option for option in one.options if option in best or option.candidate.label]
