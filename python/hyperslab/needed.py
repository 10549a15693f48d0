"""Optional libraries: which extra of hyperslab installs each, and a check for them before work begins."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from hyperslab.errors import MissingLibrary

# The libraries that each extra brings, by the names they are imported by. A library stands at the smallest extra that
# has it. tests/house/test_extras.py compares this with pyproject.toml.
EXTRAS = {
    "hdf5": ("h5py",),
    "netcdf": ("netCDF4",),
    "zarr": ("zarr",),
    "xarray": ("xarray",),
    "dask": ("dask", "distributed"),
    "report": ("matplotlib", "plotly", "pyarrow"),
    "far": ("fsspec", "aiohttp", "obstore"),
    "aws": ("botocore",),
    "icechunk": ("icechunk",),
    "virtualizarr": ("virtualizarr", "obspec_utils"),
    "formats": (
        "numcodecs", "hdf5plugin", "pyhdf", "scipy", "pandas", "tables", "blosc2", "tiledb", "tensorstore", "zarrs",
    ),
    "fitsio-gpl": ("fitsio",),
    "hidefix-lgpl": ("hidefix",),
    "benchmarks": ("kerchunk", "fastparquet"),
    "demo": ("iris_sample_data",),
    "dev": ("moto", "versioned_hdf5"),
}  # fmt: skip
EXTRA_OF = {library: extra for extra, libraries in EXTRAS.items() for library in libraries}
# Said beside the command, because hyperslab's own licence is another.
LICENCES = {"fitsio": "fitsio has the GPL", "hidefix": "hidefix has the LGPL"}
REPORT = ("pyarrow", "matplotlib", "plotly")


def advice(*libraries: str) -> str:
    """The command that installs libraries: through our extras, or by their own names if no extra has them."""
    ours = list(dict.fromkeys(EXTRA_OF[library] for library in libraries if library in EXTRA_OF))
    others = [library for library in libraries if library not in EXTRA_OF]
    words = [f"'hyperslab[{','.join(ours)}]'"] if ours else []
    licences = "; ".join(LICENCES[library] for library in libraries if library in LICENCES)
    return f"pip install {' '.join(words + others)}" + (f" ({licences})" if licences else "")


def missing(library: str, doing: str | None = None) -> MissingLibrary:
    """The error that says how to install a library; `doing` says what it is needed for."""
    said = f"{library} is not installed" if doing is None else f"{doing} needs {library}"
    return MissingLibrary(f"{said}: {advice(library)}")


def need(doing: str, *libraries: str) -> None:
    """Check that libraries are installed.

    Raises
    ------
    MissingLibrary
        One of them is not installed; the message names the extra of hyperslab that installs it.
    """
    absent = [library for library in libraries if not is_there(library)]
    if absent:
        raise MissingLibrary(f"{doing} needs {', '.join(absent)}: {advice(*absent)}")


def need_h5py(doing: str) -> None:
    """Check that h5py is installed: we read HDF5 without it, but do not write it."""
    need(doing, "h5py")


def need_report(doing: str) -> None:
    """Check that the libraries that draw figures and write tables are installed."""
    need(doing, *REPORT)


def is_there(library: str) -> bool:
    """Whether a library can be imported; it is not imported."""
    try:
        return library in sys.modules or find_spec(library) is not None
    except (ImportError, ValueError):
        return False
