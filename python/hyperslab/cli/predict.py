"""`hyperslab predict`: what a workload will cost, layout by layout and library by library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from hyperslab.cli.output import console
from hyperslab.errors import UsageError

if TYPE_CHECKING:
    from hyperslab.model.predict import Prediction

CACHES = ("cold", "page-warm", "library-warm", "new")


def predict_costs(
    workload: Annotated[Path, typer.Argument(help="A workload: YAML with an array and what is read or written.")],
    layout: Annotated[
        list[str] | None,
        typer.Option("--layout", help="Chunks as 100x8; shards 100x8/400x8; codec 100x8:zstd=2.5; or contiguous."),
    ] = None,
    file: Annotated[str | None, typer.Option("--file", help="FILE or FILE:ARRAY whose layout is priced too.")] = None,
    store_profile: Annotated[
        Path | None, typer.Option("--profile", help="A store profile; by default what `calibrate` wrote.")
    ] = None,
    libraries: Annotated[str | None, typer.Option(help="Only these: hdf5,zarr,hyperslab,flat.")] = None,
    cache: Annotated[str, typer.Option(help="Before: cold, page-warm, library-warm; new: no array yet.")] = "cold",
    figure: Annotated[Path | None, typer.Option(help="Draw stacked bars: a .svg or .png file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Predict how long a workload takes in each layout, by each library, on the machine that was calibrated.

    Example: hyperslab predict boxes.yaml --layout 1000x8 --layout 64x64
    """
    from hyperslab.model.predict import layout_of_file, parse_layout, predict
    from hyperslab.model.store_profile import load_store_profile
    from hyperslab.model.workload import load_workload

    if cache not in CACHES:
        raise UsageError(f"--cache {cache}: say one of {', '.join(CACHES)}")
    if figure is not None and figure.suffix not in (".svg", ".png"):
        raise UsageError(f"--figure {figure}: name a .svg or a .png file")
    asked = load_workload(workload)
    layouts = [parse_layout(text) for text in layout or []]
    if file is not None:
        layouts.append(layout_of_file(file, asked))
    trained = load_store_profile(store_profile)
    chosen = None if libraries is None else [name.strip() for name in libraries.split(",") if name.strip()]
    found = predict(asked, layouts, libraries=chosen, store_profile=trained, cache=cache)  # type: ignore[arg-type]
    differences = trained.differs_from_this_machine()
    log = console(stderr=True)
    if differences:
        log.print(f"warning: calibrated on another machine or store ({'; '.join(differences)})", soft_wrap=True)
    if as_json:
        document = {"warnings": differences, "predictions": [prediction.to_dict() for prediction in found]}
        typer.echo(json.dumps(document, indent=1))
    else:
        _print(found)
    if figure is not None:
        from hyperslab.report.costs import draw_costs

        draw_costs(found, workload.stem, cache, figure)


def _print(found: list[Prediction]) -> None:
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
    reasons: dict[str, str] = {}
    for prediction in found:
        for reason in prediction.cost.extrapolating:
            reasons.setdefault(f"{prediction.library}: {reason}", str(prediction.layout))
    for reason, layout in reasons.items():
        out.print(f"* extrapolating, {layout}, {reason}", soft_wrap=True)
