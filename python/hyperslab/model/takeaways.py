"""Judge the paper's takeaways (section V.E) by an evaluation: rows of the verdict table."""

from __future__ import annotations

from hyperslab.lab.verdict import Verdict
from hyperslab.model.accuracy import PAPER_EXPERIMENTS, PAPER_RIGHT, PAPER_RMSE, Accuracy
from hyperslab.model.evaluation import Evaluation
from hyperslab.model.terms import EXTENDED, PAPER

STUDY = "cost-model"
# From the paper: the largest shares of the phases, and how many times as fast HDF5 is at most.
SHARES = {"memory": 0.90, "cache": 0.87, "device": 0.99}
MOST_TIMES = 15.0
# A phase that takes more than this share of a read cannot be left out of a prediction.
DOMINATES = 0.5
PHASE_TITLES = {"memory": "memory copy", "cache": "cache read", "device": "device"}


def judge(found: Evaluation) -> list[Verdict]:
    """Verdicts on takeaways (i) to (iv).

    The published method of (iv) is the paper's model, fitted to the same training.
    """
    return [_phases(found), _libraries(found), _processes(), _model(found)]


def _phases(evaluation: Evaluation) -> Verdict:
    summary = evaluation.phase_summary()
    shares = {phase: said["largest_share"] for phase, said in summary.items()}
    told = ", ".join(f"{PHASE_TITLES[phase]} {share:.0%}" for phase, share in shares.items())
    common = {
        "conclusion": "memory copy, cache read and device each take most of the time of some access",
        "published": "up to 90 %, 87 % and 99 % of the time (takeaway i)",
        "by_published_method": "not measured",
    }
    if shares.keys() != SHARES.keys():
        return _verdict(
            "i", **common, by_fair_method=("the phases were not isolated; --full does it"), verdict="undecided"
        )
    holds = all(share > DOMINATES for share in shares.values())
    reads = len(evaluation.phases) // len(SHARES)
    return _verdict("i", **common, by_fair_method=f"up to {told}, of {reads} reads", verdict=_word(holds))


def _libraries(evaluation: Evaluation) -> Verdict:
    ahead, behind = evaluation.most_times("hdf5", "zarr"), evaluation.most_times("zarr", "hdf5")
    common = {
        "conclusion": "in serial, HDF5 is much faster than Zarr, by up to 15 times",
        "published": "at most 15 times as fast (takeaway ii)",
        "by_published_method": "not measured",
    }
    if ahead is None or behind is None:
        return _verdict("ii", **common, by_fair_method="only one library was measured", verdict="undecided")
    told = f"HDF5 up to {ahead:.3g} times as fast, Zarr up to {behind:.3g} times"
    return _verdict("ii", **common, by_fair_method=told, verdict=_word(ahead > behind and ahead <= MOST_TIMES))


def _processes() -> Verdict:
    return _verdict(
        "iii",
        conclusion="a gain from more processes on one machine says nothing about another machine",
        published="faster with more processes on Cori, not on Owens and RI2 (takeaway iii)",
        by_published_method="not measured",
        by_fair_method="not measured by one process; it holds on two emulated stores (evaluate --parallel)",
        verdict="undecided",
    )


def _model(evaluation: Evaluation) -> Verdict:
    ours, papers = evaluation.models[EXTENDED.name], evaluation.models.get(PAPER.name)
    share = ours.fastest_accuracy
    holds = share is not None and share >= PAPER_RIGHT / PAPER_EXPERIMENTS and ours.rmse_log10 <= PAPER_RMSE
    return _verdict(
        "iv",
        conclusion="a linear cost model predicts which of HDF5 and Zarr is faster",
        published=f"{PAPER_RIGHT} of {PAPER_EXPERIMENTS} experiments (87 %), RMSE {PAPER_RMSE} (takeaway iv)",
        by_published_method="not fitted: too few cells" if papers is None else _accuracy_text(papers),
        by_fair_method=_accuracy_text(ours),
        verdict=_word(holds),
    )


def _accuracy_text(accuracy: Accuracy) -> str:
    right = round((accuracy.fastest_accuracy or 0.0) * accuracy.experiments)
    text = f"{right} of {accuracy.experiments} experiments ({accuracy.fastest_accuracy or 0.0:.0%})"
    if accuracy.fastest_accuracy_decided is not None:
        text += (
            f", {accuracy.fastest_accuracy_decided:.0%} of the {accuracy.decided_experiments} whose intervals do not"
            " overlap"
        )
    return f"{text}; RMSE of log10 {accuracy.rmse_log10:.2g}"


def _word(holds: bool) -> str:
    return "holds" if holds else "reverses"


def _verdict(number: str, *, verdict: str, **said: str) -> Verdict:
    return Verdict(id=f"S1-{number}", study=STUDY, verdict=verdict, **said)  # type: ignore[arg-type] # one of three words
