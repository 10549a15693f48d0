"""Other ways to predict a cell, to compare our model with. All of them know the same training and nothing else.

Some are models with fewer terms, and some use no formulas: the median of the training, and its most similar cell. One
is the paper's own algorithm, which also counts in its own way: its caches are sets of chunks, and it knows no offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from hyperslab.errors import TooFewCells
from hyperslab.model.cells import ModelCell
from hyperslab.model.costs import Coefficients, price
from hyperslab.model.counting import Direction, Variables, count_operations
from hyperslab.model.fit import Observation, fit
from hyperslab.model.libraries import LIBRARIES, Caches, Hdf5, Library, PaperHdf5, PaperZarr
from hyperslab.model.measuring import CellTimings
from hyperslab.model.predict import Prediction, parse_layout
from hyperslab.model.store_profile import StoreProfile, caches_of
from hyperslab.model.terms import EXTENDED, PAPER, Model
from hyperslab.model.workload import Workload

MEDIAN_OF_TRAINING, NEAREST = "median of training", "nearest neighbour"
PAPERS_ALGORITHM = "paper's algorithm"
# A model that predicts 0 seconds is very wrong, but not infinitely wrong.
LEAST_SECONDS = 1e-7


def predicted_by_each(
    models: Iterable[Model], ours: Sequence[Prediction], measured: Sequence[CellTimings], profile: StoreProfile
) -> tuple[list[dict[str, float]], dict[str, str]]:
    """The seconds of each cell by the name of what predicts them: our model, these models, and the baselines.

    The second value says which of them could not be fitted, and why.
    """
    predicted = [
        {EXTENDED.name: max(mine.cost.seconds, LEAST_SECONDS), **_without_formulas(timings, mine, profile)}
        for timings, mine in zip(measured, ours, strict=True)
    ]
    ways: dict[str, Callable[[], list[float]]] = {
        model.name: partial(_by_model, model, ours, measured, profile) for model in models
    }
    ways[PAPERS_ALGORITHM] = partial(_by_papers_algorithm, measured, profile)
    skipped: dict[str, str] = {}
    for name, seconds in ways.items():
        try:
            each = seconds()
        except TooFewCells as reason:
            skipped[name] = str(reason)
            continue
        for known, one in zip(predicted, each, strict=True):
            known[name] = one
    return predicted, skipped


def _by_model(
    model: Model, ours: Sequence[Prediction], measured: Sequence[CellTimings], profile: StoreProfile
) -> list[float]:
    """The seconds of each cell, predicted by another model with our model's variables."""
    return _priced(model, [each.variables for each in ours], measured, profile.cells)


def _by_papers_algorithm(measured: Sequence[CellTimings], profile: StoreProfile) -> list[float]:
    """The seconds of each cell by Algorithm 1 and formulas 1 to 7, as printed, for the training and for the cells."""
    caches = caches_of(profile.environment)
    trained = [again for cell in profile.cells if (again := _counted_again(cell, caches)) is not None]
    cells = [replace(timings.cell, library=_of_paper(timings.cell.library)) for timings in measured]
    counted = [count_operations(cell, caches) for cell in cells]
    return _priced(PAPER, counted, measured, trained)


def _of_paper(library: Library) -> PaperHdf5 | PaperZarr:
    """The paper's algorithm for a library, with the size of its cache, which the algorithm takes as an input."""
    return PaperHdf5(library.chunk_cache_nbytes) if isinstance(library, Hdf5) else PaperZarr()


def _counted_again(cell: Observation, caches: Caches) -> Observation | None:
    """A cell of the training with the variables of the paper's algorithm. None if the paper has no such library."""
    library = LIBRARIES.get(cell.library)
    if cell.library not in ("hdf5", "zarr") or library is None or not cell.asked:
        return None
    workload = Workload.model_validate_json(cell.asked)
    layout = parse_layout(cell.layout, workload.array.shape)
    again = count_operations(ModelCell(workload, layout, _of_paper(library), cell.cache), caches)
    return replace(cell, variables=again[cell.operation])


def _priced(
    model: Model,
    counted: Sequence[dict[Direction, Variables]],
    measured: Sequence[CellTimings],
    cells: Sequence[Observation],
) -> list[float]:
    fitted: dict[tuple[str, Direction], Coefficients] = {}
    predicted_seconds = []
    for each, operations in zip(measured, counted, strict=True):
        seconds = 0.0
        for operation, variables in operations.items():
            key = each.cell.library.name, operation
            if key not in fitted:
                fitted[key] = fit(cells, *key, model, resamples=0)
            seconds += price(variables, fitted[key], each.cell.layout.codec).seconds
        predicted_seconds.append(max(seconds, LEAST_SECONDS))
    return predicted_seconds


def _without_formulas(timings: CellTimings, prediction: Prediction, profile: StoreProfile) -> dict[str, float]:
    """Predictions from the training's times alone, for reads plus writes."""
    seconds = {MEDIAN_OF_TRAINING: 0.0, NEAREST: 0.0}
    library = timings.cell.library.name
    for operation, variables in prediction.variables.items():
        mine = [each for each in profile.cells if (each.library, each.operation) == (library, operation)]
        alike = [each for each in mine if each.cache == timings.cell.cache] or mine
        seconds[MEDIAN_OF_TRAINING] += float(np.median([each.seconds for each in alike]))
        distances = [_distance(each.variables, variables) for each in alike]
        seconds[NEAREST] += alike[int(np.argmin(distances))].seconds
    return seconds


def _distance(a: Variables, b: Variables) -> float:
    return float(np.linalg.norm(np.log1p(np.array(a)) - np.log1p(np.array(b))))
