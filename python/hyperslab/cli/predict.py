"""`hyperslab predict` estimates how long a workload takes in each layout with each library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hyperslab.cli.archives import storage_options
from hyperslab.cli.arguments import Options
from hyperslab.cli.output import console
from hyperslab.cli.predict_array import doubts, is_workload, predict_array, profile_or_offer, profile_text
from hyperslab.cli.predict_arrays import predict_arrays
from hyperslab.cli.predict_processes import (
    Collective,
    ParallelOptions,
    PartitionName,
    Processes,
    Servers,
    StripeText,
    predict_processes,
)
from hyperslab.cli.predict_trace import predict_trace
from hyperslab.errors import UsageError
from hyperslab.meant import meant_or_choose
from hyperslab.needed import need

if TYPE_CHECKING:
    from hyperslab.model.costs import CodecRate
    from hyperslab.model.hdf5_settings import Hdf5Settings
    from hyperslab.model.libraries import Layout
    from hyperslab.model.predict import Prediction
    from hyperslab.model.store_profile import StoreProfile
    from hyperslab.model.workload import Workload


def _print_schema(asked: bool) -> None:
    if asked:
        from hyperslab.model.workload_file import schema_text

        typer.echo(schema_text(), nl=False)
        raise typer.Exit


CACHES = ("cold", "page-warm", "library-warm", "new")


def predict_costs(
    target: Annotated[
        str | None,
        typer.Argument(metavar="WORKLOAD|FILE:ARRAY", help="A YAML file with reads and writes, or an array."),
    ] = None,
    layout: Annotated[
        list[str] | None,
        typer.Option("--layout", help="Chunks 100x8; shards 100x8/400x8; codec 100x8:zstd=2.5; contiguous."),
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", help="Also price the layout of this file, URL or FILE:ARRAY.")
    ] = None,
    store_profile: Annotated[
        Path | None, typer.Option("--profile", help="Store profile (default: the one from `calibrate`).")
    ] = None,
    option: Options = None,
    libraries: Annotated[str | None, typer.Option(help="Only these libraries: hdf5,zarr,hyperslab,flat.")] = None,
    cache: Annotated[
        str | None, typer.Option(help="Cache state at the start: cold (the default), page-warm, library-warm, new.")
    ] = None,
    hdf5: Annotated[
        str | None, typer.Option("--hdf5", help="HDF5's version, such as 1.14 (default: installed).")
    ] = None,
    rdcc_nbytes: Annotated[int | None, typer.Option(help="HDF5: bytes of the chunk cache.")] = None,
    rdcc_nslots: Annotated[int | None, typer.Option(help="HDF5: slots of the chunk cache.")] = None,
    rdcc_w0: Annotated[float | None, typer.Option(help="HDF5: w0 of the chunk cache, from 0 to 1.")] = None,
    libver: Annotated[str | None, typer.Option(help="HDF5: oldest version that can read the file.")] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Price the accesses of this trace, which `hyperslab trace` recorded.")
    ] = None,
    processes: Processes = None,
    servers: Servers = None,
    stripe: StripeText = None,
    partition: PartitionName = None,
    collective: Collective = False,
    figure: Annotated[Path | None, typer.Option(help="Draw stacked bars into this .svg or .png file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    _schema: Annotated[
        bool,
        typer.Option("--schema", callback=_print_schema, is_eager=True, help="Print the schema of workload files."),
    ] = False,
) -> None:
    """Predict how long a workload takes in each layout with each library on the calibrated machine.

    For an array in a file, it predicts the usual reads: all of it, a row along each axis, a box of 1 %, and one
    element.

    Example: hyperslab predict boxes.yaml --layout 1000x8 --layout 64x64
    Example: hyperslab predict ocean.nc:sst
    """
    if cache is not None and cache not in CACHES:
        raise UsageError(f"--cache {cache} is not a cache state{meant_or_choose(cache, CACHES)}")
    _check_figure(figure)
    chosen = None if libraries is None else [name.strip() for name in libraries.split(",") if name.strip()]
    settings = _hdf5_settings(hdf5, rdcc_nbytes, rdcc_nslots, rdcc_w0, libver)
    is_alone = file is None and (figure is None if target is None else not is_workload(target))
    if trace is not None and not is_alone:
        raise UsageError("--trace cannot be combined with a workload, --file or --figure: the trace has its own arrays")
    if trace is not None and target is None:
        predict_trace(trace, layout or [], chosen, store_profile, cache, settings, as_json, _print)
        return
    if target is None:
        raise UsageError("name a workload file, an array as FILE:ARRAY, or a trace with --trace")
    if not is_workload(target):
        if file is not None:
            raise UsageError("--file is for a workload: leave it out, since FILE:ARRAY already names the array")
        predict_array(target, layout or [], store_profile, option or [], chosen, cache, figure, as_json, trace)
        return
    cache = cache or "cold"
    given = ParallelOptions(processes, servers, stripe, partition, collective)
    if given.asked_for(Path(target)):
        if file is not None or figure is not None:
            raise UsageError("--file and --figure are for one process: leave them out")
        predict_processes(Path(target), layout or [], given, chosen, store_profile, cache, settings, as_json)
        return
    _predict_workload(
        Path(target), layout or [], file, store_profile, option or [], chosen, cache, settings, figure, as_json
    )


def _check_figure(figure: Path | None) -> None:
    if figure is None:
        return
    if figure.suffix not in (".svg", ".png"):
        raise UsageError(f"--figure {figure} has an unknown format: name a .svg or .png file")
    need("--figure", "matplotlib")


def _predict_workload(
    workload: Path,
    texts: list[str],
    file: str | None,
    store_profile: Path | None,
    option: list[str],
    chosen: list[str] | None,
    cache: Any,
    settings: Hdf5Settings,
    figure: Path | None,
    as_json: bool,
) -> None:
    from hyperslab.model.predict import predict, too_close
    from hyperslab.model.workload_file import load_workloads

    log = console(stderr=True)
    workloads = load_workloads(workload)
    if len(workloads) > 1:
        if file is not None or figure is not None:
            raise UsageError("--file and --figure are for one array: leave them out, since the workload has several")
        trained = profile_or_offer(store_profile, log)
        show = partial(_print, store=profile_text(trained))
        document = _document(trained, log)
        price = partial(predict, libraries=chosen, store_profile=trained, cache=cache, hdf5=settings)
        predict_arrays(workloads, texts, price, show, document if as_json else None)
        return
    (asked,) = workloads.values()
    layouts, rates = _layouts(asked, texts, file, storage_options(option))
    trained = profile_or_offer(store_profile, log)
    priced = predict(
        asked,
        layouts,
        libraries=chosen,
        store_profile=trained,
        cache=cache,
        hdf5=settings,
        codec_rates=rates,
    )
    document = _document(trained, log)
    if as_json:
        near = {id(prediction) for prediction in too_close(priced)}
        predictions = [{**each.to_dict(), "too_close_to_call": id(each) in near} for each in priced]
        typer.echo(json.dumps({**document, "predictions": predictions}, indent=1))
    else:
        _print(priced, profile_text(trained))
    if figure is not None:
        from hyperslab.report.costs import draw_costs

        known = [prediction for prediction in priced if not prediction.cost.unknown]
        if not known:
            raise UsageError(f"--figure {figure}: no cost is known, so there is nothing to draw")
        draw_costs(known, workload.stem, cache, figure)


def _layouts(
    asked: Workload, texts: list[str], file: str | None, options: Mapping[str, Any]
) -> tuple[list[Layout], dict[tuple[str, str], CodecRate]]:
    """The layouts of the command line and of a file, and what their codecs cost on the data of the file."""
    from hyperslab.model.codec_sample import codec_rates
    from hyperslab.model.file_layout import layout_of_file
    from hyperslab.model.predict import parse_layout

    layouts = [parse_layout(text, asked.array.shape) for text in texts]
    if file is None:
        return layouts, {}
    kept = layout_of_file(file, asked, options)
    layouts.append(kept)
    return layouts, codec_rates(file, kept, [each.codec for each in layouts if each.codec is not None], options)


def _hdf5_settings(
    version: str | None, nbytes: int | None, slots: int | None, w0: float | None, libver: str | None
) -> Hdf5Settings:
    """HDF5's settings. Raises UsageError with the option that is wrong."""
    from pydantic import ValidationError

    from hyperslab.model.hdf5_settings import Hdf5Settings

    given = {"version": version, "rdcc_nbytes": nbytes, "rdcc_nslots": slots, "rdcc_w0": w0, "libver": libver}
    try:
        return Hdf5Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        option = "hdf5" if name == "version" else name.replace("_", "-")
        said = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"--{option} {given[name]}: {said}") from error


