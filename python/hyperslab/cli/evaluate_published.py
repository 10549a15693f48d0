"""`hyperslab evaluate --published` predicts measurements of other machines that were published."""

from __future__ import annotations

import json

import typer

from hyperslab.cli.output import console


def evaluate_table(named: str, conditions: str, as_json: bool) -> None:
    """Calibrate on a part of a table, predict the rest, and print how good the predictions are."""
    from hyperslab.parallel.published import evaluate_published
    from hyperslab.parallel.published_cells import table_path
    from hyperslab.report.published import print_published

    made = evaluate_published(table_path(named), conditions)
    if as_json:
        typer.echo(json.dumps(made.to_dict(), indent=1))
        return
    print_published(made, console())
