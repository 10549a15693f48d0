"""Fit coefficients to measured cells by weighted non-negative least squares, so that no cost is negative.

Times span four decades, so the fit minimizes relative errors: each row has the weight 1 / sqrt(measured * predicted),
and its residual is then very nearly log(measured / predicted). Outliers count less (Huber). All cells of a library and
operation are fitted together. The training design isolates each phase in some of the cells: library-warm cells only
copy, page-warm cells never use the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hyperslab.errors import TooFewCells
from hyperslab.model.cells import CellCache
from hyperslab.model.costs import Coefficient, Coefficients, means
from hyperslab.model.counting import Direction, Variables
from hyperslab.model.terms import EXTENDED, Model, codec_name, values

Matrix = npt.NDArray[np.float64]
ROUNDS = 12
RESAMPLES = 200
SEED = 5
# If a fit is conditioned worse than this, small coefficients are preferred: the share of a column's length.
MOST_CONDITION, RIDGE = 1e5, 1e-3
# If less than this share of a column is independent of the columns before it, it is dropped.
LEAST_OWN = 1e-7
# Residuals larger than this many times the median residual count less.
HUBER = 3.0
# Parts of the cells that are predicted by the others.
FOLDS = 5
# By how much the same cell differs if it is measured again: a deviation of the logarithm (docs/cost-model.md, 7).
REPEATED = 0.11
MOST_BUSY = 0.95


@dataclass(frozen=True)
class Observation:
    """One measured cell: a description of the pattern, its variables, and the median seconds of its trials."""

    library: str
    operation: Direction
    cache: CellCache
    workload: str
    layout: str
    codec: str | None
    variables: Variables
    seconds: float
    trials: int = 1
    asked: str = ""  # the workload as JSON, so that it can be counted again


def repeated_on(busy_share: float) -> float:
    """How much a cell differs if others use a share of the machine: it may take up to 1 / (1 - share) times as long."""
    return float(np.hypot(REPEATED, -np.log(1 - min(max(busy_share, 0.0), MOST_BUSY)) / 2))


def nnls(
    matrix: Matrix, target: npt.NDArray[np.float64], start: npt.NDArray[np.float64] | None = None
) -> npt.NDArray[np.float64]:
    """The x >= 0 that minimizes |matrix @ x - target|, by Lawson and Hanson's active sets on the normal equations.

    Parameters
    ----------
    matrix : Matrix
        Shape `(rows, columns)`.
    target : npt.NDArray[np.float64]
        Shape `(rows,)`.
    start : npt.NDArray[np.float64] | None
        Shape `(columns,)`: an x >= 0 that is probably near. The result is the same, in a fraction of the steps.

    Returns
    -------
    npt.NDArray[np.float64]
        Shape `(columns,)`.

    Notes
    -----
    C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", 1974, chapter 23.
    """
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    scaled = matrix / scale
    gram, moments = scaled.T @ scaled, scaled.T @ target
    count = len(moments)
    solution: npt.NDArray[np.float64] = np.zeros(count) if start is None else start * scale
    free = solution > 0
    tolerance = 1e-10 * max(1.0, float(np.abs(moments).max(initial=0.0)))
    for turn in range(3 * count):
        if turn > 0 or not free.any():  # otherwise the elements that the start has come first
            gradient = np.where(free, -np.inf, moments - gram @ solution)
            if free.all() or gradient.max() <= tolerance:
                break
            free[int(gradient.argmax())] = True
        while True:
            wanted = np.zeros(count)
            wanted[free] = np.linalg.lstsq(gram[np.ix_(free, free)], moments[free], rcond=None)[0]
            below = free & (wanted <= 0)
            if not below.any():
                break
            step = float((solution[below] / (solution[below] - wanted[below] + 1e-300)).min())
            solution += step * (wanted - solution)
            free &= solution > 1e-14
            solution[~free] = 0.0
        solution = wanted
    unscaled: npt.NDArray[np.float64] = solution / scale
    return unscaled


def fit(
    cells: Sequence[Observation],
    library: str,
    operation: Direction,
    model: Model = EXTENDED,
    *,
    resamples: int = RESAMPLES,
    repeated: float = REPEATED,
) -> Coefficients:
    """Fit the coefficients of one library and operation.

    A variable that is 0 in all cells gets no coefficient; `Cost.extrapolating` says so when it matters. Nor does a
    variable that is a combination of others in all cells, such as reads and chunks if each chunk is a file: the other
    variables carry its cost.

    Parameters
    ----------
    cells : Sequence[Observation]
        Measured cells; those of other libraries and operations are ignored.
    library : str
        The library's name.
    operation : Direction
        `read` or `write`.
    model : Model
        The terms to fit.
    resamples : int
        Draws of the bootstrap that gives the intervals; 0 for no intervals.
    repeated : float
        By how much the same cell differs if it is measured again: a deviation of the logarithm.

    Returns
    -------
    Coefficients
        Seconds for one unit of each variable.

    Raises
    ------
    TooFewCells
        There are fewer cells than coefficients plus two.
    """
    mine = [cell for cell in cells if (cell.library, cell.operation) == (library, operation)]
    codecs = tuple(sorted({name for cell in mine if (name := codec_name(cell.codec)) is not None}))
    terms = model.terms(library, operation, codecs)
    matrix = np.array([values(terms, cell.variables, cell.codec) for cell in mine]).reshape(len(mine), len(terms))
    seen = _told_apart(matrix)
    terms, matrix = tuple(terms[position] for position in seen), matrix[:, seen]
    if len(mine) < len(terms) + 2 or not terms:
        raise TooFewCells(
            f"{library}, {operation}: {len(mine)} cells are too few for {len(terms)} coefficients; measure at least "
            f"{max(len(terms), 1) + 2} (hyperslab calibrate --full)"
        )
    target = np.array([cell.seconds for cell in mine])
    solved = _solve(matrix, target)
    draws = _resampled(solved, target, resamples) if resamples else np.array([solved.solution] * 2)
    low, high = np.percentile(draws, [2.5, 97.5], axis=0)
    errors = np.log(target / solved.predicted)
    # A measurement differs from the one before, however well the fit knows the cell.
    spread = float(np.hypot(_unseen_spread(matrix, target, mine, errors), repeated))
    each = tuple(map(Coefficient, terms, *map(_digits, (solved.solution, low, high))))
    return Coefficients(
        model.name,
        library,
        operation,
        each,
        np.atleast_2d(np.cov(draws, rowvar=False)),
        spread,
        len(mine),
        solved.condition,
        solved.ridge,
        float(np.sqrt(np.mean(errors**2)) / np.log(10)),
        _ranges(mine),
    )


def _digits(numbers: npt.NDArray[np.float64]) -> list[float]:
    """The numbers to twelve digits: threads of BLAS add in another order each time, so the last digits differ."""
    return [float(f"{number:.12g}") for number in numbers]


def _unseen_spread(
    matrix: Matrix, target: npt.NDArray[np.float64], cells: Sequence[Observation], errors: npt.NDArray[np.float64]
) -> float:
    """The deviation of log(measured / predicted) for arrays and layouts that a fit has not seen.

    Cells with the same array and layout are left out together, a fifth of them at a time. With few of them, it is the
    deviation that remains in the fit itself.
    """
    remaining = float(np.sqrt((errors**2).sum() / max(len(target) - matrix.shape[1], 1)))
    files = {name: number for number, name in enumerate(dict.fromkeys(map(_file_of, cells)))}
    fold = np.array([files[_file_of(cell)] % FOLDS for cell in cells])
    if len(files) < 2 * FOLDS:
        return remaining
    unseen = np.zeros(len(target))
    for number in range(FOLDS):
        out = fold == number
        if len(target) - out.sum() < matrix.shape[1] + 2:
            return remaining
        solution = _solve(matrix[~out], target[~out]).solution
        unseen[out] = np.log(target[out] / np.maximum(matrix[out] @ solution, target[out] * 1e-3))
    most = HUBER * max(float(np.median(np.abs(unseen))), 0.02)  # a cell unlike all others says little about the rest
    return max(remaining, float(np.sqrt(np.mean(np.clip(unseen, -most, most) ** 2))))


def _file_of(cell: Observation) -> tuple[str, str]:
    return cell.layout, cell.asked.partition('"accesses"')[0]


def _told_apart(matrix: Matrix) -> list[int]:
    """The columns that are not zero and not a combination of the columns before them."""
    kept: list[int] = []
    directions: list[npt.NDArray[np.float64]] = []
    for position, column in enumerate(matrix.T):
        length = np.linalg.norm(column)
        rest = column / length if length else column
        for _ in range(2):
            for direction in directions:
                rest = rest - (rest @ direction) * direction
        if (left := float(np.linalg.norm(rest))) > LEAST_OWN:
            kept.append(position)
            directions.append(rest / left)
    return kept


@dataclass(frozen=True)
class _Solved:
    rows: Matrix  # weighted
    weights: npt.NDArray[np.float64]
    solution: npt.NDArray[np.float64]
    predicted: npt.NDArray[np.float64]
    condition: float
    ridge: bool


def _solve(matrix: Matrix, target: npt.NDArray[np.float64]) -> _Solved:
    predicted, trust, solution = target, np.ones(len(target)), None
    for _ in range(ROUNDS):
        weights = trust / np.sqrt(target * predicted)
        rows = matrix * weights[:, np.newaxis]
        condition = _condition(rows)
        ridge = condition > MOST_CONDITION
        solution = nnls(*_with_ridge(rows, target * weights, ridge), solution)
        # A cell with a prediction of 0 is very wrong, but not infinitely wrong.
        predicted = np.maximum(matrix @ solution, target * 1e-3)
        errors = np.abs(np.log(target / predicted))
        trust = np.sqrt(np.minimum(1.0, HUBER * max(float(np.median(errors)), 0.02) / np.maximum(errors, 1e-12)))
    assert solution is not None
    return _Solved(rows, weights, solution, predicted, condition, ridge)


def _condition(rows: Matrix) -> float:
    lengths = np.linalg.norm(rows, axis=0)
    return float(np.linalg.cond(rows / np.where(lengths > 0, lengths, 1.0)))


def _with_ridge(rows: Matrix, target: npt.NDArray[np.float64], ridge: bool) -> tuple[Matrix, npt.NDArray[np.float64]]:
    if not ridge:
        return rows, target
    lengths = np.linalg.norm(rows, axis=0)
    return np.vstack([rows, np.diag(RIDGE * lengths)]), np.concatenate([target, np.zeros(len(lengths))])


def _resampled(solved: _Solved, target: npt.NDArray[np.float64], resamples: int) -> Matrix:
    """Solutions for cells drawn with replacement: the bootstrap."""
    random = np.random.default_rng(SEED)
    drawn = random.integers(0, len(target), (resamples, len(target)))
    weighted = target * solved.weights
    return np.array([nnls(*_with_ridge(solved.rows[d], weighted[d], solved.ridge), solved.solution) for d in drawn])


def _ranges(cells: Sequence[Observation]) -> dict[str, tuple[float, float]]:
    """The least and largest value of each variable that is not always 0, and of the quotients of `MEANS`."""
    seen: dict[str, list[float]] = {}
    for cell in cells:
        for name, value in (*cell.variables._asdict().items(), *means(cell.variables).items()):
            seen.setdefault(name, []).append(value)
    return {name: (min(each), max(each)) for name, each in seen.items() if max(each) > 0}
