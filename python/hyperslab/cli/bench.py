"""`hyperslab bench`: measure formats, rank them, and judge published conclusions."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from hyperslab.cli.output import console
from hyperslab.cli.progress import live
from hyperslab.cli.signals import as_signalled
from hyperslab.errors import HyperslabError, RunError, UsageError
from hyperslab.needed import need_report

Scale = Literal["quick", "small", "paper"]
Method = Literal["fair", "published", "both"]


def bench(
    study: Annotated[
        list[str] | None,
        typer.Argument(help="Studies to run: a case, a family, a pattern, or a YAML file (default: `mine`)."),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Directory for the results; it must not hold another run.")
    ] = Path("hyperslab-run"),
    data: Annotated[str | None, typer.Option(help="Your own array, as FILE:ARRAY, in any of the formats.")] = None,
    scale: Annotated[Scale, typer.Option(help="Size of the experiment; `paper` is full size.")] = "small",
    method: Annotated[Method, typer.Option(help="Equal work, or a published study's own method.")] = "fair",
    formats: Annotated[str | None, typer.Option(help="Only these formats, comma-separated.")] = None,
    conditions: Annotated[str | None, typer.Option(help="Only these conditions, comma-separated.")] = None,
    cache: Annotated[str | None, typer.Option(help="Cache states of reads: cold,warm,unknown.")] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="Run exactly this many trials of each cell.")] = None,
    until_decided: Annotated[
        bool,
        typer.Option("--until-decided", help="Continue until every comparison is decided, for at most 50 rounds."),
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.01, help="Stop measuring after this many minutes; --resume continues with what is still open."
        ),
    ] = None,
    scratch: Annotated[Path | None, typer.Option(help="Directory for measured files (default: the output).")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the interrupted run in the output.")] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of the random order of trials.")] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds until a trial counts as hung (histories: per 100 versions).")
    ] = 900.0,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler whose workers run parallel studies.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print rankings and verdicts as JSON.")] = False,
) -> None:
    """Measure which array format is fastest for arrays like yours, on this machine.

    Example: hyperslab bench --data ocean.nc:sst -o ocean-run
    """
    if trials is not None and until_decided:
        raise UsageError("--trials and --until-decided contradict each other; leave one of them out")
    need_report("hyperslab bench, which writes a report at the end,")
    from hyperslab.bench.session import RunRequest, run_bench

    request = RunRequest(
        studies=tuple(study or ()),
        output=output,
        scale=scale,
        methods=("published", "fair") if method == "both" else (method,),
        formats=_list(formats),
        conditions=_list(conditions),
        caches=_list(cache),
        data=data,
        trials=trials,
        until_decided=until_decided,
        minutes=minutes,
        scratch=scratch,
        resume=resume,
        seed=seed,
        timeout_seconds=timeout,
        executor=_executor(scheduler),
    )
    log = console(stderr=True)
    try:
        with as_signalled(), live(log) as progress:
            run = run_bench(request, progress, say=log.print)
    except (KeyboardInterrupt, SystemExit):
        log.print(f"interrupted: finished trials are in {output}; continue with: hyperslab bench --resume -o {output}")
        _say_what_is_known(output, log)
        raise
    _present(run, as_json)


def _say_what_is_known(output: Path, log: Console) -> None:
    """After an interruption: what the finished trials say, and what is missing."""
    from hyperslab.bench.results import load_run
    from hyperslab.report.terminal import print_unfinished

    with suppress(HyperslabError):  # it was interrupted before it began
        print_unfinished(load_run(output), log)


def _list(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def _executor(scheduler: str | None) -> Any:
    if scheduler is None:
        return None
    from hyperslab.bench.dask_workers import DaskWorkers

    return DaskWorkers(scheduler)


def _present(run: Any, as_json: bool) -> None:
    from hyperslab.report import make_report
    from hyperslab.report.terminal import print_answers, print_verdicts

    page = make_report(run)
    if as_json:
        conclusions = {
            "rankings": [asdict(r) for r in run.rankings],
            "recommendations": [asdict(r) for r in run.recommendations],
            "verdicts": [asdict(v) for v in run.verdicts],
        }
        typer.echo(json.dumps(conclusions, indent=1))
    else:
        out = console()
        print_answers(run, out)
        print_verdicts(run, out)
        out.print(f"report: {page}", soft_wrap=True)
    failed = [trial for trial in run.trials if trial.status == "failed"]
    if broken := [history for history in run.histories if history.status.startswith("failed")]:
        raise RunError(
            f"{len(broken)} of {len(run.histories)} histories failed, the first by {broken[0].format}: "
            f"{broken[0].status}; the others are kept in {run.directory}"
        )
    if failed:
        first = failed[0]
        raise RunError(
            f"{len(failed)} of {len(run.trials)} trials failed; the first was {first.case} {first.format} "
            f"{first.operation}: {first.reason}; the other trials are kept in {run.directory}"
        )
