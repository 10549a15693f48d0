"""What usual accesses to an existing array cost, in its layout and in others: which access hurts, and what would help.

You need no workload file for this. The accesses are all of the array, a row along each axis, a box of 1 %, and one
element. The other layouts have chunks of about 1 MiB: of the array's own proportions, whole rows of the last axes, and
whole columns of the first. They keep the array's codec and its ratio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Any

from hyperslab._core import ChunkGrid, Hyperslab
from hyperslab.advise.candidate import NETCDF_UNKNOWN, Candidate
from hyperslab.advise.demand import Demand
from hyperslab.advise.pricing import Measured, Pricer
from hyperslab.advise.sensible import OURS, sensible_layouts
from hyperslab.advise.stored import StoredArray, stored_arrays
from hyperslab.archive.far.remote import is_url
from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group
from hyperslab.archive.tree.whole import check_whole
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import NoSuchFile, Refused, UsageError
from hyperslab.model.cells import CellCache
from hyperslab.model.file_layout import file_and_array
from hyperslab.model.libraries import Layout
from hyperslab.model.predict import Prediction
from hyperslab.model.store_profile import StoreProfile
from hyperslab.model.workload import Step
from hyperslab.storage.chain import CodecChain

# More chunks than this take too long to price one by one.
MOST_CHUNKS = 20_000_000
# An access hurts if another layout would take less than this share of its time.
HURTS = 1.5
BOX_SHARE = 0.01
MOST_NAMED = 10


@dataclass(frozen=True)
class Column:
    """A layout and a library to compare."""

    layout: Layout
    library: str
    is_today: bool
    is_own: bool  # whether the library is the one that the array's file belongs to

    @property
    def title(self) -> str:
        """The name for people: all layouts with chunks have the codec of today's, so it is not named."""
        shape = str(self.layout).partition(":")[0]
        name = f"today ({shape})" if self.is_today else shape
        return name if self.is_own else f"{name}, {self.library}"


@dataclass(frozen=True)
class Row:
    """One access, and what it costs in each column. A column is missing if the library cannot do it."""

    access: str
    nbytes: int  # that you ask for
    costs: tuple[Prediction | None, ...]

    @property
    def seconds(self) -> tuple[float | None, ...]:
        """The predicted seconds of each column. None if they are not known."""
        return tuple(map(_known_seconds, self.costs))

    @property
    def best(self) -> int | None:
        """The column that takes least. None if none is known."""
        known = [(seconds, position) for position, seconds in enumerate(self.seconds) if seconds is not None]
        return min(known)[1] if known else None

    @property
    def times_slower(self) -> float | None:
        """How many times as long as in the best column the access takes today."""
        today, best = self.seconds[0], self.best
        if today is None or best is None:
            return None
        least = self.seconds[best]
        return today / least if least else None

    @property
    def is_too_close(self) -> bool:
        """Whether the intervals of today's and the best column overlap, so that nobody can say which is faster."""
        today, best = self.costs[0], self.best
        other = None if best is None else self.costs[best]
        if today is None or other is None:
            return True
        return today.cost.is_too_close_to(other.cost)

    @property
    def hurts(self) -> bool:
        """Whether another column would be much faster, beyond doubt."""
        return not self.is_too_close and (self.times_slower or 1.0) >= HURTS


