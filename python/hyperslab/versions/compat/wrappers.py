"""The names in versioned-hdf5's `wrappers` that its users import."""

from numpy.exceptions import AxisError

from hyperslab.versions.compat.arrays import (
    DatasetLike,
    DatasetWrapper,
    InMemoryArrayDataset,
    InMemoryDataset,
    InMemorySparseDataset,
)
from hyperslab.versions.compat.groups import InMemoryGroup

__all__ = [
    "AxisError",
    "DatasetLike",
    "DatasetWrapper",
    "InMemoryArrayDataset",
    "InMemoryDataset",
    "InMemoryGroup",
    "InMemorySparseDataset",
]
