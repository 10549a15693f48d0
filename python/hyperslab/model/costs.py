"""From variables to seconds: formula 1, a sum of phases, each a sum of terms times their coefficients.

Where the formulas of the paper (Kang et al.) are:

    1       t = t_memory + t_rdisk + t_wdisk + t_cache                  `price`
    2 to 7  the terms of each phase                                     `terms.MEMORY_COPY` and the following
    8       cf, the processes that share a data server                  `contention`
    9, 10   reads and writes of one process of a parallel program       `parallel_values`
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf

import numpy as np
import numpy.typing as npt

from hyperslab._core import contention
from hyperslab.model.counting import Direction, Variables
from hyperslab.model.terms import PHASES, Phase, Term, codec_name, codec_work, values

# A 95 % interval of a normal distribution, for the logarithm of a prediction.
DEVIATIONS = 1.96
# A variable may lie this far beyond its trained range before a prediction says so.
TOLERANCE = 1.5
# Each of these variables stands for a kind of work. If it was never trained, its seconds are missing.
NEEDED = ("n_cache", "n_rdisk", "n_wdisk", "n_memcpy", "n_absent", "n_element", "n_run")
# Pairs of variables whose quotient is the mean size of a copy or request.
MEANS = {
    "bytes per memory copy": ("s_memcpy", "n_memcpy"),
    "memory copies per chunk": ("n_memcpy", "n_chunk"),
    "bytes per read of the page cache": ("s_cache", "n_cache"),
    "bytes per read of the device": ("s_rdisk", "n_rdisk"),
    "bytes per write": ("s_wdisk", "n_wdisk"),
    "chunks per call": ("n_chunk", "n_call"),
}


@dataclass(frozen=True)
class Coefficient:
    """Seconds for one unit of a variable, with a 95 % interval. Both ends are None if the cells cannot determine it."""

    term: Term
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Coefficients:
    """What was fitted for one library and operation, by one model.

    `covariance` is that of the values. `spread` is the remaining standard deviation of log(measured / predicted).
    `condition` is the condition number of the fit; `ridge` says whether it was singular, so that small coefficients
    were preferred. `rmse_log10` is the error over the cells of the fit. `ranges` are the trained ranges of the
    variables and of the quotients of `MEANS`.
    """

    model: str
    library: str
    operation: Direction
    each: tuple[Coefficient, ...]
    covariance: npt.NDArray[np.float64]
    spread: float
    cell_count: int
    condition: float
    ridge: bool
    rmse_log10: float
    ranges: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class CodecRate:
    """What a codec costs: seconds for each decoded byte, beyond what the same access takes without the codec.

    A library with threads takes more for a byte if a call has a single chunk: `decode_alone` and `encode_alone`. None
    means the same.
    """

    decode: float
    encode: float
    decode_alone: float | None = None
    encode_alone: float | None = None

    def seconds(self, variables: Variables) -> float:
        """The seconds that accesses spend in the codec."""
        decode = _over_calls(self.decode, self.decode_alone, variables.s_decode, variables.s_decode_alone)
        encode = _over_calls(self.encode, self.encode_alone, variables.s_encode, variables.s_encode_alone)
        return decode * codec_work(variables, "s_decode") + encode * codec_work(variables, "s_encode")


@dataclass(frozen=True)
class CallsBeyond:
    """What a library that calls HDF5 takes beyond h5py: seconds of each opening, each call, and each byte read."""

    opening: float
    call: float
    byte: float

    def cost(self, variables: Variables) -> Cost:
        """What that is for accesses, without an interval of its own."""
        opening = self.opening * (variables.n_array - variables.n_again)  # netCDF opens all arrays with their file
        calls = opening + self.call * variables.n_call
        copies = self.byte * (variables.s_memcpy + variables.s_direct)
        phases: dict[Phase, float] = {**dict.fromkeys(PHASES, 0.0), "per_call": calls, "memory_copy": copies}
        seconds = calls + copies
        return Cost(phases, seconds, seconds, opening=opening, own=seconds - opening)


def _over_calls(rate: float, alone: float | None, whole: float, single: float) -> float:
    """Seconds for all bytes, of which some are the only chunk of their call."""
    return rate * (whole - single) + (rate if alone is None else alone) * single


@dataclass(frozen=True)
class Cost:
    """Predicted seconds by phase, with a 95 % interval.

    `extrapolating` names the variables that lie outside the trained range. `unknown` says what has no price, such as a
    codec that was not trained. The seconds are then only those of the rest, and `high` is infinite. In `opening` of
    them, the array and its file are opened and closed, and in `own` a library that calls HDF5 does its own work. A
    trace times neither.
    """

    phases: dict[Phase, float]
    low: float
    high: float
    extrapolating: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    opening: float = 0.0
    own: float = 0.0

    @property
    def seconds(self) -> float:
        """Formula 1: the sum of the phases, in seconds."""
        return sum(self.phases.values())

    @property
    def rank(self) -> tuple[bool, float]:
        """A sort key: the fastest first, and after all others what cannot be priced."""
        return bool(self.unknown), self.seconds

    def is_too_close_to(self, other: Cost) -> bool:
        """Whether it cannot be said which of two costs is lower: the intervals overlap, or one is unknown."""
        return self.low <= other.high and other.low <= self.high

    def __add__(self, other: Cost) -> Cost:
        phases = {phase: seconds + other.phases[phase] for phase, seconds in self.phases.items()}
        said = dict.fromkeys((*self.extrapolating, *other.extrapolating))
        unknown = dict.fromkeys((*self.unknown, *other.unknown))
        ends, opening = (self.low + other.low, self.high + other.high), self.opening + other.opening
        return Cost(phases, *ends, tuple(said), tuple(unknown), opening, self.own + other.own)


def computing(seconds: float) -> Cost:
    """The cost of what a program computes between its calls, which nothing can change."""
    return Cost({**dict.fromkeys(PHASES, 0.0), "computing": seconds}, seconds, seconds)


def price(
    variables: Variables, coefficients: Coefficients, codec: str | None = None, rate: CodecRate | None = None
) -> Cost:
    """The cost of accesses: formula 1, with the terms of formulas 2 to 7 and our extensions.

    Parameters
    ----------
    variables : Variables
        What the accesses make the library and its device do.
    coefficients : Coefficients
        Seconds for one unit of each variable, fitted for the same library and operation.
    codec : str | None
        The codec of the array, by its name in `hyperslab formats`.
    rate : CodecRate | None
        What the codec costs on a sample of the data. It takes the place of the trained coefficients.

    Returns
    -------
    Cost
        Seconds by phase, with an interval.
    """
    terms = tuple(each.term for each in coefficients.each)
    factors = values(terms, variables, None if rate else codec)
    parts = factors * np.array([each.value for each in coefficients.each])
    phases: dict[Phase, float] = dict.fromkeys(PHASES, 0.0)
    opening = 0.0
    for term, part in zip(terms, parts.tolist(), strict=True):
        phases[term.phase] += part
        opening += part if term.variable in ("n_array", "n_cold") else 0.0
    if rate:
        phases["codec"] += rate.seconds(variables) + _moved_more(variables, coefficients)
    seconds = sum(phases.values())
    relative = float(factors @ coefficients.covariance @ factors) / seconds**2 if seconds > 0 else 0.0
    # Rounded, because threads of BLAS add in another order each time, and the same question gets the same answer.
    reach = round(exp(DEVIATIONS * min(float(np.sqrt(max(relative, 0.0) + coefficients.spread**2)), 100.0)), 9)
    unknown = () if rate else _unknown(variables, coefficients, codec)
    high = inf if unknown else seconds * reach
    return Cost(phases, seconds / reach, high, tuple(_outside(variables, coefficients)), unknown, opening)


def _moved_more(variables: Variables, coefficients: Coefficients) -> float:
    """Seconds for the bytes that an access moves without the codec and not with it: a `CodecRate` is beyond these."""
    per_byte = {each.term.variable: each.value for each in coefficients.each}
    read = per_byte.get("s_cache", 0.0) * max(variables.s_decode - variables.s_decode_in, 0.0)
    return read + per_byte.get("s_wdisk", 0.0) * max(variables.s_encode - variables.s_encode_out, 0.0)


def means(variables: Variables) -> dict[str, float]:
    """The quotients of `MEANS` whose denominator is not 0."""
    pairs = {name: (getattr(variables, a), getattr(variables, b)) for name, (a, b) in MEANS.items()}
    return {name: a / b for name, (a, b) in pairs.items() if a > 0 and b > 0}


def _unknown(variables: Variables, coefficients: Coefficients, codec: str | None) -> tuple[str, ...]:
    """What takes time, but has no coefficient: encoding, or decoding, with a codec that was not trained."""
    if variables.s_encode + variables.s_decode == 0:
        return ()
    if codec is None:
        return ("the codec is not named",)
    known = {each.term.codec for each in coefficients.each}
    return () if codec_name(codec) in known else (f"codec {codec} was not trained",)


def _outside(variables: Variables, coefficients: Coefficients) -> list[str]:
    trained = coefficients.ranges
    needed = [name for name, value in variables._asdict().items() if value > 0 and name in NEEDED]
    reasons = [f"{name} was not trained" for name in needed if name not in trained]
    for name, value in means(variables).items():
        low, high = trained.get(name, (value, value))
        if not low / TOLERANCE <= value <= high * TOLERANCE:
            reasons.append(f"{name} {value:.3g}, trained from {low:.3g} to {high:.3g}")
    return reasons


def parallel_values(
    variables: Variables, library: str, operation: Direction, processes: int, servers: int
) -> dict[str, float]:
    """The values that formulas 9 (HDF5) and 10 (Zarr) multiply with their coefficients, for one process.

    Parameters
    ----------
    variables : Variables
        The variables of the whole program.
    library : str
        `hdf5` or `zarr`.
    operation : Direction
        `read` or `write`.
    processes : int
        How many processes run at the same time.
    servers : int
        How many data servers (devices) hold the data. Formula 8 (`contention`) uses it.

    Returns
    -------
    dict[str, float]
        The value of each variable.

    Raises
    ------
    ValueError
        `processes` or `servers` is less than 1.
    """
    shared = contention(processes, servers)
    requests, nbytes = (
        (variables.n_rrequest, variables.s_rrequest)
        if operation == "read"
        else (variables.n_wrequest, variables.s_wrequest)
    )
    letter = operation[0]
    factors = {
        f"n_{letter}request": requests,
        f"s_{letter}request": nbytes,
        f"n_{letter}request*cf": requests * shared,
        f"s_{letter}request*cf": nbytes * shared,
    }
    if library == "zarr":
        factors[f"n_{letter}request*p"] = requests * processes
        factors |= {"n_memcpy": variables.n_memcpy, "s_memcpy": variables.s_memcpy}
    return factors
