"""The cost model: what accesses make a library and its device do, counted exactly before anything is stored.

>>> from hyperslab.model import Hdf5, Layout, Workload, Zarr, count
>>> rows = Workload.model_validate(
...     {"array": {"shape": [1000, 64], "dtype": "int32"}, "accesses": [{"select": "rows", "count": 10}]}
... )
>>> layout = Layout(chunk_shape=(100, 8))
>>> count(rows, layout, Hdf5()).n_rdisk, count(rows, layout, Zarr()).n_open
(8.0, 80.0)
"""

from hyperslab._core import contention
from hyperslab.model.counting import Variables, count, count_each
from hyperslab.model.libraries import Caches, Flat, Hdf5, Layout, Library, Own, PaperHdf5, PaperZarr, Zarr
from hyperslab.model.workload import Access, Workload, load_workload

__all__ = [
    "Access",
    "Caches",
    "Flat",
    "Hdf5",
    "Layout",
    "Library",
    "Own",
    "PaperHdf5",
    "PaperZarr",
    "Variables",
    "Workload",
    "Zarr",
    "contention",
    "count",
    "count_each",
    "load_workload",
]
