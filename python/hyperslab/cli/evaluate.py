"""`hyperslab evaluate` tests the predictions of a store profile on the paper's own experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperslab.cli.output import console
from hyperslab.cli.progress import live
from hyperslab.errors import UsageError
from hyperslab.needed import need

if TYPE_CHECKING:
    from hyperslab.model.paper_experiments import ScaleName


def evaluate(
    profile: Annotated[
        Path | None, typer.Option(help="Store profile to test (default: the one from `calibrate`).")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for the results.")] = Path(
        "hyperslab-evaluation"
    ),
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Directory for measured files (default: the output).")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small arrays, fewer experiments; takes minutes.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="All experiments, with isolated phases; takes a quarter of an hour.")
    ] = False,
    tiny: Annotated[bool, typer.Option("--tiny", hidden=True)] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Evaluate the measurements that the output already holds.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Replay the paper's experiments on this machine, predict each one, and report how good the predictions are.

    Example: hyperslab evaluate --quick
    """
    need("hyperslab evaluate, which draws figures at the end,", "report", "matplotlib")
    from hyperslab.model.evaluation_session import run_evaluation
    from hyperslab.report.evaluation import print_evaluation

    if quick + full + tiny > 1:
        raise UsageError("--quick and --full exclude each other: use one of them")
    scale: ScaleName = "full" if full else "tiny" if tiny else "quick"
    log = console(stderr=True)
    with live(log, "passes") as progress:
        say: Any = log.print
        done = run_evaluation(profile, output, directory or output, scale, again=again, progress=progress, say=say)
    figures = _draw(done)
    if as_json:
        typer.echo(json.dumps(done.to_dict(), indent=1))
        return
    print_evaluation(done, console())
    typer.echo("\n".join(str(path) for path in figures))


def _draw(done: Any) -> list[Path]:
    from hyperslab.report.evaluation import draw_evaluation

    found: list[Path] = draw_evaluation(done, done.output / "figures")
    return found
