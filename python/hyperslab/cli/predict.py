"""`hyperslab predict` estimates how long a workload takes in each layout with each library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from hyperslab.cli.archives import Options, storage_options
from hyperslab.cli.output import console
from hyperslab.cli.predict_trace import predict_trace
from hyperslab.errors import UsageError

if TYPE_CHECKING:
    from hyperslab.model.predict import Prediction

CACHES = ("cold", "page-warm", "library-warm", "new")


def predict_costs(
    workload: Annotated[Path | None, typer.Argument(help="A YAML file with an array and its reads and writes.")] = None,
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
    trace: Annotated[Path | None, typer.Option(help="Price what `hyperslab trace` has recorded.")] = None,
) -> None:
    """Predict how long a workload takes in each layout with each library on the calibrated machine.

    Example: hyperslab predict boxes.yaml --layout 1000x8 --layout 64x64
    """
    from hyperslab.model.file_layout import layout_of_file
    from hyperslab.model.predict import parse_layout, predict
    from hyperslab.model.store_profile import load_store_profile
    from hyperslab.model.workload import load_workload

    if cache not in CACHES:
        raise UsageError(f"--cache {cache} is not a cache state: use one of {', '.join(CACHES)}")
    if figure is not None and figure.suffix not in (".svg", ".png"):
        raise UsageError(f"--figure {figure} has an unknown format: name a .svg or .png file")
    chosen = None if libraries is None else [name.strip() for name in libraries.split(",") if name.strip()]
    if trace is not None:
        if workload is not None or file is not None or figure is not None:
            raise UsageError("--trace goes without a workload, --file and --figure: the trace has its own arrays")
        predict_trace(trace, layout or [], chosen, store_profile, cache, as_json, _print)
        return
    if workload is None:
        raise UsageError("name a workload file, or a trace with --trace")
    asked = load_workload(workload)
    layouts = [parse_layout(text, asked.array.shape) for text in layout or []]
    if file is not None:
        layouts.append(layout_of_file(file, asked, storage_options(option or [])))
    trained = load_store_profile(store_profile)
    found = predict(asked, layouts, libraries=chosen, store_profile=trained, cache=cache)  # type: ignore[arg-type]
    differences = trained.differs_from_this_machine()
    log = console(stderr=True)
    if differences:
        log.print(f"warning: calibrated on another machine or store ({'; '.join(differences)})", soft_wrap=True)
    if as_json:
        predictions = [prediction.to_dict() for prediction in found]
        document = {"store": trained.store, "warnings": differences, "predictions": predictions}
        typer.echo(json.dumps(document, indent=1))
    else:
        _print(found, trained.store)
    if figure is not None:
        from hyperslab.report.costs import draw_costs

        draw_costs(found, workload.stem, cache, figure)


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
