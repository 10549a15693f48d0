"""Creation properties of objects, as their headers store them: layout, filters, fill value, tracking of order."""

from __future__ import annotations

from typing import Any

from hyperslab.h5.store import Facts
from hyperslab.storage.table import FIRST_PLUGIN, TABLE

LAYOUTS = {"compact": 0, "contiguous": 1, "chunked": 2, "virtual": 3}
TRACKED_AND_INDEXED = 3
SZIP_ENTROPY, SZIP_NEAREST = 4, 32
# The names of filters that every libhdf5 of h5py has, as HDF5 and as h5py call them.
OWN_NAMES = {row.hdf5: row.name for row in TABLE if row.hdf5 is not None and (row.hdf5 < FIRST_PLUGIN or row.h5py)}
NAMES = {row.hdf5: row.h5py or row.name for row in TABLE if row.hdf5 in OWN_NAMES and row.name != "nbit"}
COMPRESSIONS = ("gzip", "lzf", "szip")
OTHERS = ("shuffle", "fletcher32", "scaleoffset")


class CreatePropertyList:
    """The creation properties of an object.

    Parameters
    ----------
    facts : Facts
        The properties of the object from its header.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def get_attr_creation_order(self) -> int:
        """Return 3 if the creation order of attributes is tracked, otherwise 0: HDF5's flags."""
        return TRACKED_AND_INDEXED if self._facts["attributes_ordered"] else 0

    def get_link_creation_order(self) -> int:
        """Return 3 if the creation order of links is tracked, otherwise 0: HDF5's flags."""
        return TRACKED_AND_INDEXED if self._facts.get("ordered") else 0

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class DatasetCreatePropertyList(CreatePropertyList):
    """The creation properties of a dataset."""

    def get_layout(self) -> int:
        """Return HDF5's number of the layout: 0 compact, 1 contiguous, 2 chunked, 3 virtual."""
        return LAYOUTS[self._storage[0]]

    @property
    def _storage(self) -> tuple[str, Any]:
        storage: tuple[str, Any] = self._facts["storage"]
        if isinstance(storage, Exception):
            raise storage
        return storage

    def get_chunk(self) -> tuple[int, ...]:
        """Return the shape of a chunk.

        Raises
        ------
        ValueError
            The dataset is not chunked.
        """
        kind, shape = self._storage
        if kind != "chunked":
            raise ValueError("Can't get chunk size (not a chunked storage layout)")
        chunk_shape: tuple[int, ...] = shape
        return chunk_shape

    def get_nfilters(self) -> int:
        """Return the number of filters."""
        return len(self._facts["filters"])

    def get_filter(self, filter_idx: int) -> tuple[int, int, tuple[int, ...], bytes]:
        """Return the identifier, flags, parameters and name of a filter. The flags are always 0 here.

        Raises
        ------
        ValueError
            The index is out of range.
        """
        if not 0 <= filter_idx < self.get_nfilters():
            raise ValueError("Filter index is invalid")
        number, name, parameters = self._facts["filters"][filter_idx]
        return number, 0, parameters, (name or OWN_NAMES.get(number, "")).encode()

    def get_external_count(self) -> int:
        """Return the number of external raw files."""
        return len(self._facts["external"])

    def fill_value_defined(self) -> int:
        """Return HDF5's number for the kind of fill value: 0 undefined, 1 the default, 2 set by the writer."""
        return {"undefined": 0, "default": 1, "value": 2}[self._facts["fill"][0]]


def filters(facts: Facts) -> dict[str, Any]:
    """Return the settings of each filter of a dataset, with the names and values that h5py shows.

    Raises
    ------
    TypeError
        The settings of the szip filter contradict themselves.
    """
    settings_by_name: dict[str, Any] = {}
    for number, _, parameters in facts["filters"]:
        settings: Any = parameters or None
        if number == 1:
            settings = parameters[0] if parameters else None
        elif number == 4:
            mask, pixels = parameters[:2]
            if not mask & (SZIP_ENTROPY | SZIP_NEAREST):
                raise TypeError("Unknown SZIP configuration")
            settings = ("ec" if mask & SZIP_ENTROPY else "nn", pixels)
        elif number == 32000:
            settings = None
        settings_by_name[NAMES.get(number, str(number))] = settings
    return settings_by_name
