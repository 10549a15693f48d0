"""FITS images: what astronomy stores its arrays in.

Specification: https://fits.gsfc.nasa.gov/fits_standard.html. Library: fitsio (CFITSIO inside), chosen over
astropy.io.fits because appending with astropy becomes slower with every extension (measured: 1000 arrays of
256 KiB, flushed one by one, took 96 s, with fitsio 0.8 s). Each array is an image extension whose EXTNAME is
the array's name, told apart by case, of up to 68 ASCII characters; the primary HDU is empty. Stored
big-endian, and converted by the library to native order; int8, uint16 and uint32 are stored with an offset
(BZERO).

fitsio's call that only creates an image fills all of it with zeros, and its call that creates and writes in
one pass turns infinities into NaN. So `create_array` remembers what to create, and the first `write` makes
it: in one pass where it is the whole array and finite, else with that filling. What is never written is
created when the file is closed.

CFITSIO buffers in blocks of 2880 bytes and writes them when an array has been written. Finding an array reads
the headers of all. Tile compression is out of scope here.

Cannot express: uint64 (fitsio does not write it), chunks, codecs, growth, writing every k-th element.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab
from hyperslab.errors import MissingLibrary, Refused, UsageError
from hyperslab.formats.contract import (
    NUMERIC_DTYPES,
    ArrayFile,
    ArrayHandle,
    ArraySpec,
    Capabilities,
    Format,
    Installed,
    Need,
    StoredLayout,
)

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
        fitsio = _fitsio()
        return Installed("fitsio", fitsio.__version__, (("CFITSIO", fitsio.cfitsio_version()),))

    def create(self, path: Path) -> ArrayFile:
        """Create the file with an empty primary HDU."""
        if path.exists():
            raise UsageError(f"{path} exists already")
        fits = _fitsio().FITS(str(path), "rw", case_sensitive=True)
        fits.write(None)
        return FitsFile(path, fits)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open the file; headers are read when an array is looked for."""
        if not path.is_file():
            raise UsageError(f"{path} is not a file")
        try:
            return FitsFile(path, _fitsio().FITS(str(path), mode.replace("r+", "rw"), case_sensitive=True))
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
            raise Refused(f"array name {name!r}: FITS names are ASCII, of at most {_NAME_LIMIT} characters")
        self._created.append(FitsArray(self._fits, name, spec.shape, spec.dtype.newbyteorder("=")))
        return self._created[-1]

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:  # noqa: ARG002 - says it itself
        """Find the extension."""
        hdu = self._image(name)
        return FitsArray(self._fits, name, tuple(hdu.get_dims()), None, hdu)

    def array_names(self) -> list[str]:
        """The names of all image extensions."""
        self._create_all()
        self._fits.update_hdu_list()
        return [hdu.get_extname() for hdu in self._fits if _is_image(hdu) and hdu.get_extname()]

    def describe(self, name: str) -> ArraySpec:
        """What the extension's header says."""
        hdu = self._image(name)
        if hdu.is_compressed():
            raise UsageError(f"{self._path}: {name!r} is tile-compressed, which is out of scope here")
        origin = hdu[tuple(slice(0, 1) for _ in hdu.get_dims())]
        return ArraySpec(tuple(hdu.get_dims()), origin.dtype.newbyteorder("="), StoredLayout())

    def close(self) -> None:
        """Create what was never written, and close the file."""
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
    """An image extension, perhaps one that is not created yet: then `dtype` says what it will hold."""

    def __init__(
        self, fits: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any] | None, hdu: Any = None
    ) -> None:
        self._fits = fits
        self._name = name
        self._shape = shape
        self._dtype = dtype
        self._hdu = hdu

    def image(self) -> Any:
        """The extension; created, full of zeros, if it is not there."""
        if self._hdu is None:
            self._fits.create_image_hdu(dims=self._shape, dtype=self._dtype, extname=self._name)
            self._hdu = self._fits[-1]
        return self._hdu

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Convert and write; a selection must have steps of 1."""
        wanted = self._shape if selection is None else tuple(selection.shape)
        if data.shape != wanted:
            raise UsageError(f"array {self._name!r}: data of shape {data.shape} for a place of shape {wanted}")
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


def _fitsio() -> Any:
    try:
        import fitsio
    except ImportError as error:
        raise MissingLibrary("fitsio is not installed: pip install 'hyperslab[formats]'") from error
    return fitsio
