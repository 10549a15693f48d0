"""`HLObject`: h5py's interface that all objects of a file share: name, file, parent, attributes, references."""

from __future__ import annotations

import posixpath
from typing import Any

from hyperslab.h5 import identifiers
from hyperslab.h5.attributes import AttributeManager
from hyperslab.h5.references import ALL, HYPERSLAB, POINTS, Reference, Region, RegionReference, region_shape
from hyperslab.h5.selecting import select
from hyperslab.h5.store import Place, Store


class HLObject:
    """An object of a file: a group, a dataset, or a named datatype.

    Parameters
    ----------
    bind : ObjectID
        The identifier of the object.
    """

    _id: identifiers.ObjectID

    def __init__(self, bind: identifiers.ObjectID) -> None:
        if not isinstance(bind, identifiers.ObjectID):
            raise ValueError(f"{bind} is not an identifier of an object of a file")
        self._id = bind

    @property
    def _place(self) -> Place:
        return self._id.place

    @property
    def _store(self) -> Store:
        return self._id.place.store

    @property
    def id(self) -> identifiers.ObjectID:
        """The identifier of the object, with the methods of h5py's low-level interface that reading needs."""
        return self._id

    @property
    def name(self) -> str | None:
        """The path that you used to open the object; None if no link leads to it, or the file is closed."""
        return self._id.path if self else None

    @property
    def file(self) -> Any:
        """The `File` that contains the object."""
        return self._store.make.file(self._id)

    @property
    def parent(self) -> Any:
        """The `Group` that contains the object, by its path.

        Raises
        ------
        ValueError
            No link leads to the object.
        """
        if self.name is None:
            raise ValueError("Parent of an anonymous object is undefined")
        store = self._store
        return store.make.object(store.find(store.root, "/", posixpath.dirname(self.name)))

    @property
    def attrs(self) -> AttributeManager:
        """The object's attributes."""
        return AttributeManager(self)

    @property
    def ref(self) -> Reference:
        """A reference to the object."""
        self._store.opened  # noqa: B018 -- raises if the file is closed
        return Reference(self._place.address)

    @property
    def regionref(self) -> RegionProxy:
        """Creates references to regions of a dataset: `dataset.regionref[0:10]`."""
        return RegionProxy(self)

    def __bool__(self) -> bool:
        return bool(self._id.valid)

    def __eq__(self, other: object) -> bool:
        theirs = getattr(other, "id", None)
        return NotImplemented if theirs is None else bool(self._id == theirs)

    def __hash__(self) -> int:
        return hash(self._id)

    def __getnewargs__(self) -> tuple[Any, ...]:
        raise TypeError("h5py objects cannot be pickled: pickle an object of hyperslab.open, or the path and the name")

    def __getstate__(self) -> Any:
        raise TypeError("h5py objects cannot be pickled: pickle an object of hyperslab.open, or the path and the name")


class RegionProxy:
    """Creates references to regions of a dataset, and describes them.

    `dataset.regionref[0:10]` is a reference to these elements. It exists only in memory.

    Parameters
    ----------
    of : HLObject
        The dataset; or any other object of the file, which can only describe references.
    """

    def __init__(self, of: HLObject) -> None:
        self._of = of

    def __getitem__(self, args: Any) -> RegionReference:
        if not isinstance(self._of.id, identifiers.DatasetID):
            raise TypeError("Region references can only be made to datasets")
        args = args if isinstance(args, tuple) else (args,)
        shape = self._of.id.shape
        if shape is None:
            raise ValueError("Empty datasets cannot be sliced")
        index = select(shape, args).key
        address = self._of.id.place.address
        if index.points is not None:
            return RegionReference(address, Region(POINTS, points=index.points.coordinates))
        if args in ((), (...,)):
            return RegionReference(address, Region(ALL))
        if all(isinstance(axis, tuple) for axis in index.axes):
            return RegionReference(address, Region(HYPERSLAB, axes=index.axes))  # type: ignore[arg-type]
        return RegionReference(address, Region(HYPERSLAB, boxes=_boxes(index.axes)))

    def shape(self, ref: RegionReference) -> tuple[int, ...] | None:
        """Return the shape of the dataset that a reference leads to."""
        return self._target(ref).shape

    def selection(self, ref: RegionReference) -> tuple[int, ...] | None:
        """Return the shape of the region that a reference selects."""
        shape = self._target(ref).shape
        if shape is None or ref.region is None:
            return None
        return region_shape(ref.region, shape)

    def _target(self, ref: RegionReference) -> identifiers.DatasetID:
        if not isinstance(ref, RegionReference):
            raise TypeError(f"a region reference is needed, not {type(ref)}")
        if not ref:
            raise ValueError("Invalid HDF5 object reference")
        place = self._of.id.place
        return identifiers.DatasetID(Place(place.store, ref.address, None))


def _boxes(axes: Any) -> Any:
    """Return a box for each index of the axis that is selected by a list."""
    import numpy as np

    rows = []
    [listed] = [place for place, axis in enumerate(axes) if not isinstance(axis, tuple)]
    for index in axes[listed]:
        first = [index if place == listed else axis[0] for place, axis in enumerate(axes)]
        last = [index if place == listed else axis[0] + axis[2] * axis[3] - 1 for place, axis in enumerate(axes)]
        rows.append([first, last])
    return np.array(rows, np.uint64).reshape(-1, 2, len(axes))
