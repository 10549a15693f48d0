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
    from hyperslab.model.hdf5_settings import Hdf5Settings


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
    from hyperslab.archive.display import counted
    from hyperslab.model.predict import parse_layout, predict
    from hyperslab.model.traced import LIBRARY_OF, layout_of_traced, workload_of
    from hyperslab.quantities import seconds_text
    from hyperslab.trace.growing import with_largest_shapes
    from hyperslab.trace.summaries import summaries_of
    from hyperslab.trace.trace import Trace

    trace = with_largest_shapes(opened(path, Trace.open))
    summaries = summaries_of(trace)
    if not summaries:
        raise UsageError(f"{path} has no accesses to price")
    trained = profile_or_offer(store_profile, console(stderr=True))
    out, documents = console(), []
    for note in trace.notes:
        console(stderr=True).print(f"warning: {note}", soft_wrap=True)
    for one in summaries:
        array = one.array
        try:
            workload = workload_of(trace, array, one.rows)
            today = layout_of_traced(array, workload)
            # A trace has several arrays: a layout is for those with as many axes.
            others = (parse_layout(text, array.shape) for text in layouts)
            asked = [today, *(layout for layout in others if len(layout.chunk_shape) == len(array.shape))]
            found = predict(workload, asked, libraries=libraries, store_profile=trained, cache=cache, hdf5=settings)
        except (Refused, ValueError) as error:
            console(stderr=True).print(f"{array.array} of {array.file}: not priced: {error}", soft_wrap=True)
            continue
        own = LIBRARY_OF.get(array.library)
        mine = next((each for each in found if each.library == own and each.layout == today), None)
        predicted = None if mine is None or mine.cost.unknown else mine.cost.seconds
        if as_json:
            documents.append(
                {
                    "array": array.array, "file": array.file, "library": array.library, "accesses": len(one.rows),
                    "measured_seconds": one.seconds, "predicted_seconds": predicted, "notes": workload.notes,
                    "predictions": [each.to_dict() for each in found],
                }
            )  # fmt: skip
            continue
        out.print(f"{array.array} of {array.file}: {counted(len(one.rows), 'access', 'accesses')}", soft_wrap=True)
        beside = "" if predicted is None else f"; predicted for that, {cache}: {seconds_text(predicted)}"
        out.print(f"measured with {array.library}, {today}: {seconds_text(one.seconds)}{beside}", soft_wrap=True)
        for note in workload.notes:
            out.print(note, soft_wrap=True)
        show(found, profile_text(trained))
    if as_json:
        typer.echo(json.dumps({"store": trained.store, "notes": trace.notes, "arrays": documents}, indent=1))


def opened(path: Path, reader: Callable[[Path], Any]) -> Any:
    """Open a trace, or say that there is none."""
    try:
        return reader(path)
    except FileNotFoundError as error:
        made = f"hyperslab trace -o {path} -- python analysis.py"
        raise UsageError(f"there is no trace {path}: record one with `{made}`") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
