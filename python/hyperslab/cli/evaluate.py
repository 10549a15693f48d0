"""`hyperslab evaluate` tests a store profile's predictions on the paper's own experiments or on drawn workloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperslab.cli.evaluate_published import CalibrateOn, Parallel, Published, evaluate_processes
from hyperslab.cli.output import console
from hyperslab.cli.progress import live
from hyperslab.cli.signals import as_signalled
from hyperslab.errors import RunError, UsageError
from hyperslab.needed import need

if TYPE_CHECKING:
    from hyperslab.model.generated.session import Generated, Request
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
    quick: Annotated[bool, typer.Option("--quick", help="Fewer experiments with small arrays; takes minutes.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="All experiments, with isolated phases; takes a quarter of an hour.")
    ] = False,
    tiny: Annotated[bool, typer.Option("--tiny", hidden=True)] = False,
    generated: Annotated[
        int | None,
        typer.Option(
            "--generated", min=1, help="Draw this many workloads at random instead; each takes up to a minute."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the drawn workloads.")] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0, help="End a drawn evaluation early, after a whole workload.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option("--log", help="Add the scores of a drawn evaluation to this CSV file.")
    ] = None,
    published: Published = None,
    calibrate_on: CalibrateOn = None,
    parallel: Parallel = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted drawn evaluation.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Evaluate the measurements that the output already holds.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Replay published experiments on this machine, predict each one, and report how good the predictions are.

    With --generated and --seed, do the same with workloads that are drawn at random, so that nobody has chosen them.
    With --published, calibrate the parallel model on a part of a published table and predict the rest of it.
    With --parallel, predict how long programs of several processes take on the striped store, and run them there.

    Example: hyperslab evaluate --quick
    Example: hyperslab evaluate --generated 40 --seed 7
    Example: hyperslab evaluate --published cori
    """
    if published is not None or calibrate_on is not None or parallel:
        others = generated is not None or seed is not None or quick or full or again or resume
        evaluate_processes(published, calibrate_on, others, profile, output, tiny, as_json)
        return
    if quick + full + tiny > 1:
        raise UsageError("--quick and --full exclude each other: use one of them")
    if generated is None:
        if seed is not None or log is not None or minutes is not None or resume:
            raise UsageError("--seed, --minutes, --log and --resume need --generated")
        _replay(profile, output, directory, "full" if full else "tiny" if tiny else "quick", again, as_json)
        return
    if seed is None:
        raise UsageError("--generated needs --seed: the same seed draws the same workloads everywhere")
    if quick or full:
        raise UsageError("--quick and --full are for the paper's experiments: leave them out with --generated")
    if resume and again:
        raise UsageError("--resume and --again exclude each other: use one of them")
    from hyperslab.model.generated.drawing import LARGE, TINY
    from hyperslab.model.generated.session import Request

    size = TINY if tiny else LARGE
    _draw_and_judge(
        profile, Request(generated, seed, output, directory or output, size, minutes, resume, again), log, as_json
    )


def _replay(
    profile: Path | None, output: Path, directory: Path | None, scale: ScaleName, again: bool, as_json: bool
) -> None:
    need("hyperslab evaluate, which draws figures at the end,", "matplotlib")
    from hyperslab.model.evaluation_session import run_evaluation
    from hyperslab.report.evaluation import print_evaluation

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

    figures: list[Path] = draw_evaluation(done, done.output / "figures")
    return figures


def _draw_and_judge(profile: Path | None, request: Request, log: Path | None, as_json: bool) -> None:
    from hyperslab.model.generated.log import append_row, check_log
    from hyperslab.report.generated import print_generated

    if log is not None:
        check_log(log)
    made = _measured(profile, request)
    document = made.to_dict()
    if log is not None:
        append_row(log, document["generated"], made.environment)
    if as_json:
        typer.echo(json.dumps(document, indent=1))
        return
    print_generated(made, console())


def _measured(profile: Path | None, request: Request) -> Generated:
    from hyperslab.model.generated.session import JOURNAL_FILE, run_generated

    errors = console(stderr=True)
    journal = request.output / JOURNAL_FILE
    try:
        with as_signalled(), live(errors, "passes") as progress:
            return run_generated(
                profile, request, progress=progress, say=lambda said: errors.print(said, soft_wrap=True, markup=False)
            )
    except (KeyboardInterrupt, SystemExit, RunError):
        if journal.exists():
            errors.print(f"measured cells are in {journal}; continue with --resume", soft_wrap=True)
        raise
