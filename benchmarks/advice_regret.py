"""Verified regret of `hyperslab advise` over all cases: what was advised against the best that was measured.

    python benchmarks/advice_regret.py [--only WORD] [--verify K] [--scale FACTOR] [--minutes M] [--far PROFILE]
                                       [--files DIRECTORY]

Each case is a file and a small program, which is traced. Advice is given with the machine's store profile; then the
best K layouts, today's and each library's default chunks are written, and the program's calls are made on each of
them, cold. Cases over HTTP are predicted with `--far`, the store profile of a server, and are not measured. Run it
while nothing else runs. Results are saved in benchmarks/results/advice_regret.json case by case, with what was
predicted and measured for each layout. No case begins after `--minutes`; those that are left out are named.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import comparison
import numpy as np
from advice_cases import CASES, Case, trace_of

from hyperslab.advise.advising import advise
from hyperslab.advise.asking import ask
from hyperslab.advise.formats import codecs_of, encodings_of
from hyperslab.advise.judging import judge
from hyperslab.advise.limits import Limits
from hyperslab.advise.verifying import verify
from hyperslab.model.store_profile import StoreProfile, load_store_profile
from hyperslab.quantities import seconds_text

REGRETS = ("regret", "regret_of_prediction", "regret_of_verdict")
RESULTS = Path(__file__).parent / "results" / "advice_regret.json"


def advised(case: Case, folder: Path, profile: StoreProfile, count: int, scale: float) -> dict[str, Any]:
    """The advice for one case, and what measuring says of it."""
    file = case.make(folder, scale)
    trace_of(case, file, folder / "run.trace")
    started = time.perf_counter()
    question = ask(f"{file}:{case.array}", [(folder / "run.trace", 1.0)], None, None)
    ((array, demands),) = question.arrays
    limits = Limits(keep="any", codecs="any")  # as wide a choice as possible
    encodings = encodings_of(array, limits, profile, demands)
    found = advise(array, demands, profile, limits, codecs_of(array, encodings, profile), encodings)
    spent = time.perf_counter() - started
    row: dict[str, Any] = {
        "case": case.name, "calls": sum(len(one.steps) for one in demands), "layouts": found.considered,
        "advice_seconds": spent, "predicted": found.verdict,
        "gain_over_default": {one.candidate.label: (one.seconds or 0) / (found.options[0].seconds or 1)
                              for one in found.options if one.candidate.label not in ("", "today")},
    }  # fmt: skip
    if case.is_far:
        return row
    before = found.advised
    measured = verify(found, profile, count, folder)
    first = measured.first_predicted
    row["regret_of_prediction"] = None if first is None else measured.regret(first.candidate)
    row["regret_of_verdict"] = measured.regret(before)
    judge(found, measured)
    row |= {"verdict": found.verdict, "regret": measured.regret(found.advised), "said": found.verified}
    weights = measured.weights
    row["measured"] = [
        {
            "layout": one.option.candidate.title,
            "is": one.option.candidate.label,
            "predicted": one.predicted,
            "low": one.low,
            "high": one.high,
            "measured": one.seconds(weights),
            "interval": one.interval(weights),
        }
        for one in measured.ranked
    ]
    return row


def main() -> None:
    """Run the cases and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--verify", type=int, default=3)
    parser.add_argument("--scale", type=float, default=2.0)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--far", type=Path)
    parser.add_argument("--files", type=Path, default=None)
    given = parser.parse_args()
    profile = load_store_profile()
    rows: list[dict[str, Any]] = []
    began = time.monotonic()
    for case in (one for one in CASES if given.only in one.name):
        if case.is_far and given.far is None:
            print(f"{case.name}: left out: give the store profile of a server with --far", flush=True)
            continue
        if time.monotonic() - began > 60 * given.minutes:
            print(f"{case.name}: left out: {given.minutes:g} minutes are over", flush=True)
            continue
        started = time.monotonic()
        used = load_store_profile(given.far) if case.is_far else profile
        with tempfile.TemporaryDirectory(dir=given.files) as folder:
            row = advised(case, Path(folder), used, given.verify, given.scale)
        row["case_seconds"] = time.monotonic() - started
        rows.append(row)
        known = {"scale": given.scale, "verified": given.verify, **comparison.provenance(), "cases": rows}
        RESULTS.write_text(json.dumps(known, indent=1) + "\n")
        print(f"{case.name} ({row['calls']} calls, {row['layouts']} layouts, {seconds_text(row['advice_seconds'])})")
        print(f"  predicted: {row['predicted']}")
        if "verdict" in row:
            print(f"  measured:  {row['verdict']}")
            for one in row["measured"]:
                took = "not measured" if one["measured"] is None else seconds_text(one["measured"])
                within = f"{seconds_text(one['predicted'])} [{seconds_text(one['low'])} to {seconds_text(one['high'])}]"
                print(
                    f"    {took:>12}, predicted {within}: {one['layout']}{' (' + one['is'] + ')' if one['is'] else ''}"
                )
            said = [f"{row[name]:.1%}" if row[name] is not None else "?" for name in REGRETS]
            print(f"  regret {said[0]}, of the prediction alone {said[1]}, of the verdict {said[2]}", flush=True)
    for name in REGRETS:
        known = [row[name] for row in rows if row.get(name) is not None]
        if known:
            print(f"{name}: median {np.median(known):.1%}, worst {max(known):.1%} of {len(known)} cases")


if __name__ == "__main__":
    main()
