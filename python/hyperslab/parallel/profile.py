"""What parallel accesses cost on one store: the coefficients of formulas 9 and 10, and those of the baseline P2.

    t = k1 n + k2 s + k3 n cf + k4 s cf            HDF5, a shared file on c of the servers       formula 9
    t = the same + k5 n p                          Zarr, a file per chunk on all c servers       formula 10

n and s are the requests and bytes of the slowest process. k1 and k2 are paid in the network and the process, k3 and k4
in a data server, and k5 in the metadata server.

Formula 8 holds for processes that visit servers at random. Processes that visit them in turn soon fall into step, and
processes that begin at the same server wait there for each other. Our extension is two more terms,

    k6 n_turns + k7 s_turns

where n_turns is when the last process is done if each request takes a turn of its server and nothing else takes time,
and s_turns the same if each byte takes a turn. With one process, or with servers of its own for each, they are n and s:
the serial limits stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from math import exp, log10, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hyperslab._core import contention
from hyperslab.errors import NotAStoreProfile, TooFewCells
from hyperslab.model.counting import Direction
from hyperslab.parallel.bytes_only import best_of_subsets
from hyperslab.regular_files import open_regular, read_regular
from hyperslab.replacing import replace_with

KIND, VERSION = "hyperslab parallel profile", 2
FORMULAS = {"hdf5": ("n", "s", "n*cf", "s*cf"), "zarr": ("n", "s", "n*cf", "s*cf", "n*p")}
TURNS = ("n_turns", "s_turns")
TERMS = {library: (*terms, *TURNS) for library, terms in FORMULAS.items()}
# The baseline has no term that starts a request.
BASELINE_TERMS = ("s", "s*cf")
DEVIATIONS = 1.96
TOLERANCE = 1.5  # as in the serial model
MOST_NBYTES = 10_000_000


class Asked(NamedTuple):
    """What the slowest process asks of the data servers, and the turns until the last process is done."""

    n: float
    s: float
    n_turns: float
    s_turns: float

    @classmethod
    def of(cls, own: tuple[float, float], turns: tuple[float, float]) -> Asked:
        """The requests and bytes of a process, and the turns of all: never fewer than its own."""
        return cls(*own, max(own[0], turns[0]), max(own[1], turns[1]))

    def values(self, processes: int, servers: int, terms: Sequence[str]) -> list[float]:
        """The values of terms such as `n*cf`."""
        cf = contention(processes, servers)
        known = {**self._asdict(), "n*cf": self.n * cf, "s*cf": self.s * cf, "n*p": self.n * processes}
        return [known[term] for term in terms]


@dataclass(frozen=True)
class ParallelObservation:
    """One measured experiment: what its processes asked of the servers, and how long the slowest one took."""

    library: str
    direction: Direction
    processes: int
    servers: int
    asked: Asked
    seconds: float
    name: str = ""

    @property
    def groups(self) -> tuple[tuple[str, object], ...]:
        """What it has in common with other experiments: the table, the processes, and the servers."""
        table = self.name.partition(",")[0]
        return ("table", table), ("processes", self.processes), ("servers", self.servers)

    def values(self, terms: Sequence[str]) -> list[float]:
        """What the coefficients are multiplied with."""
        return self.asked.values(self.processes, self.servers, terms)


@dataclass(frozen=True)
class ParallelProfile:
    """Fitted coefficients by library and direction, such as `hdf5 read`, and the spread of log10(measured / fitted)."""

    store: str
    servers: int
    coefficients: dict[str, dict[str, float]]
    paper: dict[str, dict[str, float]]
    baseline: dict[str, dict[str, float]]
    spread: dict[str, float]
    cells: list[ParallelObservation] = field(default_factory=list)

    def __post_init__(self) -> None:
        _check(self)

    @property
    def libraries(self) -> list[str]:
        """The libraries that were calibrated."""
        return sorted({key.split()[0] for key in self.coefficients})

    def seconds(
        self, library: str, direction: Direction, asked: Asked, processes: int, servers: int
    ) -> tuple[dict[str, float], float, float]:
        """The seconds of each term for one process; those of formulas 9 and 10 alone; those of the baseline P2."""
        key = f"{library} {direction}"
        if key not in self.coefficients:
            raise NotAStoreProfile(f"the parallel profile has no {key}: it has {', '.join(self.coefficients)}")
        terms = TERMS[library]
        made = dict(zip(terms, asked.values(processes, servers, terms), strict=True))
        parts = {name: value * self.coefficients[key][name] for name, value in made.items()}
        paper, baseline = self.paper[key], self.baseline[key]
        return parts, sum(made[t] * paper[t] for t in paper), sum(made[t] * baseline[t] for t in baseline)

    def outside(self, requests: float, nbytes: float, processes: int) -> tuple[str, ...]:
        """What lies outside of the measured experiments, so that the interval does not cover it."""
        if not self.cells:
            return ()
        sizes = [cell.asked.s / cell.asked.n for cell in self.cells]
        most = max(cell.processes for cell in self.cells)
        reasons = []
        if requests and not min(sizes) / TOLERANCE <= nbytes / requests <= max(sizes) * TOLERANCE:
            reasons.append(f"requests of {nbytes / requests:.3g} bytes, trained {min(sizes):.3g} to {max(sizes):.3g}")
        if processes > most * TOLERANCE:
            reasons.append(f"{processes} processes, trained up to {most}")
        return tuple(reasons)

    def reach(self, library: str, direction: Direction) -> float:
        """The factor from a prediction to each end of its 95 % interval."""
        return exp(DEVIATIONS * self.spread[f"{library} {direction}"] * float(np.log(10)))

    def save(self, path: Path) -> None:
        """Write the profile as JSON."""
        document = {"kind": KIND, "version": VERSION, **asdict(self)}
        replace_with(path, (json.dumps(document, indent=1) + "\n").encode())


def fit_profile(store: str, servers: int, cells: Sequence[ParallelObservation]) -> ParallelProfile:
    """Fit formulas 9 and 10 to measured experiments.

    Raises
    ------
    TooFewCells
        A library was measured in fewer experiments than its formula has coefficients.
    """
    coefficients, paper, baseline, spread = {}, {}, {}, {}
    for library, direction in sorted({(cell.library, cell.direction) for cell in cells}):
        mine = [cell for cell in cells if (cell.library, cell.direction) == (library, direction)]
        terms, key = TERMS[library], f"{library} {direction}"
        if len(mine) < len(terms):
            raise TooFewCells(f"{key}: {len(mine)} experiments cannot determine {len(terms)} coefficients")
        coefficients[key] = _fitted(mine, terms)
        paper[key], baseline[key] = _fitted(mine, FORMULAS[library]), _fitted(mine, BASELINE_TERMS)
        spread[key] = max(_spread(mine, terms, coefficients[key]), _spread_of_unseen(mine, terms))
    return ParallelProfile(store, servers, coefficients, paper, baseline, spread, list(cells))


def _spread(cells: Sequence[ParallelObservation], terms: Sequence[str], coefficients: dict[str, float]) -> float:
    """How far log10(measured / fitted) scatters over the experiments of a fit."""
    freedom = max(len(cells) - sum(value > 0 for value in coefficients.values()), 1)
    return sqrt(sum(error**2 for error in _errors(cells, terms, coefficients)) / freedom)


def _spread_of_unseen(cells: Sequence[ParallelObservation], terms: Sequence[str]) -> float:
    """The same for experiments that a fit has not seen: each table, number of processes and of servers in turn.

    A program that somebody asks about differs from all of the training, so its interval must cover such errors.
    """
    errors: list[float] = []
    for group in sorted({one for cell in cells for one in cell.groups}, key=str):
        unseen = [cell for cell in cells if group in cell.groups]
        others = [cell for cell in cells if group not in cell.groups]
        if len(others) >= len(terms):
            errors += _errors(unseen, terms, _fitted(others, terms))
    return sqrt(sum(error**2 for error in errors) / len(errors)) if errors else 0.0


def _errors(
    cells: Sequence[ParallelObservation], terms: Sequence[str], coefficients: dict[str, float]
) -> Iterator[float]:
    for cell in cells:
        predicted = sum(v * coefficients[t] for v, t in zip(cell.values(terms), terms, strict=True))
        if predicted > 0:
            yield log10(predicted / cell.seconds)


def _fitted(cells: Sequence[ParallelObservation], terms: Sequence[str]) -> dict[str, float]:
    table = np.array([cell.values(terms) for cell in cells])
    # Relative errors: experiments differ in size by orders of magnitude. Columns of one size keep the fit exact.
    table /= np.array([cell.seconds for cell in cells])[:, None]
    sizes = np.maximum(np.abs(table).max(axis=0), 1e-300)
    values = best_of_subsets(table / sizes, np.ones(len(cells))) / sizes
    return {term: float(value) for term, value in zip(terms, values, strict=True)}


def _check(profile: ParallelProfile) -> None:
    """Raise ValueError if a profile lacks a coefficient, or has one that no fit can find."""
    if not profile.coefficients:
        raise ValueError("it has no coefficients")
    for key in profile.coefficients:
        library, _, direction = key.partition(" ")
        if library not in TERMS or direction not in ("read", "write"):
            raise ValueError(f"{key!r} is not a library and a direction, such as 'hdf5 read'")
        tables = ((profile.coefficients, TERMS[library]), (profile.paper, FORMULAS[library]))
        for coefficients, terms in (*tables, (profile.baseline, BASELINE_TERMS)):
            if missing := sorted(set(terms) - coefficients[key].keys()):
                raise ValueError(f"{key}: coefficients are missing: {', '.join(missing)}")
            _check_numbers(key, *(coefficients[key][term] for term in terms))
        _check_numbers(key, profile.spread[key])
    for cell in profile.cells:
        _check_numbers(cell.name, *cell.asked, cell.seconds)
        if not (cell.asked.n > 0 and cell.seconds > 0 and cell.processes >= 1):
            raise ValueError(f"{cell.name}: an experiment makes at least one request, and takes time")


def _check_numbers(name: str, *values: object) -> None:
    for value in values:
        if not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ValueError(f"{name}: {value!r} is not a number from 0")


def is_parallel_profile(path: Path) -> bool:
    """Whether a file is a parallel profile rather than a store profile."""
    try:
        with open_regular(path) as stream:
            return KIND in stream.read(200).decode()
    except (OSError, UnicodeDecodeError):
        return False


def load_parallel_profile(path: Path) -> ParallelProfile:
    """Load a parallel profile.

    Raises
    ------
    NotAStoreProfile
        The file cannot be read, or is not a parallel profile of this version.
    """
    try:
        if path.stat().st_size > MOST_NBYTES:
            raise NotAStoreProfile(f"{path} has more than {MOST_NBYTES} bytes: it is not a parallel profile")
        given: dict[str, Any] = json.loads(read_regular(path))
        if given.pop("kind") != KIND or given.pop("version") != VERSION:
            raise NotAStoreProfile(f"{path} is not a parallel profile of version {VERSION}: calibrate again")
        cells = [ParallelObservation(**{**cell, "asked": Asked(*cell["asked"])}) for cell in given.pop("cells")]
        return ParallelProfile(**given, cells=cells)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, NotAStoreProfile):
            raise
        raise NotAStoreProfile(f"{path} is not a parallel profile: {error}") from error
