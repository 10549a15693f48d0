"""What advice must keep to: hard limits, and where the file will be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hyperslab.errors import UsageError

Keep = Literal["hdf5", "netcdf", "any"]
Codecs = Literal["own", "any"]


@dataclass(frozen=True)
class Limits:
    """Hard limits. None means that there is none. Sizes are those of decoded bytes."""

    max_files: int | None = None
    memory_nbytes: int | None = None
    min_chunk_nbytes: int | None = None
    max_chunk_nbytes: int | None = None
    append_axis: int | None = None
    keep: Keep | None = None
    price_per_request: float | None = None
    max_nbytes: int | None = None  # of the stored array
    codecs: Codecs = "own"  # those that the program's own library decodes, or all

    def check(self, shape: Sequence[int], element_nbytes: int) -> None:
        """Refuse limits that contradict each other or the array.

        Raises
        ------
        UsageError
            The message names both limits.
        """
        least, most = self.min_chunk_nbytes, self.max_chunk_nbytes
        if least is not None and most is not None and least > most:
            raise UsageError(f"--min-chunk ({least} bytes) is larger than --max-chunk ({most} bytes): no chunk fits")
        if most is not None and most < element_nbytes:
            raise UsageError(f"--max-chunk ({most} bytes) is smaller than one element ({element_nbytes} bytes)")
        if self.memory_nbytes is not None and least is not None and least > self.memory_nbytes:
            raise UsageError(
                f"--min-chunk ({least} bytes) is larger than --memory ({self.memory_nbytes} bytes): a chunk is decoded "
                "as a whole"
            )
        if self.memory_nbytes is not None and self.memory_nbytes < element_nbytes:
            raise UsageError(f"--memory ({self.memory_nbytes} bytes) is smaller than one element")
        if self.max_files is not None and self.max_files < 1:
            raise UsageError(f"--max-files {self.max_files}: an array needs at least one file")
        if self.append_axis is not None and not 0 <= self.append_axis < len(shape):
            raise UsageError(f"--append-axis {self.append_axis}: the array has the axes 0 to {len(shape) - 1}")
        if self.max_nbytes is not None and self.max_nbytes < 1:
            raise UsageError("--max-size must be at least one byte")
        if self.price_per_request is not None and self.price_per_request < 0:
            raise UsageError("--price-per-request must not be negative")


def axis_of(text: str | None, shape: Sequence[int], dims: Sequence[str] | None) -> int | None:
    """The axis that `--append-axis` names, by its number or by its dimension."""
    if text is None:
        return None
    if dims is not None and text in dims:
        return list(dims).index(text)
    if text.isdecimal() and text.isascii():
        return int(text)
    known = f"{', '.join(dims)}, or " if dims else ""
    raise UsageError(f"--append-axis {text!r} is not an axis: give {known}a number from 0 to {len(shape) - 1}")
