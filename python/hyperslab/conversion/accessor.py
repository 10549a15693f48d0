"""`dataset.hyperslab.save(path)`: the accessor of xarray. Importing this module registers it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import xarray

from hyperslab.conversion.saving import save


class Accessor:
    """What hyperslab does with a dataset or data array of xarray.

    Parameters
    ----------
    data : Any
        The dataset or data array.
    """

    def __init__(self, data: Any) -> None:
        self._data = data

    def save(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write it to NetCDF4 or Zarr with all cores encoding; see `hyperslab.save`.

        Parameters
        ----------
        path : str | os.PathLike[str]
            Where to write.
        **options : Any
            The options of `hyperslab.save`.

        Returns
        -------
        Path
            The path of the result.
        """
        return save(self._data, path, **options)


if not hasattr(xarray.Dataset, "hyperslab"):
    registering: Any = xarray
    registering.register_dataset_accessor("hyperslab")(Accessor)
    registering.register_dataarray_accessor("hyperslab")(Accessor)
