"""The terms of the cost model: the phase of each variable, the formula of the paper it comes from, and our extensions.

A Model is a choice of terms. `PAPER` has formulas 1 to 7 as printed; `EXTENDED` adds our extensions. The baselines
leave out what the paper says must not be left out. All models are fitted to the same cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from hyperslab.model.counting import Direction, Variables
from hyperslab.storage.chain import CodecChain

Phase = Literal[
    "memory_copy", "cache_read", "device_read", "device_write", "codec", "per_chunk", "per_call", "computing"
]
PHASES: tuple[Phase, ...] = (
    "memory_copy",
    "cache_read",
    "device_read",
    "device_write",
    "codec",
    "per_chunk",
    "per_call",
    "computing",  # by the program itself, between the calls: the workload says how long
)
# Encoding or decoding elements that are all the same takes about this share of the time for others.
FILLER_SHARE = 0.15
# Opening an array again in an open file takes about this share of opening the file and the array, as calibration
# does: a quarter by h5py 3.16 (80 of 310 µs), nearly half by zarr-python 3.1 (0.8 of 1.7 ms).
AGAIN_SHARE = 0.3


@cache
def codec_name(codec: str | None) -> str | None:
    """The codec without its level, which shares coefficients with other levels: `zstd:3` is zstd."""
    if codec is None:
        return None
    costly = CodecChain.read(codec).codec
    name = codec if costly is None else costly.plain_name
    return "deflate" if name == "gzip" else name  # the same algorithm


@dataclass(frozen=True)
class Term:
    """Seconds in proportion to one variable. `extension` names one of ours; None is the paper's, from `formulas`."""

    variable: str
    phase: Phase
    formulas: str = ""
    extension: str | None = None
    codec: str | None = None  # only if this codec is used

    @property
    def name(self) -> str:
        """The variable, with the codec if there is one."""
        return self.variable if self.codec is None else f"{self.variable}[{self.codec}]"

    @property
    def unit(self) -> str:
        """The unit of the coefficient."""
        return "s/B" if self.variable.startswith("s_") else "s"

    def value(self, variables: Variables, codec: str | None = None) -> float:
        """The value that the coefficient is multiplied with."""
        if self.codec is not None and self.codec != codec_name(codec):
            return 0.0
        value: float = getattr(variables, self.variable)
        if self.variable == "n_array":
            return value - (1 - AGAIN_SHARE) * variables.n_again
        return value if self.codec is None else value * codec_work(variables, self.variable)


def codec_work(variables: Variables, variable: str) -> float:
    """The share of encoding or decoding that remains because elements with the fill value take less time."""
    encodes = variable.startswith("s_encode")
    filler, whole = (
        (variables.s_encode_filler, variables.s_encode) if encodes else (variables.s_decode_filler, variables.s_decode)
    )
    return 1 - (1 - FILLER_SHARE) * filler / whole if whole else 1.0


MEMORY_COPY = (Term("n_memcpy", "memory_copy", "2"), Term("s_memcpy", "memory_copy", "2"))
CACHE_READ = (Term("n_cache", "cache_read", "3"), Term("s_cache", "cache_read", "3"))
DEVICE_READ = (Term("n_rdisk", "device_read", "4, 5"), Term("s_rdisk", "device_read", "4, 5"))
DEVICE_WRITE = (Term("n_wdisk", "device_write", "6, 7"), Term("s_wdisk", "device_write", "6, 7"))
# A single file has an index and its chunks have an order. One file per chunk has neither.
ONE_FILE_READ = (Term("n_rseek", "device_read", "5"), Term("n_rindex", "device_read", "5"))
ONE_FILE_WRITE = (Term("n_wseek", "device_write", "7"), Term("n_windex", "device_write", "7"))
EXTENSIONS: dict[str, tuple[Term, ...]] = {
    "per_call": (
        Term("n_array", "per_call", extension="per_call"),
        Term("n_cold", "per_call", extension="per_call"),
        Term("n_made", "per_call", extension="per_call"),
        Term("n_call", "per_call", extension="per_call"),
    ),
    "per_chunk": (Term("n_chunk", "per_chunk", extension="per_chunk"),),
    "waiting": (
        Term("s_rseek", "device_read", extension="waiting"),
        Term("s_rshort", "device_read", extension="waiting"),
    ),
    "knee": (
        Term("n_far", "memory_copy", extension="knee"),
        Term("s_mshort", "memory_copy", extension="knee"),
    ),
    "steps": (
        Term("n_element", "memory_copy", extension="steps"),
        Term("n_line", "memory_copy", extension="steps"),
        Term("n_apart", "memory_copy", extension="steps"),
        Term("n_run", "memory_copy", extension="steps"),
        Term("s_spread", "memory_copy", extension="steps"),
    ),
    "fresh": (
        Term("s_fresh", "memory_copy", extension="fresh"),
        Term("s_kept", "memory_copy", extension="fresh"),
    ),
    "once": (
        Term("s_unique", "cache_read", extension="once"),
        Term("s_dirty", "device_write", extension="once"),
        Term("s_grown", "device_write", extension="once"),
    ),
    "codec": (  # and encoding and decoding bytes, for every codec that was trained
        Term("n_decode", "codec", extension="codec"),
        Term("n_encode", "codec", extension="codec"),
    ),
    "overlap": (
        Term("s_exposed", "device_read", extension="overlap"),
        Term("s_covered", "device_read", extension="overlap"),
        Term("s_later", "device_read", extension="overlap"),
    ),
}
# What only HDF5 does.
HDF5_ALONE = frozenset(["n_line", "n_apart", "n_run", "s_kept"])
# With an extension, its terms take the place of a term of the paper.
REPLACED = {"overlap": "s_rdisk"}


