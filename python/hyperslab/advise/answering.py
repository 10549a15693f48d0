"""`hyperslab.advise`: from a file and what is asked of it to the advice on each of its arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hyperslab.advise.advising import advise as advise_on
from hyperslab.advise.asking import Question
from hyperslab.advise.formats import OF_HDF5, codecs_of, encodings_of, unheld
from hyperslab.advise.limits import Codecs, Keep, Limits, axis_of
from hyperslab.advise.results import Advice, ArrayAdvice
from hyperslab.advise.several import ask_about
from hyperslab.advise.stored import StoredArray
from hyperslab.advise.verdict import one_format, refuse
from hyperslab.archive.tree.array import Array
from hyperslab.conversion.advice import FORMATS
from hyperslab.errors import Refused, UsageError
from hyperslab.model.store_profile import StoreProfile, load_store_profile
from hyperslab.trace.trace import Trace

Progress = Callable[[str], None]
TracePath = str | os.PathLike[str] | Trace


def advise(
    source: str | os.PathLike[str] | Array | Trace | Sequence[str | os.PathLike[str]],
    *,
    trace: TracePath | Sequence[TracePath] | Mapping[Any, float] | None = None,
    workload: str | os.PathLike[str] | None = None,
    like: str | None = None,
    store_profile: StoreProfile | str | os.PathLike[str] | None = None,
    keep: Keep | None = None,
    codecs: Codecs = "own",
    max_files: int | None = None,
    memory: int | None = None,
    min_chunk: int | None = None,
    max_chunk: int | None = None,
    max_size: int | None = None,
    append_axis: str | int | None = None,
    price_per_request: float | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Say which layout makes your accesses fast, what helps without rewriting, and what that is worth.

    Say what is asked of the arrays in one way: by a trace, a workload, or words.

    Parameters
    ----------
    source : str | os.PathLike[str] | Array | Trace | Sequence[str | os.PathLike[str]]
        A file or URL, `FILE:ARRAY`, an array that is open, several files, or a trace: then the files that it names.
    trace : str | os.PathLike[str] | Trace | Sequence | Mapping | None
        What `hyperslab trace` or `record` recorded, as a path or in memory; several of them; or a dict that says how
        often each counts.
    workload : str | os.PathLike[str] | None
        A YAML file with reads and writes.
    like : str | None
        What you do, in words, such as `"maps 3 and series 1"`.
    store_profile : StoreProfile | str | os.PathLike[str] | None
        What accesses cost where the file will be; by default on this machine, as `hyperslab calibrate` measured it.
    keep : {"hdf5", "netcdf", "any"} | None
        Keep this format; `any`: also those that the traced program cannot open.
    codecs : {"own", "any"}
        Codecs that the program's own library decodes, or all of them.
    max_files : int | None
        The most files that a stored array may have.
    memory : int | None
        The most bytes for chunks at the same time.
    min_chunk : int | None
        The least decoded bytes of a chunk.
    max_chunk : int | None
        The most decoded bytes of a chunk.
    max_size : int | None
        The most bytes of a stored array.
    append_axis : str | int | None
        The axis that must be able to grow: the name of its dimension, or its number.
    price_per_request : float | None
        The price of one request, in your currency.
    storage_options : Mapping[str, Any] | None
        How to reach the file, as in `open`.
    progress : Callable[[str], None] | None
        Called with what is searched.

    Returns
    -------
    Advice
        A list of `ArrayAdvice`, those that took most time first, at most eight: `verdict` in words, `today` and
        `chosen` (seconds, chunk shape, codec, bytes, files), `options` ranked by predicted seconds, `tips` that need no
        rewriting, with their `call`, and `counsel`, what they follow from. One advice is for all arrays that are alike,
        also in several files: `array.members` names them.

    Raises
    ------
    UsageError
        Not exactly one of `trace`, `workload` and `like` was given, it does not fit the file, or limits contradict.
    Refused
        The accesses have no price, or no layout keeps to the limits.
    NotAStoreProfile
        This machine has no store profile: run `hyperslab calibrate --quick`.
    """
    profile = (
        store_profile
        if isinstance(store_profile, StoreProfile)
        else (load_store_profile(None if store_profile is None else os.fspath(store_profile)))
    )
    sizes = (min_chunk, max_chunk)

    def limits_of(array: StoredArray) -> Limits:
        axis = axis_of(None if append_axis is None else str(append_axis), array.shape, array.dims)
        return Limits(max_files, memory, *sizes, axis, keep, price_per_request, max_size, codecs)

    if isinstance(source, Trace):
        if trace is not None:
            raise UsageError("source is a trace already: leave `trace` out, or name a file as the source")
        trace = source
    path = None if workload is None else Path(workload)
    question = ask_about(_targets(source), _weighted(trace), path, like, storage_options)
    return answer(question, profile, limits_of, progress or (lambda _: None))


def answer(
    question: Question, profile: StoreProfile, limits_of: Callable[[StoredArray], Limits], progress: Progress
) -> Advice:
    """The advice on each array of a question. `question.notes` then says which have none, and why.

    Raises
    ------
    Refused
        There is no advice for any of the arrays.
    """
    advised = Advice()
    for array, demands in question.arrays:
        limits = limits_of(array)
        limits.check(array.shape, array.dtype.itemsize)
        encodings = encodings_of(array, limits, profile, demands)
        measured = codecs_of(array, encodings, profile, demands)
        try:
            advised.append(advise_on(array, demands, profile, limits, measured, encodings, progress=progress))
        except Refused as error:
            if len(question.arrays) == 1:
                raise
            question.notes.append(str(error))
    _keep_whole(question, advised, profile)
    for file in question.files:
        one_format([one for one in advised if any(each == file for each, _ in one.array.members)], profile)
    if not advised:
        raise Refused(f"{question.file}: there is no advice for any of its arrays: {'; '.join(question.notes)}")
    return advised


def _keep_whole(question: Question, advised: Sequence[ArrayAdvice], profile: StoreProfile) -> None:
    """Choose again where the format that is advised cannot hold another array of the file: `convert` would refuse."""
    for advice in advised:
        name, now = advice.chosen.candidate.format, advice.today.candidate.format
        if name == now or {name, now} <= {*OF_HDF5}:
            continue
        for file in dict.fromkeys(file for file, _ in advice.array.members):
            other = unheld(file, name, question.options)
            if other is not None:
                formats = [one for one in FORMATS if one.startswith("zarr") == name.startswith("zarr")]
                refuse(advice, profile, formats, f"{name} cannot hold {other} of the same file")
                break


def _targets(source: str | os.PathLike[str] | Array | Trace | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The files that are named; none for a trace, which names its own."""
    if isinstance(source, Array):
        return [f"{source.filename}:{source.name}"]
    if isinstance(source, Trace):
        return []
    return [os.fspath(source)] if isinstance(source, str | os.PathLike) else [os.fspath(one) for one in source]


def _weighted(trace: Any) -> list[tuple[Path | Trace, float]]:
    if trace is None:
        return []
    if isinstance(trace, Mapping):
        pairs = list(trace.items())
    else:
        pairs = [(one, 1.0) for one in ([trace] if isinstance(trace, str | os.PathLike | Trace) else trace)]
    for one, weight in pairs:
        if not weight > 0:
            raise UsageError(f"trace {one}: the weight is {weight}, and must be larger than 0")
    return [(one if isinstance(one, Trace) else Path(one), float(weight)) for one, weight in pairs]