@dataclass(frozen=True)
class Comparison:
    """Accesses by layouts. The first column is today's."""

    array: StoredArray
    cache: CellCache
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def all_round(self) -> int | None:
        """The column whose worst access is nearest to the best time for it. None if no column can do everything."""
        worst = [(self.worst_factor(position), position) for position in range(len(self.columns))]
        known = [(factor, position) for factor, position in worst if factor is not None]
        return min(known)[1] if known else None

    def worst_factor(self, position: int) -> float | None:
        """How many times the best time a column takes for the access that it serves worst."""
        factors = []
        for row in self.rows:
            mine = row.seconds[position]
            best = None if row.best is None else row.seconds[row.best]
            if mine is None or not best:
                return None
            factors.append(mine / best)
        return max(factors, default=None)

    def verdict(self) -> list[str]:
        """Sentences: which accesses hurt, by how much, and what would help."""
        hurting = sorted((row for row in self.rows if row.hurts), key=lambda row: -(row.times_slower or 0))
        said = []
        for row in hurting:
            assert row.best is not None  # it is faster than today's
            column = self.columns[row.best]
            said.append(f"{row.access} takes {factor_text(row.times_slower)} as long as with {column.title}")
        if not said:
            return ["no access would be much faster in another of these layouts"]
        chosen, today = self.all_round, self.worst_factor(0)
        if chosen:
            column, factor = self.columns[chosen], self.worst_factor(chosen)
            against = "" if today is None else f", today's up to {factor_text(today)}"
            said.append(f"all-round: {column.title} takes at most {factor_text(factor)} the least time{against}")
        return said

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        return {
            "file": self.array.file,
            "array": self.array.name,
            "shape": list(self.array.shape),
            "dtype": str(self.array.dtype),
            "cache": self.cache,
            "columns": [
                {"layout": str(each.layout), "library": each.library, "today": each.is_today} for each in self.columns
            ],
            "accesses": [
                {
                    "access": row.access,
                    "nbytes": row.nbytes,
                    "predictions": [None if each is None else each.to_dict() for each in row.costs],
                    "best": row.best,
                    "times_slower": row.times_slower,
                    "too_close_to_call": row.is_too_close,
                    "hurts": row.hurts,
                }
                for row in self.rows
            ],
            "all_round": self.all_round,
            "verdict": self.verdict(),
            "notes": list(self.notes),
        }


def factor_text(factor: float | None) -> str:
    """A factor for a sentence, such as `12 ×`."""
    if factor is None:
        return "an unknown number of times"
    return f"{factor:.1f} ×" if factor < 9.95 else f"{factor:,.0f} ×"


def _known_seconds(prediction: Prediction | None) -> float | None:
    return None if prediction is None or prediction.cost.unknown else prediction.cost.seconds


def find_array(where: str, storage_options: Mapping[str, Any] | None = None) -> StoredArray:
    """Find an array by `FILE:ARRAY`, or by `FILE` if it has a single one. Nothing is sampled over a network.

    Raises
    ------
    UsageError
        There is no such array, or its layout has no single chunk shape, or its elements no fixed width.
    ReadError
        The file cannot be read.
    """
    path, name = file_and_array(where)
    try:
        with open_archive(path, storage_options=storage_options) as archive:
            check_whole(archive)
            chosen = _chosen(where, name, archive).name
    except FileNotFoundError as error:
        raise NoSuchFile(
            f"there is no file {path}: give a workload (.yaml), or an array as FILE:ARRAY of an existing file"
        ) from error
    (stored,) = stored_arrays(path, [chosen], storage_options or {}, [], samples=not is_url(path))
    return stored


def _chosen(where: str, name: str, archive: Group) -> Array:
    if name.strip("/"):
        named = archive.get(name)
        if isinstance(named, Array):
            return named
    arrays = [each for each in archive.walk() if each.is_variable]
    if not name.strip("/") and len(arrays) == 1:
        return arrays[0]
    names = [each.name for each in arrays[:MOST_NAMED]]
    there = ", ".join([*names, *(["…"] if len(arrays) > MOST_NAMED else [])]) or "no array"
    asked = "does not name one of its arrays" if name.strip("/") else "has several arrays"
    raise UsageError(f"{where} {asked}: give FILE:ARRAY; it has {there}")


# --- accesses and layouts ------------------------------------------------------------------------------------


