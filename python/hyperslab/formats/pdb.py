"""PDB, Livermore's Portable Database, through the PDB driver of the Silo library.

Documentation: https://silo.readthedocs.io. Library: libsiloh5 (Debian: `apt-get install libsiloh5-0`), called
through ctypes. Arrays are contiguous, in the machine's own byte order, which the file records.

Silo has no call that only creates an array: `create_array` remembers shape and dtype, and the first `write` creates
the array in the file. Silo does not check that a selection lies inside its array, so this module checks it.

Cannot express: names other than letters, digits and underscores; 8-bit and unsigned integers; chunks, codecs,
growth; 2 GiB or more in an array (Silo counts with 32-bit integers).
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator
from ctypes.util import find_library
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab
from hyperslab.errors import MissingLibrary, Refused, RunError, UsageError
from hyperslab.formats.contract import ArrayFile, ArrayHandle, ArraySpec, Capabilities, Format, Installed, Need
from hyperslab.storage.layout import StoredLayout

# Numbers from silo.h; DBWrite takes the number of a type, and DBGetVarType returns it
_TYPES = {"int32": 16, "int16": 17, "int64": 18, "float32": 19, "float64": 20}
_DTYPES = {number: np.dtype(name) for name, number in _TYPES.items()}
_CLOBBER, _LOCAL, _PDB, _READ, _APPEND, _SHOW_NO_ERRORS = 0, 0, 2, 1, 2, 1
_PLAIN_VARIABLES = 17  # index of `var_names` and `nvar` among the pairs in DBtoc
_SILO_OWN = frozenset(["_fileinfo", "_silolibinfo"])
_MOST_AXES = 7  # Silo 4.11 overruns its stack and aborts with 8
_DIMENSION_ROOM = 32
_SIZE_LIMIT = 2**31 - 1

_NAME = re.compile(r"[A-Za-z0-9_]+")


class Pdb(Format):
    """PDB through Silo."""

    name: ClassVar[str] = "pdb"
    extension: ClassVar[str] = ".pdb"
    aliases: ClassVar[tuple[str, ...]] = (".silo",)
    capabilities: ClassVar[Capabilities] = Capabilities(
        empty=False,
        dtypes=frozenset(_TYPES),
        max_ndim=_MOST_AXES,
        byte_order="native",
        notes="an array is created when it is first written; names consist of letters, digits and _",
    )
    default_layout: ClassVar[str] = "contiguous"

    @classmethod
    def library(cls) -> Installed:
        """Silo."""
        return Installed("Silo", _silo().DBVersion().decode())

    def create(self, path: Path) -> ArrayFile:
        """Create a file with Silo's own two arrays in it."""
        if path.exists():
            raise UsageError(f"{path} exists already: choose another name")
        return PdbFile(path, _silo().DBCreateReal(bytes(path), _CLOBBER, _LOCAL, b"", _PDB))

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open the file and read its symbol table."""
        return PdbFile(path, _silo().DBOpenReal(bytes(path), _PDB, _READ if mode == "r" else _APPEND))

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        yield from super()._reasons(spec, need)
        if not spec.shape or 0 in spec.shape:
            yield "cannot store an array without axes or without elements"
        if spec.nbytes > _SIZE_LIMIT:
            yield "cannot store arrays of 2 GiB or more"


class PdbFile(ArrayFile):
    """An open PDB file."""

    def __init__(self, path: Path, file: int | None) -> None:
        if file is None:
            raise UsageError(f"{path}: Silo cannot open it as PDB: {_reason()}")
        self._path = path
        self.pointer: int | None = file

    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:
        """Remember shape and dtype; Silo creates the array with the first write."""
        if _NAME.fullmatch(name) is None:
            raise Refused(f"array name {name!r}: PDB names in Silo consist of letters, digits and _ only")
        return PdbArray(self, name, spec.shape, spec.dtype)

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:  # noqa: ARG002 - the file describes itself
        """Look up the array in the symbol table."""
        described = self.describe(name)
        return PdbArray(self, name, described.shape, described.dtype)

    def __del__(self) -> None:
        # Silo refuses to open a file for writing if this process still has it open, even through an unused handle.
        if getattr(self, "pointer", None) is not None:
            _silo().DBClose(self.pointer)

    def array_names(self) -> list[str]:
        """The names of all arrays except Silo's own two."""
        contents = _silo().DBGetToc(self.pointer)[_PLAIN_VARIABLES]
        names = (contents.names[index].decode() for index in range(contents.count))
        return sorted(name for name in names if name not in _SILO_OWN)

    def describe(self, name: str) -> ArraySpec:
        """Read shape and dtype from the symbol table."""
        lengths = (ctypes.c_int * _DIMENSION_ROOM)()
        key = name.encode()
        axis_count = _silo().DBGetVarDims(self.pointer, key, _DIMENSION_ROOM, lengths) if _NAME.fullmatch(name) else -1
        if axis_count < 1:
            raise UsageError(f"{self._path} has no array {name!r}")
        if axis_count > _MOST_AXES:
            raise UsageError(f"{self._path}: {name!r} has {axis_count} axes, but Silo reads at most {_MOST_AXES}")
        number = _silo().DBGetVarType(self.pointer, key)
        if number not in _DTYPES:
            raise UsageError(f"{self._path}: {name!r} has Silo's type {number}, which this format cannot read")
        return ArraySpec(tuple(lengths[:axis_count]), _DTYPES[number], StoredLayout())

    def flush(self) -> None:
        """Write the symbol table and the buffers, if this version of Silo can (4.11)."""
        if hasattr(_silo(), "DBFlush"):
            _silo().DBFlush(self.pointer)

    def close(self) -> None:
        """Write the symbol table and close the file."""
        if self.pointer is not None and _silo().DBClose(self.pointer) != 0:
            raise RunError(f"{self._path}: Silo cannot close it: {_reason()}")
        self.pointer = None


