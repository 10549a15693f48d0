"""`hyperslab predict FILE:ARRAY`: what usual accesses to an existing array cost, without any workload file."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table

from hyperslab import __version__
from hyperslab.cli.archives import storage_options
from hyperslab.cli.output import console, line
from hyperslab.errors import NotAStoreProfile
from hyperslab.lab.other_load import BUSY

if TYPE_CHECKING:
    from hyperslab.advise.results import Counsel
    from hyperslab.advise.usual_reads import Comparison, Row
    from hyperslab.model.store_profile import StoreProfile

WORKLOAD_SUFFIXES = (".yaml", ".yml")
# From the documentation of `hyperslab calibrate`.
CALIBRATING = "hyperslab calibrate --quick measures this machine in about 3 minutes"


def is_workload(target: str) -> bool:
    """Whether the argument of `predict` names a workload file rather than an array."""
    return target.lower().endswith(WORKLOAD_SUFFIXES)


def predict_array(
    target: str,
    layouts: list[str],
    store_profile: Path | None,
    options: list[str],
    libraries: list[str] | None,
    cache: Any,
    figure: Path | None,
    as_json: bool,
    trace: Path | None = None,
) -> None:
    """Price the usual accesses to an array and print one table."""
    from hyperslab.advise.asking import traced_counsels
    from hyperslab.advise.formats import codecs_of
    from hyperslab.advise.usual_reads import compare_layouts, encoding_of, find_array
    from hyperslab.archive.far.remote import is_url
    from hyperslab.model.predict import check_axes, parse_layout

    log = console(stderr=True)
    array = find_array(target, storage_options(options))
    profile = profile_or_offer(store_profile, log)
    others = [parse_layout(text, array.shape) for text in layouts]
    for layout in others:
        check_axes(layout, array.shape)
    path = array.file
    named = [encoding_of(array, layout) for layout in (array.layout, *others) if layout.codec is not None]
    measured = codecs_of(array, {array.format: list(dict.fromkeys(named))}, profile)
    comparison = compare_layouts(
        array, profile, layouts=others, libraries=libraries, cache=cache or "cold", measured=measured
    )
    counsel = None
    if trace is not None:
        whole = f"{array.file}:{array.name}"
        (counsel,) = traced_counsels(whole, trace, profile, storage_options(options), cache).values()
    warnings = doubts(profile, None if is_url(path) else Path(path).resolve().parent)
    if is_url(path) and not profile.is_far:
        warnings.append(f"the store profile describes a {profile.store}, but {path} is far away")
    for warning in warnings:
        log.print(f"warning: {warning}", soft_wrap=True)
    if as_json:
        said = {} if counsel is None else {"counsel": counsel.to_dict()}
        document = {
            **comparison.to_dict(),
            **said,
            "store": profile.store,
            "profile": profile_text(profile),
            "warnings": warnings,
        }
        typer.echo(json.dumps(document, indent=1))
    else:
        _print(target, comparison, profile, console())
        if counsel is not None:
            _print_counsel(counsel, console())
    if figure is not None:
        from hyperslab.report.usual_reads import draw_comparison

        draw_comparison(comparison, figure)


def _print_counsel(counsel: Counsel, out: Console) -> None:
    from hyperslab.report.trace_words import counsel_lines

    for said in counsel_lines(counsel):
        out.print(line(said), soft_wrap=True)


def profile_or_offer(path: Path | None, log: Console) -> StoreProfile:
    """The store profile. If this machine has none, offer to measure it, or say how and how long it takes."""
    from hyperslab.model.store_profile import default_path, load_store_profile

    if path is not None or default_path().exists():
        return load_store_profile(path)
    if not (sys.stdin.isatty() and log.is_terminal):
        raise NotAStoreProfile(f"this machine has no store profile yet: {CALIBRATING}; then ask again")
    if not typer.confirm(f"This machine has no store profile yet. {CALIBRATING}. Measure it now?", err=True):
        raise NotAStoreProfile(f"nothing can be priced without a store profile: {CALIBRATING}")
    from hyperslab.cli.calibrate import calibrate_machine

    calibrate_machine(quick=True)
    return load_store_profile(None)


def profile_text(profile: StoreProfile) -> str:
    """Which store profile was used: what it describes, when it was made, and how much it measured."""
    busy = f", on a machine that others used ({profile.busy_share:.0%})" if profile.busy_share >= BUSY else ""
    return f"{profile.store}, calibrated {profile.made_at} ({profile.scale}){busy.replace('%', ' %')}"


def doubts(profile: StoreProfile, directory: Path | None) -> list[str]:
    """Why a store profile may not describe this machine any more, or the disk below `directory`."""
    reasons = []
    if differences := profile.differs_from_this_machine(directory):
        reasons.append(f"calibrated on another machine or store, at {profile.made_at}: {'; '.join(differences)}")
    if profile.hyperslab_version != __version__:
        reasons.append(f"calibrated by hyperslab {profile.hyperslab_version}, but this is {__version__}")
    return reasons


def _print(target: str, comparison: Comparison, profile: StoreProfile, out: Console) -> None:
    from hyperslab.quantities import nbytes_text

    array = comparison.array
    shape = " × ".join(map(str, array.shape))
    library = "netCDF4" if array.is_netcdf4 and array.library == "hdf5" else array.library
    known = f"{array.layout}, by {library}, {comparison.cache}"
    out.print(line(f"{target}: {array.name}, {shape} {array.dtype}, {known}"), soft_wrap=True)
    table = Table("access", "asked for", box=None)
    for column in comparison.columns:
        table.add_column(column.title, justify="right")
    table.add_column("today against the best")
    for row in comparison.rows:
        cells = (_cell(row, position) for position in range(len(comparison.columns)))
        table.add_row(line(row.access), nbytes_text(row.nbytes), *cells, _against(row))
    out.print(table)
    for sentence in comparison.verdict():
        out.print(line(sentence), soft_wrap=True)
    for note in comparison.notes:
        out.print(line(f"note: {note}"), soft_wrap=True)
    out.print(line(f"store: {profile_text(profile)}"), soft_wrap=True)
    _print_reasons(comparison, out)


def _cell(row: Row, position: int) -> str:
    from hyperslab.quantities import UNKNOWN, seconds_text

    cost, seconds = row.costs[position], row.seconds[position]
    if cost is None:
        return UNKNOWN
    if seconds is None:
        return "unknown"
    return seconds_text(seconds) + ("*" if cost.cost.extrapolating else "")


def _against(row: Row) -> str:
    from hyperslab.advise.usual_reads import factor_text

    if row.times_slower is None:
        return "unknown"
    if row.best == 0:
        return "best"
    return "too close to call" if row.is_too_close else f"{factor_text(row.times_slower)} as long"


def _print_reasons(comparison: Comparison, out: Console) -> None:
    costs = [cost.cost for row in comparison.rows for cost in row.costs if cost is not None]
    # What lies outside matters here, not in which of many cells and how far.
    outside = dict.fromkeys(_subject(reason) for cost in costs for reason in cost.extrapolating)
    if outside:
        out.print(line(f"* outside the trained range: {', '.join(outside)}"), soft_wrap=True)
    unknown = dict.fromkeys(reason for cost in costs for reason in cost.unknown)
    if unknown:
        out.print(line(f"unknown: {', '.join(unknown)}"), soft_wrap=True)


def _subject(reason: str) -> str:
    """A reason without its numbers."""
    return re.split(r" [0-9.e+-]+,", reason)[0]
