"""`hyperslab studies`: what can be run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from hyperslab.bench.histories.study import HistoryCase
from hyperslab.bench.session import choose
from hyperslab.bench.study import Case, json_schema
from hyperslab.cli.output import console


def studies(
    name: Annotated[str | None, typer.Argument(help="One study, family, pattern or YAML file, in full.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="The JSON schema of a study file.")] = False,
) -> None:
    """List the studies that are shipped, or show one in full."""
    if schema:
        typer.echo(json_schema(), nl=False)
        return
    cases = choose([name or "*"])
    if as_json:
        rows = [case.model_dump(exclude_none=True) if name else _brief(case) for case in cases]
        typer.echo(json.dumps(rows, indent=1))
    elif name:
        typer.echo(json.dumps([case.model_dump(exclude_none=True) for case in cases], indent=1))
    else:
        _table(cases)


def _brief(case: Case | HistoryCase) -> dict[str, object]:
    return {
        "name": case.name,
        "title": case.title,
        "family": case.family,
        "source": case.source,
        "formats": case.formats,
        "methods": ["fair", "published"] if _replay(case) else ["fair"],
    }


def _replay(case: Case | HistoryCase) -> str | None:
    return case.replay if isinstance(case, Case) else None


def _table(cases: list[Case | HistoryCase]) -> None:
    table = Table("study", "title", "formats", "published method", box=None)
    for case in cases:
        table.add_row(case.name, case.title, " ".join(case.formats), _replay(case) or "–")
    console().print(table)
    console().print(f"run one: hyperslab bench NAME   ({Path('your.yaml')} works as well; --schema describes it)")
