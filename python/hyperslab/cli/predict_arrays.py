"""`hyperslab predict` for a workload of several arrays: each is priced alone, in the layouts that are named for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from hyperslab.cli.output import console, line
from hyperslab.errors import UsageError
from hyperslab.meant import meant_or_known

if TYPE_CHECKING:
    from hyperslab.model.libraries import Layout
    from hyperslab.model.predict import Prediction
    from hyperslab.model.workload import Workload

Predict = Callable[["Workload", "list[Layout]"], "list[Prediction]"]


def predict_arrays(
    workloads: dict[str, Workload],
    texts: Sequence[str],
    predict: Predict,
    show: Callable[[list[Prediction]], None],
    document: dict[str, Any] | None,
) -> None:
    """Price each array. Print a table for each and the sum, or `document` with all of them as JSON."""
    layouts = layouts_of(workloads, texts)
    predictions = {name: predict(asked, layouts[name]) for name, asked in workloads.items()}
    least = sum(min(one.cost.seconds for one in each) for each in predictions.values())
    if document is not None:
        arrays = {name: {"predictions": [one.to_dict() for one in each]} for name, each in predictions.items()}
        typer.echo(json.dumps({**document, "arrays": arrays, "least_seconds": least}, indent=1))
        return
    out = console()
    for name, each in predictions.items():
        array = workloads[name].array
        out.print(line(f"{name}, {' × '.join(map(str, array.shape))} {array.dtype}"), soft_wrap=True)
        show(each)
        out.print()
    from hyperslab.quantities import seconds_text

    out.print(f"all arrays, each with its fastest layout and library: {seconds_text(least)}", soft_wrap=True)


def layouts_of(workloads: dict[str, Workload], texts: Sequence[str]) -> dict[str, list[Layout]]:
    """The layouts of each array. `NAME@100x8` is for one array; `100x8` is for all arrays with as many axes."""
    from hyperslab.model.predict import parse_layout

    by_array: dict[str, list[Layout]] = {name: [] for name in workloads}
    for text in texts:
        name, at, layout = text.rpartition("@")
        if at and name not in workloads:
            raise UsageError(f"--layout {text}: the workload has no array {name!r}{meant_or_known(name, workloads)}")
        for each in [name] if at else workloads:
            shape = workloads[each].array.shape
            parsed = parse_layout(layout, shape)
            if at or len(parsed.chunk_shape) == len(shape):
                by_array[each].append(parsed)
    for name, layouts in by_array.items():
        if not layouts:
            axes = len(workloads[name].array.shape)
            raise UsageError(f"no --layout has the {axes} axes of {name}: give one as {name}@{'x'.join('1' * axes)}")
    return by_array
