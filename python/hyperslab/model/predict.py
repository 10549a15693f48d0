"""Predict what a workload costs for each layout and library, on the machine of a store profile."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hyperslab.archive.views import display_html
from hyperslab.errors import Refused, UsageError
from hyperslab.meant import meant_or_choose
from hyperslab.model.cells import CellCache, ModelCell
from hyperslab.model.costs import CallsBeyond, CodecRate, Cost, computing, price
from hyperslab.model.counting import Direction, Variables, count_operations
from hyperslab.model.hdf5_settings import Hdf5Settings
from hyperslab.model.installed import installed_zarr
from hyperslab.model.libraries import LIBRARIES, Flat, Hdf5, HyperslabEngine, Layout, Library, Zarr
from hyperslab.model.store_profile import StoreProfile, caches_of, load_store_profile
from hyperslab.model.terms import EXTENDED, Model
from hyperslab.model.workload import MOST_LENGTH, Workload
from hyperslab.model.workload_file import load_workload
from hyperslab.quantities import UNKNOWN, interval_text, seconds_text
from hyperslab.storage.chain import CodecChain

# HDF5 stores chunk lengths in 32 bits; zarr-python's codecs use no more than 31 bits.
MOST_HDF5_CHUNK_NBYTES, MOST_ENCODED_NBYTES = 2**32 - 1, 2**31 - 1

# What happens once however many calls there are, and bytes that cannot be more than the array has.
ONCE = ("n_made", "n_cold", "s_kept")
AT_MOST_STORED = ("s_unique", "s_dirty", "s_grown")
DEVICE = (
    *("n_rdisk", "s_rdisk", "n_rseek", "s_rseek", "s_rshort", "s_rneed"),
    *("s_covered", "s_later", "s_exposed", "n_rindex", "s_rindex"),
)


@dataclass(frozen=True)
class Prediction:
    """What a workload costs in one layout, by one library."""

    library: str
    layout: Layout
    cost: Cost
    variables: dict[Direction, Variables]

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        return {
            "library": self.library,
            "layout": str(self.layout),
            "seconds": None if self.cost.unknown else self.cost.seconds,
            "low": self.cost.low,
            "high": None if self.cost.unknown else self.cost.high,
            "phases": dict(self.cost.phases),
            "extrapolating": list(self.cost.extrapolating),
            "unknown": list(self.cost.unknown),
            "variables": {name: each._asdict() for name, each in self.variables.items()},
            **{key: value for key, value in self.layout.to_dict().items() if key != "manifest" and value is not None},
        }

    def __repr__(self) -> str:
        said = UNKNOWN if self.cost.unknown else seconds_text(self.cost.seconds)
        return f"<hyperslab.Prediction {self.library} {self.layout}: {said}>"

    def _repr_html_(self) -> str:
        return Predictions([self])._repr_html_()


class Predictions(list[Prediction]):
    """What a workload costs in each layout, by each library; the fastest first: a list that notebooks draw."""

    def _repr_html_(self) -> str:
        cells = (
            (
                one.library,
                str(one.layout),
                UNKNOWN if one.cost.unknown else seconds_text(one.cost.seconds),
                UNKNOWN if one.cost.unknown else interval_text(one.cost.low, one.cost.high),
                "; ".join(
                    [*one.cost.unknown, *(f"outside of what was calibrated: {n}" for n in one.cost.extrapolating)]
                ),
            )
            for one in self
        )
        titles = ("library", "layout", "predicted", "95 % interval", "")
        table = display_html.rows("hyperslab.Predictions", "", titles, cells, [])
        return table + display_html.drawn("costs_figure", self)


def predict(
    workload: Workload | str | Path,
    layouts: Sequence[Layout | Sequence[int]],
    *,
    libraries: Iterable[str] | None = None,
    store_profile: StoreProfile | str | Path | None = None,
    cache: CellCache | None = None,
    hdf5: Hdf5Settings | None = None,
    codec_rates: Mapping[tuple[str, str], CodecRate] | None = None,
) -> Predictions:
    """Predict what a workload costs in each layout, by each library. The fastest comes first, the unknown last.

    Parameters
    ----------
    workload : Workload | str | Path
        A Workload, or the path of its YAML file.
    layouts : Sequence[Layout | Sequence[int]]
        Layouts, or chunk shapes.
    libraries : Iterable[str] | None
        Any of `hdf5`, `zarr`, `hyperslab`, `flat`. The default is all libraries that the store profile has and that can
        run the workload.
    store_profile : StoreProfile | str | Path | None
        A StoreProfile, or the path of its file. The default is the file that `calibrate` writes.
    cache : CellCache | None
        What is cached beforehand: `cold` (the default), `page-warm`, `library-warm`, or `new` for an array that does
        not exist yet.
    hdf5 : Hdf5Settings | None
        HDF5's version and settings. They take precedence over those of the workload. The default version is the one
        that is installed.
    codec_rates : Mapping[tuple[str, str], CodecRate] | None
        What codecs cost on your data, by library and codec, as `codec_sample.codec_rates` measures it. Others have the
        trained cost.

    Returns
    -------
    Predictions
        A list of `Prediction`: seconds with an interval for each layout and library.

    Raises
    ------
    StudyError
        The workload's file does not describe a workload.
    UsageError
        There is no library of that name, or no layout.
    NotAStoreProfile
        The store profile cannot be used.
    Refused
        A layout has other axes than the array, or a library that you named cannot store it or make one of the accesses.
    Untrained
        The store profile has no coefficients for a library that you named.
    """
    asked = _of_one_process(workload if isinstance(workload, Workload) else load_workload(workload))
    trained = store_profile if isinstance(store_profile, StoreProfile) else load_store_profile(store_profile)
    if not layouts:
        raise UsageError("no layouts: give at least one chunk shape, such as 100x8")
    chosen = list(libraries) if libraries is not None else None
    predictions, reasons = [], []
    flat_is_done = False
    for given in layouts:
        layout = given if isinstance(given, Layout) else Layout(tuple(given))
        check_axes(layout, asked.array.shape)
        for name in chosen or trained.libraries:
            if name not in LIBRARIES:
                raise UsageError(f"unknown library {name!r}{meant_or_choose(name, LIBRARIES)}")
            library = library_of(name, trained, asked, layout, hdf5 or Hdf5Settings())
            cell = ModelCell(asked, layout, library, cache or "cold")
            if isinstance(cell.library, Flat):  # it has one layout, whatever the others do
                if flat_is_done:
                    continue
                cell = replace(cell, layout=Layout(tuple(asked.array.shape), contiguous=True))
                flat_is_done = True
            reason = why_not(cell)
            if reason is None:
                predictions.append(
                    predict_cell(cell, trained, rate=(codec_rates or {}).get((name, layout.codec or "")))
                )
            elif chosen is not None:
                raise Refused(f"{name}, layout {layout}: {reason}")
            else:
                reasons.append(f"{name}, layout {layout}: {reason}")
    if not predictions:
        raise Refused("; ".join(reasons))
    return Predictions(sorted(predictions, key=lambda prediction: prediction.cost.rank))


def _of_one_process(asked: Workload) -> Workload:
    if asked.is_parallel:
        raise UsageError("the workload has several processes or servers: hyperslab.parallel.predict prices it")
    return asked


def too_close(found: Sequence[Prediction]) -> list[Prediction]:
    """The predictions that may be the fastest: the first of a sorted list, and those that are too close to call.

    One prediction alone is not a tie, so the list is then empty.
    """
    near = [each for each in found if not each.cost.unknown and each.cost.is_too_close_to(found[0].cost)]
    return near if len(near) > 1 else []


def library_of(name: str, trained: StoreProfile | None, asked: Workload, layout: Layout, hdf5: Hdf5Settings) -> Library:
    """The library of a name, set up as the workload and `hdf5` say, for a store profile's near or far store."""
    library = LIBRARIES[name]
    if isinstance(library, Hdf5):
        settings, most = asked.hdf5.updated(hdf5), asked.array.max_shape
        if most is None and asked.grows:
            most = [None, *asked.array.shape[1:]]
        stored = replace(layout, max_shape=tuple(most)) if most is not None and layout.max_shape is None else layout
        return settings.library().with_file(
            settings.libver, asked.array.shape, stored, is_before_2=settings.is_before_2
        )
    if isinstance(library, Zarr):
        return installed_zarr()
    is_far = trained is not None and trained.is_far
    return replace(library, far=True) if isinstance(library, HyperslabEngine) and is_far else library


