"""`hyperslab calibrate` measures what accesses cost on this machine; `hyperslab predict` uses the result."""

from __future__ import annotations

import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from hyperslab.cli.archives import storage_options
from hyperslab.cli.arguments import Options
from hyperslab.cli.lab import calibrate_on_striped_store
from hyperslab.cli.output import console, line
from hyperslab.cli.progress import live
from hyperslab.cli.signals import as_signalled
from hyperslab.errors import MissingLibrary, RunError, UsageError

if TYPE_CHECKING:
    from hyperslab.model.far_store import FarFile
    from hyperslab.model.store_profile import StoreProfile
    from hyperslab.model.training import Scale


def calibrate_machine(
    directory: Annotated[
        Path | None,
        typer.Option("--dir", help="Directory on the file system to measure (default: the temporary directory)."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store", help="Measure a server instead: a file's URL, or nginx or versitygw to start one here."
        ),
    ] = None,
    round_trip_ms: Annotated[
        float | None,
        typer.Option("--round-trip-ms", min=0, help="Simulated round trip of a server started here (default: 40)."),
    ] = None,
    option: Options = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where to save the store profile (default: where `predict` looks)."),
    ] = None,
    parallel: Annotated[
        bool, typer.Option("--parallel", help="Measure programs of several processes on the striped store instead.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Small arrays: about 3 minutes (the default).")] = False,
    full: Annotated[bool, typer.Option("--full", help="The published design, scaled down: about 20 minutes.")] = False,
    libraries: Annotated[str | None, typer.Option(help="Only these libraries: hdf5,zarr,hyperslab,flat.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted calibration.")] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Measure at once, even if other programs keep the machine busy.")
    ] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show all coefficients.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the store profile as JSON as well.")] = False,
) -> None:
    """Measure once what accesses cost on this machine and file system, so that `predict` can price workloads.

    With --store URL, measure what hyperslab's own reads of files on a server or in a bucket cost.

    Example: hyperslab calibrate --quick
    """
    from hyperslab.model.store_profile import default_path

    if parallel:
        calibrate_on_striped_store(output, as_json)
        return
    if quick and full:
        raise UsageError("--quick and --full exclude each other: use one of them")
    where = directory or Path(tempfile.gettempdir())
    if not where.is_dir():
        raise UsageError(f"{where} is not a directory: use --dir to name one on the file system to measure")
    chosen = None if libraries is None else [name.strip() for name in libraries.split(",") if name.strip()]
    scale: Scale = "full" if full else "quick"
    path = output or default_path()
    _check_replaceable(path)
    if store is None:
        if option or round_trip_ms is not None:
            raise UsageError("--option and --round-trip-ms need --store")
        made = _of_disk(where, scale, chosen, path, resume, waits=not no_wait)
    else:
        if output is None:
            raise UsageError(
                "--store needs -o: the default path holds the store profile of the local disk, so name another file"
            )
        if resume or chosen not in (None, ["hyperslab"]):
            raise UsageError("--store measures hyperslab alone and cannot resume: omit --libraries and --resume")
        made = _of_store(store, round_trip_ms, option or [], where, scale)
        made.save(path)
    if as_json:
        typer.echo(made.to_json(), nl=False)
    else:
        _print(made, console(), verbose)
        console().print(f"store profile: {path}", soft_wrap=True)


def _check_replaceable(path: Path) -> None:
    """Refuse a file that is something other than a store profile: it would be replaced after minutes of measuring."""
    from hyperslab.errors import NotAStoreProfile
    from hyperslab.model.store_profile import SCHEMA, load_store_profile

    if not path.is_file() or not path.stat().st_size:
        return
    try:
        load_store_profile(path)
    except NotAStoreProfile as error:
        with path.open("rb") as file:
            is_old = SCHEMA.encode() in file.read(1 << 12)
        if not is_old:
            said = f"-o {path}: this file is not a store profile: choose another name, or remove it"
            raise UsageError(said) from error


def _of_disk(
    where: Path, scale: Scale, libraries: list[str] | None, path: Path, resume: bool, *, waits: bool
) -> StoreProfile:
    from hyperslab.lab.other_load import wait_until_quiet
    from hyperslab.model.calibrating import calibrate
    from hyperslab.model.calibration_journal import journal_beside

    journal, log = journal_beside(path), console(stderr=True)
    for note in _absent(libraries):
        log.print(line(f"note: {note}"), soft_wrap=True)
    try:
        with as_signalled(), live(log, "passes") as progress:

            def ready() -> None:
                if waits:
                    wait_until_quiet(lambda said: log.print(line(said), soft_wrap=True))

            made = calibrate(where, scale, libraries, progress=progress, journal=journal, resume=resume, ready=ready)
    except (KeyboardInterrupt, SystemExit, RunError):
        left = f"measured cells are in {journal}; continue with --resume" if journal.exists() else "nothing was kept"
        log.print(f"no store profile was written; {left}", soft_wrap=True)
        raise
    made.save(path)
    journal.unlink(missing_ok=True)
    return made


def _absent(libraries: list[str] | None) -> list[str]:
    """What is said of libraries that are not installed, before minutes are spent without them."""
    from hyperslab.formats import availability
    from hyperslab.model.calibrating import FORMATS

    availabilities = {name: availability(FORMATS[name]) for name in libraries or FORMATS if name in FORMATS}
    return [f"{name} is left out: {why}" for name, why in availabilities.items() if isinstance(why, MissingLibrary)]


def _of_store(store: str, round_trip_ms: float | None, options: list[str], where: Path, scale: Scale) -> StoreProfile:
    from hyperslab.archive.far.remote import is_url
    from hyperslab.model.far_store import SERVERS, at_url, calibrate_far, served_here

    reached = storage_options(options)
    far: AbstractContextManager[FarFile]
    if is_url(store):
        if round_trip_ms is not None:
            raise UsageError(f"--round-trip-ms needs a server started here: --store {' or '.join(SERVERS)}")
        far = nullcontext(at_url(store, reached))
    elif store in SERVERS:
        if reached:
            raise UsageError(f"--option applies to URLs only, and --store {store} starts a server here: omit --option")
        far = served_here(store, 40.0 if round_trip_ms is None else round_trip_ms, where, scale)
    else:
        raise UsageError(
            f"--store {store} is neither a URL nor a server: give a file's URL (https, s3, gs, az), "
            f"or {' or '.join(SERVERS)}"
        )
    log = console(stderr=True)
    with far as file, live(log, "passes") as progress:
        return calibrate_far(file, scale, progress=progress, say=lambda said: log.print(said, soft_wrap=True))


def _print(made: StoreProfile, out: Console, verbose: bool) -> None:
    """What was measured, and how far predictions of it are off: 10 to the power of their RMSE, as a share."""
    for note in made.notes:
        out.print(f"note: {note}", soft_wrap=True)
    table = Table("library", "operation", "cells", "typical error", box=None)
    for name in ("RMSE log10", "condition", "coefficients") if verbose else ():
        table.add_column(name)
    for each in made.fits:
        details = (
            f"{each.rmse_log10:.3f}",
            f"{each.condition:.0f}" + (" (ridge)" if each.ridge else ""),
            ", ".join(f"{one.term.name} {one.value:.2g} {one.term.unit}" for one in each.each if one.value > 0),
        )
        error = f"{10**each.rmse_log10 - 1:.0%}"
        table.add_row(each.library, each.operation, str(each.cell_count), error, *(details if verbose else ()))
    out.print(table)
