"""`dataset.dims`: the labels of the dimensions of a dataset, and the scales that are attached to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from hyperslab.h5.attributes import AttributeManager
from hyperslab.h5.identifiers import DatasetID
from hyperslab.h5.names import as_text
from hyperslab.h5.refused import refuse
from hyperslab.h5.store import Place

FAILED = "Unspecified error in H5DSiterate_scales (return value <0)"


def _attribute(dataset: DatasetID, name: str) -> Any:
    return AttributeManager(dataset).get(name)


def is_scale(dataset: DatasetID) -> bool:
    """Whether the attributes of a dataset declare it as a dimension scale."""
    kind = _attribute(dataset, "CLASS")
    return as_text(kind) == "DIMENSION_SCALE" if isinstance(kind, str | bytes) else False


class DimensionProxy:
    """A dimension of a dataset: its label, and its scales by number or name."""

    def __init__(self, id_: DatasetID, dimension: int) -> None:
        self._id = id_
        self._dimension = dimension

    @property
    def label(self) -> str:
        """The label of the dimension; empty if it has none."""
        labels = _attribute(self._id, "DIMENSION_LABELS")
        if labels is None:
            return ""
        stored = labels[self._dimension]
        return as_text(stored) if isinstance(stored, str | bytes) else ""

    @label.setter
    def label(self, val: str) -> None:
        refuse("create attribute", OSError)

    def _scales(self) -> list[DatasetID]:
        lists = _attribute(self._id, "DIMENSION_LIST")
        if lists is None:
            return []
        store = self._id.place.store
        return [DatasetID(Place(store, reference.address, None)) for reference in lists[self._dimension]]

    def __hash__(self) -> int:
        return hash((type(self), self._id, self._dimension))

    def __eq__(self, other: object) -> bool:
        return hash(self) == hash(other)

    def __iter__(self) -> Iterator[str]:
        yield from self.keys()

    def __len__(self) -> int:
        return len(self._scales())

    def __getitem__(self, item: Any) -> Any:
        scales = self._scales()
        if not scales:
            raise RuntimeError(FAILED)
        if isinstance(item, int):
            return _dataset(scales[item])
        for scale in scales:
            if _name(scale) == as_text(item):
                return _dataset(scale)
        raise KeyError(item)

    def attach_scale(self, dset: Any) -> NoReturn:
        """Raise RuntimeError: the file is open for reading."""
        refuse("attach a dimension scale", RuntimeError)

    def detach_scale(self, dset: Any) -> NoReturn:
        """Raise RuntimeError: the file is open for reading."""
        refuse("detach a dimension scale", RuntimeError)

    def items(self) -> list[tuple[str, Any]]:
        """Return the scales as pairs of name and dataset."""
        return [(_name(scale), _dataset(scale)) for scale in self._scales()]

    def keys(self) -> list[str]:
        """Return the names of the scales."""
        return [name for name, _ in self.items()]

    def values(self) -> list[Any]:
        """Return the scales as datasets."""
        return [scale for _, scale in self.items()]

    def __repr__(self) -> str:
        if not self._id:
            return "<Dimension of closed HDF5 dataset>"
        return f'<"{self.label}" dimension {self._dimension} of HDF5 dataset at {id(self._id)}>'


def _dataset(scale: DatasetID) -> Any:
    return scale.place.store.make.object(scale.place)


def _name(scale: DatasetID) -> str:
    name = _attribute(scale, "NAME")
    return as_text(name) if isinstance(name, str | bytes) else ""


class DimensionManager:
    """The dimensions of a dataset, by number."""

    def __init__(self, parent: Any) -> None:
        self._id: DatasetID = parent.id

    def __getitem__(self, index: int) -> DimensionProxy:
        if index > len(self) - 1:
            raise IndexError("Index out of range")
        return DimensionProxy(self._id, index)

    def __len__(self) -> int:
        return self._id.rank

    def __iter__(self) -> Iterator[DimensionProxy]:
        for index in range(len(self)):
            yield self[index]

    def create_scale(self, dset: Any, name: str = "") -> NoReturn:
        """Raise RuntimeError: the file is open for reading."""
        refuse("make a dimension scale", RuntimeError)

    def __repr__(self) -> str:
        if not self._id:
            return "<Dimensions of closed HDF5 dataset>"
        return f"<Dimensions of HDF5 object at {id(self._id)}>"