def predict_cell(
    cell: ModelCell,
    trained: StoreProfile,
    model: Model = EXTENDED,
    *,
    rate: CodecRate | None = None,
    beyond: CallsBeyond | None = None,
    factor: float = 1.0,
    stored_nbytes: int = 0,
    computes: bool = True,
) -> Prediction:
    """Predict what one cell costs, by any model. `rate` is what its codec costs, if that was measured by itself.
    `beyond` is what a library that calls HDF5 takes beyond h5py for reads.

    The cell may stand for `factor` times as many calls, to an array of `stored_nbytes`. What the program computes
    between its calls is part of the cost if `computes`; the device reads ahead meanwhile anyway.

    Raises
    ------
    Untrained
        The store profile has no coefficients for the library.
    TooFewCells
        The store profile has too few cells to fit the model.
    ValueError
        The layout or the accesses are invalid.
    """
    name = cell.library.name
    variables = count_operations(cell, caches_of(trained.environment))
    if factor != 1:
        variables = {name: multiplied(each, factor, stored_nbytes) for name, each in variables.items()}
    costs = [
        price(each, trained.coefficients(name, operation, model), cell.layout.codec, rate)
        for operation, each in variables.items()
    ]
    costs += [beyond.cost(variables["read"])] if beyond is not None and "read" in variables else []
    between = sum(step.compute_seconds for step in cell.workload.steps()) * factor if computes else 0.0
    costs += [computing(between)] if between else []
    return Prediction(name, cell.layout, sum(costs[1:], costs[0]), variables)