def _document(trained: StoreProfile, log: Console) -> dict[str, Any]:
    """What is said of the store profile. Warnings go to the log as well."""
    warnings = doubts(trained, None)
    for warning in warnings:
        log.print(f"warning: {warning}", soft_wrap=True)
    return {"store": trained.store, "profile": profile_text(trained), "warnings": warnings}


def _print(predictions: list[Prediction], store: str) -> None:
    from hyperslab.model.predict import too_close
    from hyperslab.model.terms import PHASES
    from hyperslab.quantities import interval_text, seconds_text

    out = console()
    shown = [phase for phase in PHASES if any(prediction.cost.phases[phase] > 0 for prediction in predictions)]
    table = Table("layout", "library", "predicted", "95 % interval", box=None)
    for phase in shown:
        table.add_column(phase.replace("_", " "), justify="right")
    for prediction in predictions:
        cost = prediction.cost
        shares = (seconds_text(cost.phases[phase]) if cost.phases[phase] > 0 else "–" for phase in shown)
        name = str(prediction.layout) + ("*" if cost.extrapolating else "")
        seconds = "unknown" if cost.unknown else seconds_text(cost.seconds)
        interval = f"over {seconds_text(cost.low)}" if cost.unknown else interval_text(cost.low, cost.high)
        table.add_row(name, prediction.library, seconds, interval, *shares)
    out.print(table)
    if near := too_close(predictions):
        names = ", ".join(f"{each.library} {each.layout}" for each in near)
        out.print(f"too close to call: {names}", soft_wrap=True)
    out.print(f"store: {store}", soft_wrap=True)
    reasons: dict[str, str] = {}
    for prediction in predictions:
        for reason in prediction.cost.extrapolating:
            reasons.setdefault(f"{prediction.library}: {reason}", str(prediction.layout))
    for reason, layout in reasons.items():
        out.print(f"* extrapolating, {layout}, {reason}", soft_wrap=True)
    for reason in dict.fromkeys(f"{each.library}: {word}" for each in predictions for word in each.cost.unknown):
        out.print(f"unknown: {reason}; hyperslab calibrate --full measures more codecs", soft_wrap=True)
