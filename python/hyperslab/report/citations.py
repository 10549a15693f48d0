"""The published studies, as one cites them: authors, title, year and, where the study names one, its DOI."""

from __future__ import annotations

# By what the names of a study's cases begin with.
CITATIONS: dict[str, str] = {
    "common-io": "S. Ambatipudi, Y. Peng and S. Byna, “A Comparison of CSV, HDF5, Zarr, and netCDF4 in Performing "
    "Common I/O Operations” (2023)",
    "cost-model": "D. Kang, O. Rübel, S. Byna and S. Blanas, “Predicting and Comparing the Performance of Array "
    "Management Libraries” (2020)",
    "formats-2002": "E. Pourmal, “FITSIO, HDF4, NetCDF, PDB and HDF5 Performance: Some Benchmarks Results” (2002)",
    "cloud-2020": "R. Signell, A. Jelenak and J. Readey, “Cloud-Performant NetCDF4/HDF5 Reading with the Zarr "
    "Library” (2020)",
    "versioned": "“Performance of the Versioned HDF5 Library”, D. E. Shaw group and Quansight",
}


def citation(study: str) -> str:
    """How to cite a study, by the name of its file; the name itself if it is not a published one."""
    return next((cited for start, cited in CITATIONS.items() if study.startswith(start)), study)