def multiplied(each: Variables, factor: float, stored_nbytes: int) -> Variables:
    """The variables of `factor` times as many calls. What the page cache then holds is not read again."""
    values = {name: value * factor for name, value in each._asdict().items()}
    values |= {name: getattr(each, name) for name in ONCE}
    values["n_array"] = each.n_array and 1 + (each.n_array - 1) * factor  # the first time is once
    values |= {name: min(values[name], max(getattr(each, name), stored_nbytes)) for name in AT_MOST_STORED}
    if values["s_rdisk"] > stored_nbytes > 0:
        kept = stored_nbytes / values["s_rdisk"]
        values["n_cache"] += (values["n_rdisk"] + values["n_rindex"]) * (1 - kept)
        values["s_cache"] += (values["s_rdisk"] + values["s_rindex"]) * (1 - kept)
        values |= {name: values[name] * kept for name in DEVICE}
    return Variables(**values)


def why_not(cell: ModelCell) -> str | None:
    """Why a library cannot store a layout or run a workload. None if it can."""
    shape, layout = cell.workload.array.shape, cell.layout
    for words, part in (("chunk", layout.chunk_shape), ("shard", layout.shard_shape)):
        if part is not None and (len(part) != len(shape) or min(part) < 1):
            return f"the {words} shape has {len(part)} axes, the array has {len(shape)}; each length must be at least 1"
    return _why_not_held(cell.library, cell) or _why_not_done(cell.library, cell)


