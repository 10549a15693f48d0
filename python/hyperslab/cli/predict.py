"""`hyperslab predict` estimates how long a workload takes in each layout with each library."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hyperslab.cli.archives import Options, storage_options
from hyperslab.cli.output import console
from hyperslab.cli.predict_array import doubts, is_workload, predict_array, profile_or_offer, profile_text
from hyperslab.cli.predict_arrays import predict_arrays
from hyperslab.errors import UsageError

if TYPE_CHECKING:
    from hyperslab.model.predict import Prediction
    from hyperslab.model.store_profile import StoreProfile


def _print_schema(asked: bool) -> None:
    if asked:
        from hyperslab.model.workload_file import schema_text

        typer.echo(schema_text(), nl=False)
        raise typer.Exit


CACHES = ("cold", "page-warm", "library-warm", "new")


def predict_costs(
    target: Annotated[
        str, typer.Argument(metavar="WORKLOAD|FILE:ARRAY", help="A YAML file with reads and writes, or an array.")
    ],
    layout: Annotated[
        list[str] | None,
        typer.Option("--layout", help="Chunks 100x8; shards 100x8/400x8; codec 100x8:zstd=2.5; contiguous."),
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", help="A file or URL, or FILE:ARRAY, whose layout to price as well.")
    ] = None,
    store_profile: Annotated[
        Path | None, typer.Option("--profile", help="Store profile (default: the one from `calibrate`).")
    ] = None,
    option: Options = None,
    libraries: Annotated[str | None, typer.Option(help="Only these libraries: hdf5,zarr,hyperslab,flat.")] = None,
    cache: Annotated[str, typer.Option(help="Cache state at the start: cold, page-warm, library-warm, new.")] = "cold",
    figure: Annotated[Path | None, typer.Option(help="Draw stacked bars into this .svg or .png file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    _schema: Annotated[
        bool,
        typer.Option("--schema", callback=_print_schema, is_eager=True, help="Print the schema of workload files."),
    ] = False,
) -> None:
    """Predict how long a workload takes in each layout with each library on the calibrated machine.

    Of an array in a file, predict the usual reads: all of it, a row along each axis, a box of 1 %, and one element.

    Example: hyperslab predict boxes.yaml --layout 1000x8 --layout 64x64
    Example: hyperslab predict ocean.nc:sst
    """
    from hyperslab.model.file_layout import layout_of_file
    from hyperslab.model.predict import parse_layout, predict
    from hyperslab.model.workload_file import load_workloads

    if cache not in CACHES:
        raise UsageError(f"--cache {cache} is not a cache state: use one of {', '.join(CACHES)}")
    if figure is not None and figure.suffix not in (".svg", ".png"):
        raise UsageError(f"--figure {figure} has an unknown format: name a .svg or .png file")
    chosen = None if libraries is None else [name.strip() for name in libraries.split(",") if name.strip()]
    if not is_workload(target):
        if file is not None:
            raise UsageError("--file is for a workload: leave it out, since FILE:ARRAY already names the array")
        predict_array(target, layout or [], store_profile, option or [], chosen, cache, figure, as_json)
        return
    workload, log = Path(target), console(stderr=True)
    workloads = load_workloads(workload)
    if len(workloads) > 1:
        if file is not None or figure is not None:
            raise UsageError("--file and --figure are for one array: leave them out, since the workload has several")
        trained = profile_or_offer(store_profile, log)
        show = partial(_print, store=profile_text(trained))
        known = _document(trained, log)
        price = partial(predict, libraries=chosen, store_profile=trained, cache=cache)
        predict_arrays(workloads, layout or [], price, show, known if as_json else None)
        return
    (asked,) = workloads.values()
    layouts = [parse_layout(text, asked.array.shape) for text in layout or []]
    if file is not None:
        layouts.append(layout_of_file(file, asked, storage_options(option or [])))
    trained = profile_or_offer(store_profile, log)
    found = predict(asked, layouts, libraries=chosen, store_profile=trained, cache=cache)  # type: ignore[arg-type]
    document = _document(trained, log)
    if as_json:
        predictions = [prediction.to_dict() for prediction in found]
        typer.echo(json.dumps({**document, "predictions": predictions}, indent=1))
    else:
        _print(found, profile_text(trained))
    if figure is not None:
        from hyperslab.report.costs import draw_costs

        draw_costs(found, workload.stem, cache, figure)


def _document(trained: StoreProfile, log: Console) -> dict[str, Any]:
    """What is said of the store profile. Warnings go to the log as well."""
    warnings = doubts(trained, None)
    for warning in warnings:
        log.print(f"warning: {warning}", soft_wrap=True)
    return {"store": trained.store, "profile": profile_text(trained), "warnings": warnings}


def _print(found: list[Prediction], store: str) -> None:
    from hyperslab.model.terms import PHASES
    from hyperslab.report.wording import interval_text, seconds_text

    out = console()
    shown = [phase for phase in PHASES if any(prediction.cost.phases[phase] > 0 for prediction in found)]
    table = Table("layout", "library", "predicted", "95 % interval", box=None)
    for phase in shown:
        table.add_column(phase.replace("_", " "), justify="right")
    for prediction in found:
        cost = prediction.cost
        shares = (seconds_text(cost.phases[phase]) if cost.phases[phase] > 0 else "–" for phase in shown)
        name = str(prediction.layout) + ("*" if cost.extrapolating else "")
        table.add_row(name, prediction.library, seconds_text(cost.seconds), interval_text(cost.low, cost.high), *shares)
    out.print(table)
    out.print(f"store: {store}", soft_wrap=True)
    reasons: dict[str, str] = {}
    for prediction in found:
        for reason in prediction.cost.extrapolating:
            reasons.setdefault(f"{prediction.library}: {reason}", str(prediction.layout))
    for reason, layout in reasons.items():
        out.print(f"* extrapolating, {layout}, {reason}", soft_wrap=True)
