"""Calibrate the parallel model on the striped store, and ask it about experiments that it has not seen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hyperslab.errors import UsageError
from hyperslab.lab.verdict import Verdict
from hyperslab.parallel.experiments import (
    REPEATS,
    SERVERS,
    Measured,
    ParallelScores,
    held_out,
    measure,
    predicted_seconds,
    quick_training,
    scores,
    simulated_seconds,
    tiny,
    training,
)
from hyperslab.parallel.paper_figures import SLOW_METADATA, figure_experiments
from hyperslab.parallel.profile import ParallelProfile, fit_profile
from hyperslab.parallel.simulation import ServerSpeeds
from hyperslab.parallel.striped_store.store import StoreSpeeds, StripedStore
from hyperslab.parallel.takeaway import judge_gains
from hyperslab.progress import Progress
from hyperslab.replacing import replace_with

# What the headers of packets add to the bytes that a link lets through.
HEADERS = 1514 / 1448
# From one request of a process to the next: the answer's way back, and Python.
PROCESS_SECONDS = 0.0004
OURS, PAPER = "formulas 9 and 10, and turns at the servers", "formulas 9 and 10"
BASELINE, SIMULATION = "P2: bytes only", "simulation"


@dataclass(frozen=True)
class ParallelEvaluation:
    """Held-out experiments, measured and predicted by each model.

    `elsewhere` are those on another store, whose metadata server is slow, with a quick calibration of its own.
    """

    store: str
    measured: list[Measured]
    seconds: dict[str, list[float]]
    scores: dict[str, ParallelScores]
    elsewhere: ParallelEvaluation | None = None

    @property
    def takeaway(self) -> Verdict:
        """The verdict on the paper's takeaway (iii)."""
        return judge_gains(self.measured, self.elsewhere.measured if self.elsewhere is not None else ())

    def to_dict(self) -> dict[str, Any]:
        """The evaluation for `--json`."""
        models = {name: {**asdict(each), "accuracy": each.accuracy} for name, each in self.scores.items()}
        listed = [
            {
                **asdict(each.experiment),
                "name": each.experiment.name,
                "seconds": list(each.seconds),
                "predicted": {name: document[k] for name, document in self.seconds.items()},
            }
            for k, each in enumerate(self.measured)
        ]
        document: dict[str, Any] = {"store": self.store, "models": models, "experiments": listed}
        if self.elsewhere is not None:
            document["elsewhere"] = self.elsewhere.to_dict()["parallel"]
            document["takeaway"] = asdict(self.takeaway)
        return {"parallel": document}


def store_text(speeds: StoreSpeeds) -> str:
    """What the striped store is, in one line."""
    return (
        f"Emulated: {SERVERS} data servers of {speeds.mbit_s:g} Mbit/s, {speeds.request_seconds * 1e3:g} ms a request, "
        f"and a metadata server of {speeds.metadata_seconds * 1e3:g} ms a file"
    )


def speeds_of(speeds: StoreSpeeds) -> ServerSpeeds:
    """The speeds that a simulation of the store uses: those that it was given, and its processes' own time."""
    return ServerSpeeds(
        request_seconds=speeds.request_seconds,
        seconds_per_byte=8 / (speeds.mbit_s * 1e6) * HEADERS,
        metadata_seconds=speeds.metadata_seconds,
        process_seconds=PROCESS_SECONDS,
    )


def calibrate_parallel(
    speeds: StoreSpeeds, *, is_tiny: bool = False, progress: Progress = lambda *_: None
) -> ParallelProfile:
    """Measure the training on a striped store, and fit formulas 9 and 10.

    Raises
    ------
    Refused
        There can be no namespaces with rate limits here.
    RunError
        A server or a process failed.
    """
    chosen = quick_training() if is_tiny else training()
    with StripedStore(SERVERS, speeds) as store:
        measurements = measure(store, chosen, 1 if is_tiny else REPEATS, progress)
    return fit_profile(store_text(speeds), SERVERS, [each.observation() for each in measurements])


def evaluate_parallel(
    profile: ParallelProfile,
    speeds: StoreSpeeds,
    *,
    is_tiny: bool = False,
    progress: Progress = lambda *_: None,
) -> ParallelEvaluation:
    """Measure the held-out experiments, and judge what the profile, the baseline and the simulation say of them.

    Raises
    ------
    UsageError
        The profile was calibrated on a store with other speeds.
    Refused
        There can be no namespaces with rate limits here.
    RunError
        A server or a process failed.
    """
    if profile.store != store_text(speeds):
        raise UsageError(f"the profile describes another store: {profile.store}; this one is {store_text(speeds)}")
    chosen = [*held_out(), *figure_experiments(elsewhere=False)]
    with StripedStore(SERVERS, speeds) as store:
        measured = measure(store, tiny(chosen) if is_tiny else chosen, 1 if is_tiny else REPEATS, progress)
    made = judge(profile, speeds, measured)
    return made if is_tiny else replace(made, elsewhere=_elsewhere(progress))


def _elsewhere(progress: Progress) -> ParallelEvaluation:
    """The experiments of the paper's figures on another store, calibrated quickly on that store."""
    with StripedStore(SERVERS, SLOW_METADATA) as store:
        trained = measure(store, quick_training(), 1, progress)
        asked = measure(store, figure_experiments(elsewhere=True), REPEATS, progress)
    profile = fit_profile(store_text(SLOW_METADATA), SERVERS, [each.observation() for each in trained])
    return judge(profile, SLOW_METADATA, asked)


def judge(profile: ParallelProfile, speeds: StoreSpeeds, measured: Sequence[Measured]) -> ParallelEvaluation:
    """Compare measured experiments with what each model says of them."""
    formulas = [predicted_seconds(profile, each) for each in measured]
    known = speeds_of(speeds)
    seconds = {
        OURS: [ours for ours, _, _ in formulas],
        PAPER: [paper for _, paper, _ in formulas],
        BASELINE: [p2 for _, _, p2 in formulas],
        SIMULATION: [simulated_seconds(known, each.experiment) for each in measured],
    }
    judged = {
        name: scores(measured, predicted, (lambda e: profile.reach(e.library, e.direction)) if name == OURS else None)
        for name, predicted in seconds.items()
    }
    return ParallelEvaluation(profile.store, list(measured), seconds, judged)


def save_evaluation(made: ParallelEvaluation, path: Path) -> None:
    """Write an evaluation as JSON."""
    replace_with(path, (json.dumps(made.to_dict(), indent=1) + "\n").encode())
