"""`hyperslab calibrate`: measure what accesses cost on this machine, for `hyperslab predict`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from hyperslab.cli.output import console
from hyperslab.cli.progress import live
from hyperslab.errors import UsageError

if TYPE_CHECKING:
    from hyperslab.model.store_profile import StoreProfile


def calibrate_machine(
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Where to measure: a directory of the file system in question.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The store profile; by default where `predict` looks.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Under 3 minutes, small arrays (the default).")] = False,
    full: Annotated[bool, typer.Option("--full", help="Some 20 minutes: the published design, scaled.")] = False,
    libraries: Annotated[str | None, typer.Option(help="Only these: hdf5,zarr,hyperslab,flat.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The store profile on standard output too.")] = False,
) -> None:
    """Measure what accesses cost on this machine and file system, once, so that costs can be predicted.

    Example: hyperslab calibrate --quick
    """
    from hyperslab.model.calibrate import calibrate
    from hyperslab.model.store_profile import default_path

    if quick and full:
        raise UsageError("--quick or --full, not both")
    where = directory or Path(tempfile.gettempdir())
    if not where.is_dir():
        raise UsageError(f"{where} is no directory: give one of the file system to measure with --dir")
    path = output or default_path()
    chosen = None if libraries is None else [name.strip() for name in libraries.split(",") if name.strip()]
    log = console(stderr=True)
    try:
        with live(log, "passes") as progress:
            made = calibrate(where, "full" if full else "quick", chosen, progress=progress)
    except KeyboardInterrupt:
        log.print("interrupted: nothing is left, and no store profile was written")
        raise
    made.save(path)
    if as_json:
        typer.echo(made.to_json(), nl=False)
    else:
        _print(made, console())
        console().print(f"store profile: {path}", soft_wrap=True)


def _print(made: StoreProfile, out: Console) -> None:
    for note in made.notes:
        out.print(f"note: {note}", soft_wrap=True)
    table = Table("library", "operation", "cells", "RMSE log10", "condition", "overlap", "coefficients", box=None)
    for each in made.fits:
        table.add_row(
            each.library,
            each.operation,
            str(each.cell_count),
            f"{each.rmse_log10:.3f}",
            f"{each.condition:.0f}" + (" (ridge)" if each.ridge else ""),
            f"{each.overlap:g}",
            ", ".join(f"{one.term.name} {one.value:.2g} {one.term.unit}" for one in each.each if one.value > 0),
        )
    out.print(table)