def usual_accesses(shape: Sequence[int], dims: Sequence[str] | None = None) -> dict[str, dict[str, list[int]]]:
    """The usual accesses by name, each as one box."""
    middle = [length // 2 for length in shape]
    boxes = {"all of it": {"start": [0] * len(shape), "shape": list(shape)}}
    for axis, length in enumerate(shape):
        if len(shape) > 1:
            start = [0 if one == axis else middle[one] for one in range(len(shape))]
            name = f" ({dims[axis]})" if dims is not None else ""
            lengths = [length if one == axis else 1 for one in range(len(shape))]
            boxes[f"a row along axis {axis}{name}"] = {"start": start, "shape": lengths}
    share = BOX_SHARE ** (1 / len(shape))
    box = [max(1, round(length * share)) for length in shape]
    placed = [(length - part) // 2 for length, part in zip(shape, box, strict=True)]
    boxes["a box of 1 %"] = {"start": placed, "shape": box}
    boxes["one element"] = {"start": middle, "shape": [1] * len(shape)}
    return boxes


def compare_layouts(
    array: StoredArray,
    profile: StoreProfile,
    *,
    layouts: Sequence[Layout] = (),
    libraries: Sequence[str] | None = None,
    cache: CellCache = "cold",
    measured: Measured | None = None,
) -> Comparison:
    """Price the usual accesses to an array.

    Parameters
    ----------
    array : StoredArray
        The array.
    profile : StoreProfile
        What accesses cost.
    layouts : Sequence[Layout]
        Other layouts to compare; by default `sensible_layouts`.
    libraries : Sequence[str] | None
        Libraries; by default the array's own, and ours for its layout of today.
    cache : CellCache
        What is cached beforehand.
    measured : Measured | None
        What codecs cost on the array's own elements. Others have the trained cost.

    Returns
    -------
    Comparison
        A prediction for each access and column.

    Raises
    ------
    Untrained
        The profile has none of the libraries.
    Refused
        No library can read the array.
    """
    others = list(layouts) or sensible_layouts(array.shape, array.dtype.itemsize, array.layout)
    columns = _columns(array, others, profile, libraries)
    notes, rows = [], []
    for name, box in usual_accesses(array.shape, array.dims).items():
        if too_many := _too_many(array, box, columns):
            notes.append(f"{name} is left out: {too_many}")
            continue
        ones = [1] * len(array.shape)
        step = Step("read", Hyperslab(box["start"], ones, box["shape"], ones))
        demand = Demand(name, array.shape, array.priced_dtype, [step], cache=cache)
        pricer = Pricer(profile, [demand], measured or {}, most_chunks=inf)
        costs = tuple(_priced(array, column, pricer) for column in columns)
        rows.append(Row(name, prod(box["shape"]) * array.dtype.itemsize, costs))
    if array.is_netcdf4 and profile.netcdf4 is None and any(column.library == "hdf5" for column in columns):
        notes.append(NETCDF_UNKNOWN)
    if all(cost is None for row in rows for cost in row.costs):
        raise Refused(f"{array.title}: no library can read this layout from this cache state ({cache})")
    return Comparison(array, cache, columns, tuple(rows), tuple(notes))


def _columns(
    array: StoredArray, others: Sequence[Layout], profile: StoreProfile, libraries: Sequence[str] | None
) -> tuple[Column, ...]:
    own = array.library if array.library in profile.libraries else OURS
    chosen = list(libraries) if libraries else [own]
    for name in chosen:
        profile.coefficients(name, "read")  # raises Untrained
    today = [*chosen, *([OURS] if libraries is None and own != OURS and OURS in profile.libraries else [])]
    # Formats in one piece have no other layout, so their arrays would have to move to HDF5.
    held = dict.fromkeys("hdf5" if name == "flat" else name for name in chosen)
    others_by = [name for name in held if name in profile.libraries]
    today_columns = [Column(array.layout, name, is_today=True, is_own=name == own) for name in today]
    cut = [(layout, name) for layout in others for name in others_by]
    return (*today_columns, *(Column(layout, name, is_today=False, is_own=name == own) for layout, name in cut))


def _too_many(array: StoredArray, box: Mapping[str, list[int]], columns: Sequence[Column]) -> str | None:
    for column in columns:
        grid = ChunkGrid(array.shape, column.layout.chunk_shape)
        count = prod(
            ceil_div(start + length, chunk) - start // chunk
            for start, length, chunk in zip(box["start"], box["shape"], column.layout.chunk_shape, strict=True)
        )
        if min(count, grid.chunk_count) > MOST_CHUNKS:
            return f"{count:,} chunks of {column.layout} take too long to price; give a larger --layout"
    return None


def _priced(array: StoredArray, column: Column, pricer: Pricer) -> Prediction | None:
    encoding = encoding_of(array, column.layout)
    mine = (array.format, column.library, column.layout, encoding)
    price = pricer.price(Candidate(*mine, by_netcdf=array.is_netcdf4, is_today=column.is_today))
    return price.predictions[0] if price.predictions else None


def encoding_of(array: StoredArray, layout: Layout) -> CodecChain:
    """The codecs of a layout: today's if they are the same, so that what was measured of them counts.

    A layout names the codec that takes the time; elements are shuffled before it as they are today.
    """
    today, asked = array.encoding, layout.codecs
    if asked == today.without_shuffle or not asked or asked.shuffle:
        return today if asked == today.without_shuffle else asked
    return CodecChain([*(one for one in today if one.kind == "shuffle"), *asked])
