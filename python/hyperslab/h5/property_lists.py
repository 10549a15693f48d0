"""How objects were made, as far as headers say: layout, filters, fill value, order of creation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hyperslab.h5.store import Facts

if TYPE_CHECKING:
    from hyperslab.h5.identifiers import DatasetID

LAYOUTS = {"compact": 0, "contiguous": 1, "chunked": 2, "virtual": 3}
TRACKED_AND_INDEXED = 3
SZIP_ENTROPY, SZIP_NEAREST = 4, 32
NAMES = {1: "gzip", 2: "shuffle", 3: "fletcher32", 4: "szip", 6: "scaleoffset", 32000: "lzf"}
OWN_NAMES = {1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset", 32000: "lzf"}
COMPRESSIONS = ("gzip", "lzf", "szip")
OTHERS = ("shuffle", "fletcher32", "scaleoffset")


class CreatePropertyList:
    """How an object was made."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def get_attr_creation_order(self) -> int:
        """Whether the order in which attributes were made is tracked."""
        return TRACKED_AND_INDEXED if self._facts["attributes_ordered"] else 0

    def get_link_creation_order(self) -> int:
        """Whether the order in which links were made is tracked."""
        return TRACKED_AND_INDEXED if self._facts.get("ordered") else 0

    def close(self) -> None:
        """Nothing to close."""


class DatasetCreatePropertyList(CreatePropertyList):
    """How a dataset was made."""

    def __init__(self, facts: Facts, dataset: DatasetID) -> None:
        super().__init__(facts)
        self._dataset = dataset

    def get_layout(self) -> int:
        """How the dataset lies in the file, as HDF5 numbers it."""
        return LAYOUTS[self._storage[0]]

    @property
    def _storage(self) -> tuple[str, Any]:
        storage: tuple[str, Any] = self._facts["storage"]
        if isinstance(storage, Exception):
            raise storage
        return storage

    def get_chunk(self) -> tuple[int, ...]:
        """The shape of a chunk."""
        kind, shape = self._storage
        if kind != "chunked":
            raise ValueError("Can't get chunk size (not a chunked storage layout)")
        found: tuple[int, ...] = shape
        return found

    def get_nfilters(self) -> int:
        """How many filters there are."""
        return len(self._facts["filters"])

    def get_filter(self, filter_idx: int) -> tuple[int, int, tuple[int, ...], bytes]:
        """Number, flags, parameters and name of a filter. The flags are not known here: 0."""
        if not 0 <= filter_idx < self.get_nfilters():
            raise ValueError("Filter index is invalid")
        number, name, parameters = self._facts["filters"][filter_idx]
        return number, 0, parameters, (name or OWN_NAMES.get(number, "")).encode()

    def get_external_count(self) -> int:
        """How many parts are in other files."""
        return len(self._facts["external"])

    def fill_value_defined(self) -> int:
        """Whether there is a fill value: 0 no, 1 the default, 2 the writer's."""
        return {"undefined": 0, "default": 1, "value": 2}[self._facts["fill"][0]]


def filters(facts: Facts) -> dict[str, Any]:
    """The filters of a dataset by h5py's names, with their settings as h5py shows them."""
    found: dict[str, Any] = {}
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
        found[NAMES.get(number, str(number))] = settings
    return found