class PdbArray(ArrayHandle):
    """An array of an open file."""

    def __init__(self, file: PdbFile, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._file = file
        self._name = name
        self._shape = shape
        self._dtype = dtype

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Create or change the array."""
        stored = np.ascontiguousarray(data, self._dtype)
        wanted = self._shape if selection is None else selection.shape
        if stored.shape != tuple(wanted):
            raise UsageError(f"array {self._name!r}: the data have shape {stored.shape}, the selection has {wanted}")
        key, kind, shape = self._name.encode(), _TYPES[self._dtype.name], _ints(self._shape)
        if selection is None:
            status = _silo().DBWrite(self._file.pointer, key, stored.ctypes.data, shape, len(shape), kind)
        else:
            box = self._box(selection)
            status = _silo().DBWriteSlice(self._file.pointer, key, stored.ctypes.data, kind, *box, shape, len(shape))
        self._check(status, "write")

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Read the whole array or a selection."""
        key = self._name.encode()
        if selection is None:
            out = np.empty(self._shape, self._dtype)
            status = _silo().DBReadVar(self._file.pointer, key, out.ctypes.data)
        else:
            box = self._box(selection)
            out = np.empty(selection.shape, self._dtype)
            status = _silo().DBReadVarSlice(self._file.pointer, key, *box, len(self._shape), out.ctypes.data)
        self._check(status, "read")
        return out

    def _box(self, selection: Hyperslab) -> tuple[Any, Any, Any]:
        """Offsets, lengths and strides for Silo; a length is the span in the array, not the number of elements."""
        slices, counts = selection.slices, selection.shape
        if len(slices) != len(self._shape) or math.prod(counts) == 0:
            raise UsageError(f"array {self._name!r}: a selection of shape {counts} is empty or has the wrong rank")
        strides = [piece.step or 1 for piece in slices]
        spans = [(count - 1) * stride + 1 for count, stride in zip(counts, strides, strict=True)]
        offsets = [piece.start for piece in slices]
        if any(start + span > length for start, span, length in zip(offsets, spans, self._shape, strict=True)):
            raise UsageError(f"array {self._name!r}: the selection reaches outside the shape {self._shape}")
        return _ints(offsets), _ints(spans), _ints(strides)

    def _check(self, status: int, verb: str) -> None:
        if status != 0:
            raise RunError(f"array {self._name!r}: Silo cannot {verb} it: {_reason()}")


class _Names(ctypes.Structure):
    """One kind of object in Silo's table of contents: the names and their number."""

    _fields_ = (("names", ctypes.POINTER(ctypes.c_char_p)), ("count", ctypes.c_int))


def _ints(numbers: Any) -> Any:
    return (ctypes.c_int * len(numbers))(*numbers)


def _reason() -> str:
    reason: str = _silo().DBErrString().decode(errors="replace")
    return reason


@cache
def _silo() -> Any:
    try:
        silo = _load()
    except OSError as error:
        raise MissingLibrary(
            f"Silo (libsiloh5) is not installed: apt-get install libsiloh5-0; the loader says: {error}"
        ) from error
    for function, (result, *arguments) in _PROTOTYPES.items():
        if hasattr(silo, function):
            bound = getattr(silo, function)
            bound.restype, bound.argtypes = result, arguments
    silo.DBShowErrors(_SHOW_NO_ERRORS, None)
    return silo


def _load() -> Any:
    # Debian's libsiloh5 uses symbols of libstdc++, but does not list it as a dependency.
    ctypes.CDLL("libstdc++.so.6", mode=ctypes.RTLD_GLOBAL)
    try:
        return ctypes.CDLL("libsiloh5.so.0")
    except OSError:
        path = find_library("siloh5") or find_library("silo")
        if path is None:
            raise
        return ctypes.CDLL(path)


_INT, _PTR, _STR = ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p
_INTS = ctypes.POINTER(ctypes.c_int)
_PROTOTYPES: dict[str, tuple[Any, ...]] = {  # function -> result, arguments
    "DBCreateReal": (_PTR, _STR, _INT, _INT, _STR, _INT),
    "DBOpenReal": (_PTR, _STR, _INT, _INT),
    "DBClose": (_INT, _PTR),
    "DBFlush": (_INT, _PTR),
    "DBWrite": (_INT, _PTR, _STR, _PTR, _INTS, _INT, _INT),
    "DBWriteSlice": (_INT, _PTR, _STR, _PTR, _INT, _INTS, _INTS, _INTS, _INTS, _INT),
    "DBReadVar": (_INT, _PTR, _STR, _PTR),
    "DBReadVarSlice": (_INT, _PTR, _STR, _INTS, _INTS, _INTS, _INT, _PTR),
    "DBGetVarDims": (_INT, _PTR, _STR, _INT, _INTS),
    "DBGetVarType": (_INT, _PTR, _STR),
    "DBGetToc": (ctypes.POINTER(_Names), _PTR),
    "DBShowErrors": (None, _INT, _PTR),
    "DBErrString": (_STR,),
    "DBVersion": (_STR,),
}