def _why_not_held(library: Library, cell: ModelCell) -> str | None:
    shape, layout = tuple(cell.workload.array.shape), cell.layout
    if layout.shard_shape is not None and not isinstance(library, Zarr):
        return "only Zarr has shards"
    if layout.contiguous:
        if (layout.chunk_shape, layout.ratio) != (shape, None):
            return "an array in one piece has the array's shape and no codec"
        return "Zarr cannot store an array in one piece" if isinstance(library, Zarr) else None
    if isinstance(library, Hdf5):
        if cell.chunk_nbytes > MOST_HDF5_CHUNK_NBYTES:
            return f"a chunk has {cell.chunk_nbytes} bytes, but HDF5 allows at most {MOST_HDF5_CHUNK_NBYTES}"
        # netCDF gives an axis without a limit chunks for what may come, such as 512 times when there are 365.
        most = layout.max_shape or library.max_shape or shape
        limited = [(chunk, limit) for chunk, limit in zip(layout.chunk_shape, most, strict=True) if limit is not None]
        if any(chunk > limit for chunk, limit in limited):
            return f"a chunk is larger than the array of shape {shape}"
    if isinstance(library, Zarr) and layout.codec is not None and not CodecChain.read(layout.codec).is_in_zarr:
        return f"zarr-python has no codec {layout.codec}"
    if isinstance(library, Zarr) and layout.ratio is not None and cell.chunk_nbytes > MOST_ENCODED_NBYTES:
        return f"a chunk has {cell.chunk_nbytes} bytes, but codecs allow at most {MOST_ENCODED_NBYTES}"
    return None


def _why_not_done(library: Library, cell: ModelCell) -> str | None:
    listed = any(access.select in ("points", "lists") for access in cell.workload.accesses)
    if listed and isinstance(library, HyperslabEngine):
        return "our engine is modelled for boxes and steps, not for lists of indices"
    if cell.workload.grows and (cell.layout.contiguous or not isinstance(library, Hdf5 | Zarr)):
        return "only arrays in chunks grow, in HDF5 or Zarr"
    if isinstance(library, HyperslabEngine) and library.far and cell.cache != "cold":
        return "a far store starts with nothing cached"
    if cell.cache == "library-warm" and cell.layout.contiguous:
        return "libraries do not cache arrays that are in one piece"
    return cell.contradiction


def check_axes(layout: Layout, shape: Sequence[int]) -> None:
    """Raise Refused if a layout is one of an array with other axes."""
    if len(layout.chunk_shape) != len(shape):
        raise Refused(f"layout {layout} has {len(layout.chunk_shape)} axes, the array has {len(shape)}")


def parse_layout(text: str, shape: Sequence[int] = ()) -> Layout:
    """Parse a layout as `--layout` takes it.

    Parameters
    ----------
    text : str
        `100x8`, `100x8/400x8` with shards, `100x8:zstd=2.5` with a codec and its ratio, or `contiguous`.
    shape : Sequence[int]
        The array's shape, for `contiguous`.

    Returns
    -------
    Layout
        The layout.

    Raises
    ------
    UsageError
        The text is not a layout. The message shows the accepted forms.
    """
    if text == "contiguous":
        return Layout(tuple(shape), contiguous=True)
    shapes, _, encoding = text.partition(":")
    chunk, _, shard = shapes.partition("/")
    codec, has_ratio, ratio = encoding.partition("=")
    try:
        chunk_shape = _shape_of(chunk)
        shard_shape = _shape_of(shard) if shard else None
        reached = float(ratio) if has_ratio else None
        if reached is not None and not 0 < reached < math.inf:
            raise ValueError(ratio)
    except ValueError as error:
        raise UsageError(
            f"{text!r} is not a layout; write 100x8, 100x8/400x8 with shards, 100x8:zstd=2.5 with a codec and its "
            "ratio, or contiguous"
        ) from error
    lengths = zip(shard_shape or chunk_shape, chunk_shape, strict=False)
    if shard_shape and (len(shard_shape) != len(chunk_shape) or any(whole % part for whole, part in lengths)):
        raise UsageError(f"{text!r}: a shard has whole chunks: its lengths are multiples of those of its chunks")
    if codec and reached is None:
        raise UsageError(f"{text!r}: give the ratio of {codec} (decoded / stored bytes), such as {shapes}:{codec}=2.5")
    if codec:
        CodecChain.parse(codec)  # refuses what no library has
    return Layout(chunk_shape, shard_shape, reached, codec or None)


def _shape_of(text: str) -> tuple[int, ...]:
    shape = tuple(int(part) for part in text.replace("×", "x").split("x"))
    if min(shape) < 1 or max(shape) > MOST_LENGTH:
        raise ValueError(text)
    return shape
