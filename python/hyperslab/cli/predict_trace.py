"""`hyperslab predict --trace` prices what a program was recorded doing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hyperslab.cli.output import console
from hyperslab.cli.predict_array import profile_or_offer, profile_text
from hyperslab.errors import Refused, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from hyperslab.advise.results import Counsel
    from hyperslab.model.hdf5_settings import Hdf5Settings
    from hyperslab.model.predict import Prediction
    from hyperslab.trace.summaries import ArraySummary


def predict_trace(
    path: Path,
    layouts: Sequence[str],
    libraries: list[str] | None,
    store_profile: Path | None,
    cache: Any,
    settings: Hdf5Settings,
    as_json: bool,
    show: Callable[[Any, str], None],
) -> None:
    """Price each array of a trace in today's layout and in others, beside the seconds that were measured."""
    from hyperslab.advise.counsel import counsels_on
    from hyperslab.advise.traced_demands import open_trace

    one = open_trace(path)
    if not one.summaries:
        raise UsageError(f"{path} has no accesses to price")
    log = console(stderr=True)
    trained = profile_or_offer(store_profile, log)
    documents = []
    for note in one.trace.notes:
        log.print(f"warning: {note}", soft_wrap=True)
    for summary, counsel in counsels_on(one, trained, cache=cache, hdf5=settings):
        try:
            if isinstance(counsel, str):
                raise Refused(counsel)
            predictions = _priced(counsel, layouts, libraries)
        except (Refused, ValueError) as error:
            array = summary.array
            log.print(f"{array.array} of {array.file}: not priced: {error}", soft_wrap=True)
            continue
        if as_json:
            documents.append(_document(summary, counsel, predictions))
        else:
            _print(summary, counsel, console())
            show(predictions, profile_text(trained))
    if as_json:
        typer.echo(json.dumps({"store": trained.store, "notes": one.trace.notes, "arrays": documents}, indent=1))


def _priced(counsel: Counsel, layouts: Sequence[str], libraries: list[str] | None) -> list[Prediction]:
    from hyperslab.advise.counsel import predictions
    from hyperslab.model.predict import parse_layout

    shape = counsel.array.shape
    others = [parse_layout(text, shape) for text in layouts]
    # A trace has several arrays: a layout is for those with as many axes.
    return predictions(counsel, [one for one in others if len(one.chunk_shape) == len(shape)], libraries)


def _document(summary: ArraySummary, counsel: Counsel, predictions: list[Prediction]) -> dict[str, Any]:
    array = summary.array
    return {
        "array": array.array, "file": array.file, "library": array.library, "accesses": len(summary.rows),
        "measured_seconds": summary.seconds, "predicted_seconds": counsel.now.known_seconds,
        "notes": list(counsel.demands[0].notes), "counsel": counsel.to_dict(),
        "predictions": [each.to_dict() for each in predictions],
    }  # fmt: skip


def _print(summary: ArraySummary, counsel: Counsel, out: Console) -> None:
    from hyperslab.archive.views.display import counted
    from hyperslab.quantities import seconds_text

    array, predicted = summary.array, counsel.now.known_seconds
    out.print(f"{array.array} of {array.file}: {counted(len(summary.rows), 'access', 'accesses')}", soft_wrap=True)
    beside = "" if predicted is None else f"; predicted for that, {counsel.cache}: {seconds_text(predicted)}"
    measured = f"measured with {array.library}, {counsel.array.layout}: {seconds_text(summary.seconds)}"
    out.print(f"{measured}{beside}", soft_wrap=True)
    for note in (*counsel.demands[0].notes, *counsel.doubts):
        out.print(note, soft_wrap=True)
