"""Why a price may be wrong: what the trace measured beside what is predicted, and what is known to differ.

Every command says the same, because it is part of the counsel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import Demand
from hyperslab.advise.price import Price
from hyperslab.advise.pricing import Pricer
from hyperslab.advise.stored import StoredArray
from hyperslab.lab.environment import machine_of
from hyperslab.lab.other_load import BUSY, share_text
from hyperslab.model.installed import zarr_version
from hyperslab.model.store_profile import StoreProfile
from hyperslab.quantities import digits, interval_text, seconds_text
from hyperslab.trace.changed import has_changed

MOST_APART = 2.0
"""Measured and predicted seconds that differ by more are said, with why."""


def doubted(pricer: Pricer, array: StoredArray, today: Candidate, now: Price) -> tuple[Price, list[str], bool | None]:
    """Today's price, sentences on why it may be wrong, and whether what a trace measured bears it out.

    Where nothing explains what a trace measured, the interval is widened up to it. Without a trace, nothing bears a
    price out.
    """
    sentences = list(dict.fromkeys(said for one in pricer.demands for said in _differs(pricer.profile, array, one)))
    sentences += assumed(pricer, today)
    gaps = list(_gaps(pricer, today, now))
    for demand, predicted, measured in gaps:
        reason = _reason(pricer, demand, today, measured)
        factor = max(predicted, measured) / max(min(predicted, measured), 1e-9)
        less = "less" if predicted < measured else "more"
        said = (
            f"{demand.name} measured {seconds_text(measured)}, and {seconds_text(predicted)} are predicted, "
            f"{digits(factor)} times {less}: {reason or 'nothing that is known explains it'}"
        )
        if reason is None:
            weight = demand.weight
            missed = (measured - predicted) * weight
            now = replace(now, low=min(now.low, now.seconds + missed), high=max(now.high, now.seconds + missed))
            said += f", so the price is unproved: {interval_text(max(now.low, 0.0), now.high)}"
        sentences.append(said)
    compared = [one for one in pricer.demands if one.summary is not None and one.measured_seconds]
    return now, sentences, None if now.unknown or not compared else not gaps


def _gaps(pricer: Pricer, today: Candidate, now: Price) -> Iterator[tuple[Demand, float, float]]:
    """The demands whose measured seconds differ much from the predicted ones, with both."""
    if now.unknown:
        return
    for demand in pricer.demands:
        measured = demand.measured_seconds
        if demand.summary is None or not measured:
            continue
        alone = now if len(pricer.demands) == 1 else replace(pricer, demands=[demand], known={}).price(today)
        predicted = alone.call_seconds / demand.weight
        if not 1 / MOST_APART <= predicted / measured <= MOST_APART:
            yield demand, predicted, measured


def _reason(pricer: Pricer, demand: Demand, today: Candidate, measured: float) -> str | None:
    """Why a trace may have measured something else."""
    summary, profile = demand.summary, pricer.profile
    assert summary is not None
    if demand.cache == "cold":
        warm = replace(pricer, demands=[demand.with_cache("page-warm")], known={}).price(today)
        seconds = warm.call_seconds / demand.weight
        if not warm.unknown and 1 / MOST_APART <= seconds / measured <= MOST_APART:
            return f"the program found the file in the page cache; from there, it takes {seconds_text(seconds)}"
    reasons = []
    if _was_elsewhere(profile, demand):
        reasons.append("it was recorded on another machine")
    if summary.thread_count > 1:
        reasons.append(f"{summary.thread_count} threads waited for each other, and each wait counts as its own")
    if profile is not None and profile.busy_share >= BUSY:
        reasons.append("the store profile was made on a busy machine")
    if demand.caller == "netCDF" and today.reader == "hdf5" and (profile is None or profile.netcdf4 is None):
        reasons.append("a trace times what libhdf5 does, without netCDF4's own work")
    return ", or ".join(reasons) or None


def _differs(profile: StoreProfile | None, array: StoredArray, demand: Demand) -> Iterator[str]:
    """What is not as it was when the program was recorded, or when the machine was calibrated."""
    if profile is not None and profile.busy_share >= BUSY:
        yield (
            f"the store profile was made while other programs used {share_text(profile.busy_share)}, so intervals are "
            "wider: run `hyperslab calibrate` again on a quiet machine"
        )
    if demand.summary is None:
        return
    machine = demand.summary.program.get("machine")
    if _was_elsewhere(profile, demand):
        yield (
            f"{demand.name} was recorded on another machine ({machine}): its seconds are of that one, and the prices "
            f"of the one that was calibrated ({_calibrated(profile)})"
        )
    yield from _of_file(array, demand)


def assumed(pricer: Pricer, today: Candidate) -> Iterator[str]:
    """The version of zarr-python that is taken, where it decides the requests: a trace does not say which it was."""
    elsewhere = [one.name for one in pricer.demands if _was_elsewhere(pricer.profile, one)]
    if elsewhere and today.reader == "zarr" and today.layout.shard_shape is not None:
        version = zarr_version()
        taken = "the newest that we know" if version is None else f"{version}, which is installed here"
        yield (
            f"{' and '.join(elsewhere)} was recorded on another machine, and its zarr-python is not known: reads of "
            f"shards are counted as those of {taken}"
        )


def _of_file(array: StoredArray, demand: Demand) -> Iterator[str]:
    """Whether the file is there as it was when the program had ended."""
    assert demand.summary is not None
    traced = demand.summary.array
    if not traced.is_local:
        return
    try:
        changed_at = Path(traced.file).stat().st_mtime
    except (OSError, ValueError):
        yield f"{traced.file} is not there any more: {traced.array} is priced as it was recorded"
        return
    if not array.sample_chunk:
        yield (
            f"{traced.file} has no {traced.array} as it was recorded any more: it is priced as it was; record your "
            "program again"
        )
        return
    if has_changed(demand.summary.program, traced.file):
        moment = datetime.fromtimestamp(changed_at, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
        yield (
            f"{traced.file} was changed after {demand.name} was recorded, at {moment} UTC: {traced.array} is priced as "
            "it is stored today"
        )


def _was_elsewhere(profile: StoreProfile | None, demand: Demand) -> bool:
    machine = None if demand.summary is None else demand.summary.program.get("machine")
    return profile is not None and machine is not None and machine != _calibrated(profile)


def _calibrated(profile: StoreProfile | None) -> str:
    if profile is None:
        return "none"
    return machine_of(profile.environment.cpu, profile.environment.memory_nbytes)
