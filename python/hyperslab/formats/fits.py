"""FITS images: the array format of astronomy.

Specification: https://fits.gsfc.nasa.gov/fits_standard.html. Library: fitsio (which contains CFITSIO). We chose it
over astropy.io.fits, where each appended extension takes longer than the one before (measured: 1000 arrays of 256
KiB, flushed one by one, took 96 s with astropy and 0.8 s with fitsio). Each array is an image extension whose
EXTNAME is the name of the array: case-sensitive, at most 68 ASCII characters. The primary HDU is empty. The file is
big-endian; the library converts to native order. int8, uint16 and uint32 are stored with an offset (BZERO).

fitsio has a call that only creates an image, but it fills the image with zeros; its call that creates and writes in
one pass turns infinities into NaN. So `create_array` only remembers what to create, and the first `write` creates
the image: in one pass if it writes the whole array and all values are finite, otherwise with zeros first. An array
that you never write is created when you close the file.

CFITSIO buffers blocks of 2880 bytes and writes them once an array has been written. To find an array, it reads the
headers of all arrays. Tile compression is out of scope here.

Cannot express: uint64 (fitsio does not write it), chunks, codecs, growth, writing every k-th element.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab
from hyperslab.errors import Refused, UsageError
from hyperslab.formats.contract import (
    NUMERIC_DTYPES,
    ArrayFile,
    ArrayHandle,
    ArraySpec,
    Capabilities,
    Format,
    Installed,
    Need,
    imported,
)
from hyperslab.storage.layout import StoredLayout

_NAME_LIMIT = 68  # characters of a string in one header card


class Fits(Format):
    """FITS through CFITSIO."""

    name: ClassVar[str] = "fits"
    extension: ClassVar[str] = ".fits"
    aliases: ClassVar[tuple[str, ...]] = (".fit", ".fts")
    capabilities: ClassVar[Capabilities] = Capabilities(
        dtypes=NUMERIC_DTYPES - {"uint64"},
        byte_order="big",
        notes="one image extension per array; converted from and to big-endian; no tile compression here",
    )
    default_layout: ClassVar[str] = "contiguous"

    @classmethod
    def library(cls) -> Installed:
        """Fitsio and the CFITSIO in it."""
        fitsio = imported("fitsio")
        return Installed("fitsio", fitsio.__version__, (("CFITSIO", fitsio.cfitsio_version()),))

    def create(self, path: Path) -> ArrayFile:
        """Create the file with an empty primary HDU."""
        if path.exists():
            raise UsageError(f"{path} exists already: choose another name")
        fits = imported("fitsio").FITS(str(path), "rw", case_sensitive=True)
        fits.write(None)
        return FitsFile(path, fits)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open the file; CFITSIO reads the headers when you ask for an array."""
        if not path.is_file():
            raise UsageError(f"{path} is not a file")
        try:
            return FitsFile(path, imported("fitsio").FITS(str(path), mode.replace("r+", "rw"), case_sensitive=True))
        except OSError as error:
            raise UsageError(f"{path}: CFITSIO cannot open it: {error}") from error

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        yield from super()._reasons(spec, need)
        if not spec.shape or 0 in spec.shape:
            yield "cannot store an array without axes or without elements"


class FitsFile(ArrayFile):
    """An open FITS file."""

    def __init__(self, path: Path, fits: Any) -> None:
        self._path = path
        self._fits = fits
        self._created: list[FitsArray] = []

    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:
        """Remember the image extension to create; CFITSIO creates it with the first write."""
        if len(name) > _NAME_LIMIT or not name.isascii():
            raise Refused(f"array name {name!r}: FITS names have at most {_NAME_LIMIT} characters, all ASCII")
        self._created.append(FitsArray(self._fits, name, spec.shape, spec.dtype.newbyteorder("=")))
        return self._created[-1]

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:  # noqa: ARG002 - the file describes itself
        """Find the extension."""
        hdu = self._image(name)
        return FitsArray(self._fits, name, tuple(hdu.get_dims()), None, hdu)

    def array_names(self) -> list[str]:
        """The names of all image extensions."""
        self._create_all()
        self._fits.update_hdu_list()
        return [hdu.get_extname() for hdu in self._fits if _is_image(hdu) and hdu.get_extname()]

    def describe(self, name: str) -> ArraySpec:
        """Read shape and dtype from the extension's header."""
        hdu = self._image(name)
        if hdu.is_compressed():
            raise UsageError(f"{self._path}: {name!r} is tile-compressed, which this format does not support")
        origin = hdu[tuple(slice(0, 1) for _ in hdu.get_dims())]
        return ArraySpec(tuple(hdu.get_dims()), origin.dtype.newbyteorder("="), StoredLayout())

    def close(self) -> None:
        """Create arrays that were never written, and close the file."""
        self._create_all()
        self._fits.close()

    def _create_all(self) -> None:
        for array in self._created:
            array.image()
        self._created.clear()

    def _image(self, name: str) -> Any:
        try:
            hdu = self._fits[name]
        except OSError as error:
            raise UsageError(f"{self._path} has no array {name!r}") from error
        if not _is_image(hdu):
            raise UsageError(f"{self._path}: {name!r} is not an image with elements")
        return hdu


class FitsArray(ArrayHandle):
    """An image extension. If it does not exist yet, `dtype` is the dtype that it will have."""

    def __init__(
        self, fits: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any] | None, hdu: Any = None
    ) -> None:
        self._fits = fits
        self._name = name
        self._shape = shape
        self._dtype = dtype
        self._hdu = hdu

    def image(self) -> Any:
        """The extension; if it does not exist yet, it is created and filled with zeros."""
        if self._hdu is None:
            self._fits.create_image_hdu(dims=self._shape, dtype=self._dtype, extname=self._name)
            self._hdu = self._fits[-1]
        return self._hdu

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Convert and write; a selection must have steps of 1."""
        wanted = self._shape if selection is None else tuple(selection.shape)
        if data.shape != wanted:
            raise UsageError(f"array {self._name!r}: the data have shape {data.shape}, the selection has {wanted}")
        if selection is None:
            self._write_all(data)
            return
        if any((piece.step or 1) != 1 for piece in selection.slices):
            raise Refused("fits cannot write every k-th element")
        self.image().write(data, start=[piece.start for piece in selection.slices])

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Read and convert."""
        hdu = self.image()
        return np.asarray(hdu.read() if selection is None else hdu[selection.slices])

    def _write_all(self, data: np.ndarray) -> None:
        if self._hdu is None and np.isfinite(data).all():
            self._fits.write(np.ascontiguousarray(data, self._dtype), extname=self._name)
            self._hdu = self._fits[-1]
        else:
            self.image().write(data)


def _is_image(hdu: Any) -> bool:
    return hdu.get_exttype() == "IMAGE_HDU" and bool(hdu.get_dims())
