"""`hyperslab lab` starts what measurements need: so far, the striped store, an emulated parallel file system."""

from __future__ import annotations

import contextlib
import json
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from hyperslab.cli.arguments import stripe_of
from hyperslab.cli.output import console
from hyperslab.cli.progress import live
from hyperslab.cli.signals import as_signalled
from hyperslab.errors import RunError

if TYPE_CHECKING:
    from hyperslab.parallel.session import ParallelEvaluation
    from hyperslab.parallel.striped_store.store import StoreSpeeds

app: typer.Typer = typer.Typer(help="Start an emulated parallel file system, for measurements.", no_args_is_help=True)
PROFILE_FILE, RESULTS_FILE = "hyperslab-parallel.json", "parallel.json"


@app.callback()
def _group() -> None: ...


@app.command("serve-striped")
def serve_striped(
    servers: Annotated[int, typer.Option(min=1, max=200, help="Data servers.")] = 4,
    mbit_s: Annotated[float, typer.Option("--mbit-s", min=1, help="Rate limit of each data server.")] = 120.0,
    request_ms: Annotated[float, typer.Option(min=0, help="Least time of a request to a data server.")] = 2.0,
    metadata_ms: Annotated[float, typer.Option(min=0, help="Time of the metadata server for a file.")] = 2.0,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop after this time (default: at Ctrl-C).")] = None,
    mount: Annotated[Path | None, typer.Option(help="Mount the store at this directory, for real libraries.")] = None,
    stripe: Annotated[
        str, typer.Option(help="Stripes of mounted .h5 and .nc files: SIZE:COUNT, or SIZE for all.")
    ] = "1MiB",
) -> None:
    """Run data servers and a metadata server, each in a network namespace behind a rate limit, until Ctrl-C.

    It needs root. If a store was killed, the next one removes what it left behind.

    Example: hyperslab lab serve-striped --servers 4
    """
    from hyperslab.parallel.striped_store.mount import MountedStore
    from hyperslab.parallel.striped_store.store import StoreSpeeds, StripedStore
    from hyperslab.parallel.striping import Striping

    out = console()
    nbytes, count = stripe_of(stripe)
    striping = Striping(servers, nbytes, count or servers)
    speeds = StoreSpeeds(mbit_s, request_ms / 1e3, metadata_ms / 1e3)
    with as_signalled(), StripedStore(servers, speeds) as store, contextlib.ExitStack() as mounted:
        if mount is not None:
            mounted.enter_context(MountedStore(store, mount, striping))
            out.print(f"mounted {mount}", soft_wrap=True)
        for number, address in enumerate(store.addresses):
            out.print(f"{'metadata' if number == servers else f'data {number}'} {address}", soft_wrap=True)
        out.print(f"logs {store.directory}", soft_wrap=True)
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            time.sleep(0.2)
            for number, process in enumerate(store.processes):
                if process.poll() is not None:
                    raise RunError(f"server {number} of the striped store has ended: start again")


def calibrate_on_striped_store(output: Path | None, as_json: bool) -> None:
    """Measure the training on the striped store, and save the parallel profile."""
    from hyperslab.parallel.session import calibrate_parallel

    path = output or Path(PROFILE_FILE)
    with as_signalled(), live(console(stderr=True), "passes") as progress:
        made = calibrate_parallel(_speeds(), progress=progress)
    made.save(path)
    if as_json:
        typer.echo(path.read_text(), nl=False)
        return
    table = Table("library", "term", "seconds", "spread of log10", box=None)
    for key, terms in made.coefficients.items():
        for term, value in terms.items():
            table.add_row(key, term, f"{value:.3g}", f"{made.spread[key]:.3f}")
    console().print(table)
    console().print(f"{len(made.cells)} experiments; store: {made.store}", soft_wrap=True)
    console().print(f"parallel profile: {path}", soft_wrap=True)


def evaluate_on_striped_store(profile: Path | None, output: Path, is_tiny: bool, as_json: bool) -> None:
    """Ask a parallel profile about held-out experiments, and print how good its answers are."""
    from hyperslab.parallel.profile import load_parallel_profile
    from hyperslab.parallel.session import evaluate_parallel, save_evaluation

    trained = load_parallel_profile(profile or Path(PROFILE_FILE))
    with as_signalled(), live(console(stderr=True), "passes") as progress:
        made = evaluate_parallel(trained, _speeds(), is_tiny=is_tiny, progress=progress)
    output.mkdir(parents=True, exist_ok=True)
    save_evaluation(made, output / RESULTS_FILE)
    if find_spec("matplotlib") is not None:
        from hyperslab.report.paper_parallel_figures import draw_paper_figures
        from hyperslab.report.parallel_figures import draw_parallel

        draw_parallel(made, output / "figures")
        draw_paper_figures(made, output / "figures")
    if as_json:
        typer.echo(json.dumps(made.to_dict(), indent=1))
        return
    _print(made)


def _print(made: ParallelEvaluation) -> None:
    from hyperslab.parallel.session import OURS

    table: Any = Table("model", "faster library", "RMSE log10", "in the interval", box=None)
    for name, each in made.scores.items():
        inside = f"{each.inside} of {each.experiments}" if name == OURS else ""  # only ours has intervals
        table.add_row(name, f"{each.order_right} of {each.pairs}", f"{each.rmse_log10:.3f}", inside)
    out = console()
    out.print(table)
    ties = next(iter(made.scores.values())).ties
    out.print(f"{len(made.measured)} held-out experiments; {ties} pairs do not part and count for no model.")
    if made.elsewhere is not None:
        said = made.takeaway
        out.print(f"takeaway (iii), {said.conclusion}: {said.verdict}; {said.by_fair_method}", soft_wrap=True)
    out.print(f"store: {made.store}", soft_wrap=True)


def _speeds() -> StoreSpeeds:
    from hyperslab.parallel.striped_store.store import StoreSpeeds

    return StoreSpeeds()