def _codec_terms(codecs: tuple[str, ...], library: str) -> tuple[Term, ...]:
    # HDF5 has one thread for any number of chunks, the others have one for each.
    alone = () if library == "hdf5" else ("s_decode_alone", "s_encode_alone")
    return tuple(
        Term(variable, "codec", extension="codec", codec=codec)
        for codec in codecs
        for variable in ("s_decode", "s_decode_in", "s_encode", "s_encode_out", *alone)
    )


@dataclass(frozen=True)
class Model:
    """A choice of terms. `phases` and `only`, if set, keep only these phases and variables."""

    name: str
    extensions: frozenset[str] = frozenset(EXTENSIONS)
    phases: frozenset[Phase] = frozenset(PHASES)
    only: frozenset[str] | None = None

    def without(self, extension: str) -> Model:
        """The same model without one of our extensions, to see what it is worth."""
        if extension not in self.extensions:
            raise ValueError(f"{self.name} has no extension {extension!r}; it has {', '.join(sorted(self.extensions))}")
        return replace(self, name=f"{self.name} without {extension}", extensions=self.extensions - {extension})

    def terms(self, library: str, operation: Direction, codecs: tuple[str, ...] = ()) -> tuple[Term, ...]:
        """The terms for a library and an operation, including those of the trained codecs."""
        one_file = library != "zarr"
        applicable = [*MEMORY_COPY, *CACHE_READ, *DEVICE_READ, *(ONE_FILE_READ if one_file else ())]
        if operation == "write":
            applicable += [*DEVICE_WRITE, *(ONE_FILE_WRITE if one_file else ())]
        for name, terms in EXTENSIONS.items():
            if name in self.extensions:
                applicable += [t for t in terms if operation == "write" or t.phase != "device_write"]
        if "codec" in self.extensions:
            applicable += _codec_terms(codecs, library)
        replaced = {variable for name, variable in REPLACED.items() if name in self.extensions}
        replaced |= HDF5_ALONE if library != "hdf5" else set()
        applicable = [t for t in applicable if t.variable not in replaced]
        return tuple(t for t in applicable if t.phase in self.phases and (self.only is None or t.variable in self.only))


PAPER = Model("paper", frozenset())
EXTENDED = Model("hyperslab")
IO_ONLY = Model("I/O only", frozenset(), frozenset({"cache_read", "device_read", "device_write"}))
BYTES_ONLY = Model("bytes only", frozenset(), only=frozenset({"s_cache", "s_rdisk", "s_wdisk"}))
BASELINES = (IO_ONLY, BYTES_ONLY)
MODELS = (EXTENDED, PAPER, *BASELINES)


def values(terms: tuple[Term, ...], variables: Variables, codec: str | None = None) -> npt.NDArray[np.float64]:
    """The values that the terms' coefficients are multiplied with, in the order of the terms."""
    return np.array([term.value(variables, codec) for term in terms])
