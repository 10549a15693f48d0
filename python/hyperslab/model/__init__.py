"""The cost model counts exactly what a library and its device do for a list of accesses, before anything is stored.

On a calibrated machine it also predicts how many seconds they take.

>>> from hyperslab.model import Hdf5, Layout, Workload, Zarr, count
>>> rows = Workload.model_validate(
...     {"array": {"shape": [1000, 64], "dtype": "int32"}, "accesses": [{"select": "rows", "count": 10}]}
... )
>>> layout = Layout(chunk_shape=(100, 8))
>>> count(rows, layout, Hdf5()).n_rdisk, count(rows, layout, Zarr()).n_open
(8.0, 80.0)
"""

from typing import TYPE_CHECKING, Any

from hyperslab._core import contention
from hyperslab.model.cells import ModelCell
from hyperslab.model.costs import Coefficients, Cost, parallel_values, price
from hyperslab.model.counting import Variables, count, count_each, count_operations
from hyperslab.model.fit import Observation, fit
from hyperslab.model.hdf5_settings import Hdf5Settings
from hyperslab.model.libraries import Caches, Flat, Hdf5, HyperslabEngine, Layout, Library, PaperHdf5, PaperZarr, Zarr
from hyperslab.model.predict import Prediction, predict, predict_cell
from hyperslab.model.store_profile import StoreProfile, load_store_profile
from hyperslab.model.terms import BASELINES, EXTENDED, PAPER, Model
from hyperslab.model.workload import Access, Workload
from hyperslab.model.workload_file import load_workload, load_workloads

if TYPE_CHECKING:
    from hyperslab.model.calibrating import calibrate

__all__ = [
    "BASELINES",
    "EXTENDED",
    "PAPER",
    "Access",
    "Caches",
    "Coefficients",
    "Cost",
    "Flat",
    "Hdf5",
    "Hdf5Settings",
    "HyperslabEngine",
    "Layout",
    "Library",
    "Model",
    "ModelCell",
    "Observation",
    "PaperHdf5",
    "PaperZarr",
    "Prediction",
    "StoreProfile",
    "Variables",
    "Workload",
    "Zarr",
    "calibrate",
    "contention",
    "count",
    "count_each",
    "count_operations",
    "fit",
    "load_store_profile",
    "load_workload",
    "load_workloads",
    "parallel_values",
    "predict",
    "predict_cell",
    "price",
]


def __getattr__(name: str) -> Any:
    """Import what measures on first use: whoever predicts does not need the bench."""
    if name != "calibrate":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hyperslab.model.calibrating import calibrate

    return calibrate
