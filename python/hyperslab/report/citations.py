"""The published studies, as one cites them: authors, title, year and, where the study names one, its DOI."""

from __future__ import annotations

# By the first word of a study's name.
CITATIONS: dict[str, str] = {
    "seed0": "S. Ambatipudi, Y. Peng and S. Byna, “A Comparison of CSV, HDF5, Zarr, and netCDF4 in Performing Common "
    "I/O Operations” (2023)",
    "seed1": "D. Kang, O. Rübel, S. Byna and S. Blanas, “Predicting and Comparing the Performance of Array Management "
    "Libraries” (2020)",
    "seed2": "E. Pourmal, “FITSIO, HDF4, NetCDF, PDB and HDF5 Performance: Some Benchmarks Results” (2002)",
    "seed3": "R. Signell, A. Jelenak and J. Readey, “Cloud-Performant NetCDF4/HDF5 Reading with the Zarr Library” "
    "(2020)",
    "seed4": "Quansight and D. E. Shaw, “Performance of the Versioned HDF5 Library” (2020)",
}


def citation(study: str) -> str:
    """How to cite a study, by the name of its file; the name itself if it is not a published one."""
    return CITATIONS.get(study.partition("-")[0], study)
