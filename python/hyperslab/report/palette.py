"""The colour and mark of each format, the same in every figure and on the page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paint:
    """A colour, and a mark for readers who cannot tell colours apart, under matplotlib's and Plotly's name."""

    colour: str
    marker: str
    symbol: str


# Families share a hue: HDF5 is blue, netCDF orange, Zarr green. hyperslab stands out. The null format is grey.
PAINTS: dict[str, Paint] = {
    "null": Paint("#c7c7c7", "x", "x-thin-open"),
    "raw": Paint("#5f6b7a", "o", "circle"),
    "npy": Paint("#a3adba", "s", "square"),
    "csv": Paint("#b5534b", "v", "triangle-down"),
    "hdf5": Paint("#1f5fa8", "o", "circle"),
    "hyperslab": Paint("#e0004d", "*", "star"),
    "hdf5-compound": Paint("#6ba3dc", "D", "diamond"),
    "netcdf4": Paint("#e07b1a", "s", "square"),
    "netcdf3": Paint("#f3b562", "^", "triangle-up"),
    "zarr2": Paint("#1d7d54", "v", "triangle-down"),
    "zarr3": Paint("#35a873", "o", "circle"),
    "zarr3-sharded": Paint("#8fd0ab", "D", "diamond"),
    "zarrs": Paint("#7d9a1f", "^", "triangle-up"),
    "tensorstore": Paint("#b9c94a", "s", "square"),
    "fits": Paint("#7a52a8", "o", "circle"),
    "hdf4": Paint("#b08fd6", "s", "square"),
    "pdb": Paint("#c2498f", "^", "triangle-up"),
    "blosc2": Paint("#0f9aa8", "D", "diamond"),
    "tiledb": Paint("#8a5a34", "v", "triangle-down"),
}
# For a format without an entry in the table.
PLAIN = Paint("#444444", "P", "cross")


def paint_of(format_name: str) -> Paint:
    """The colour and mark of a format."""
    return PAINTS.get(format_name, PLAIN)


def in_order(formats: set[str]) -> list[str]:
    """The formats in the order of the table, so that legends always have the same order."""
    positions = {name: position for position, name in enumerate(PAINTS)}
    return sorted(formats, key=lambda name: (positions.get(name, len(positions)), name))
