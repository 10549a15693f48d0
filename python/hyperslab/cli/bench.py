"""`hyperslab bench`: measure formats, rank them, and judge published conclusions."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hyperslab.cli.output import console
from hyperslab.cli.progress import live
from hyperslab.errors import RunError
from hyperslab.needed import need_report

Scale = Literal["quick", "small", "paper"]
Method = Literal["fair", "published", "both"]


def bench(
    study: Annotated[
        list[str] | None,
        typer.Argument(
            help="Studies to run: a case, a family, a pattern, a YAML file, or seed4-histories. Default: `mine`."
        ),
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
    scratch: Annotated[Path | None, typer.Option(help="Directory for measured files (default: the output).")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the interrupted run in the output.")] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of the random order of trials.")] = None,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds after which a trial counts as hung.")] = 900.0,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler whose workers run parallel studies.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print rankings and verdicts as JSON.")] = False,
) -> None:
    """Measure which array format is fastest for arrays like yours, on this machine.

    Example: hyperslab bench --data ocean.nc:sst -o ocean-run
    """
    need_report("hyperslab bench, which writes a report at the end,")
    from hyperslab.bench.history_study import NAME as HISTORIES
    from hyperslab.bench.session import Request, run_bench

    if tuple(study or ()) == (HISTORIES,):
        _histories(output, scale, resume, as_json)
        return
    request = Request(
        studies=tuple(study or ()),
        output=output,
        scale=scale,
        methods=("published", "fair") if method == "both" else (method,),
        formats=_list(formats),
        conditions=_list(conditions),
        caches=_list(cache),
        data=data,
        trials=trials,
        scratch=scratch,
        resume=resume,
        seed=seed,
        timeout_seconds=timeout,
        executor=_executor(scheduler),
    )
    log = console(stderr=True)
    try:
        with live(log) as progress:
            run = run_bench(request, progress, say=log.print)
    except (KeyboardInterrupt, SystemExit):
        log.print(f"interrupted: finished trials are in {output}; continue with: hyperslab bench --resume -o {output}")
        raise
    _present(run, as_json)


def _histories(output: Path, scale: str, resume: bool, as_json: bool) -> None:
    """Run seed 4's study, in which files get one version after another."""
    from hyperslab.bench import history_study
    from hyperslab.bench.history_verdicts import judge
    from hyperslab.report.histories import make_page

    log = console(stderr=True)
    histories = history_study.run(output, scale, lambda said: log.print(said, soft_wrap=True), resume=resume)
    verdicts = judge(histories)
    page = make_page(histories, verdicts, output)
    if as_json:
        typer.echo(json.dumps({"verdicts": [asdict(verdict) for verdict in verdicts]}, indent=1))
        return
    for verdict in verdicts:
        typer.echo(f"{verdict.id} {verdict.verdict}: {verdict.conclusion}: {verdict.by_fair_method}")
    typer.echo(f"report: {page}")


def _list(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def _executor(scheduler: str | None) -> Any:
    if scheduler is None:
        return None
    from hyperslab.bench.dask_workers import DaskWorkers

    return DaskWorkers(scheduler)


def _present(run: Any, as_json: bool) -> None:
    from hyperslab.report import make_report
    from hyperslab.report.terminal import print_rankings, print_verdicts

    page = make_report(run)
    if as_json:
        found = {"rankings": [asdict(r) for r in run.rankings], "verdicts": [asdict(v) for v in run.verdicts]}
        typer.echo(json.dumps(found, indent=1))
    else:
        out = console()
        print_rankings(run, out)
        print_verdicts(run, out)
        out.print(f"report: {page}", soft_wrap=True)
    failed = [trial for trial in run.trials if trial.status == "failed"]
    if failed:
        first = failed[0]
        raise RunError(
            f"{len(failed)} of {len(run.trials)} trials failed; the first was {first.case} {first.format} "
            f"{first.operation}: {first.reason}; the other trials are kept in {run.directory}"
        )
