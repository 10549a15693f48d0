"""A run's answers in sentences: who leads, what to avoid and by what factor, what to use, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hyperslab.archive.views.display import counted
from hyperslab.bench.rankings import Ranking
from hyperslab.bench.recommendations import Candidate, Recommendation
from hyperslab.bench.results import Run
from hyperslab.bench.standings import ALIKE, Standing, rounds_to_decide
from hyperslab.lab.looks import MOST_ROUNDS
from hyperslab.lab.paired import FAR_FACTOR
from hyperslab.quantities import digits, names_text, seconds_text
from hyperslab.report.wording import contender_title

MARGIN = f"{ALIKE - 1:.0%}".replace("%", " %")
MOST_AVOIDED = MOST_RIVALS = 3
UNTIL_DECIDED = "add --until-decided to measure on"


def leads_text(ranking: Ranking) -> str:
    """Who leads a comparison, and how surely."""
    judged = ranking.judged
    leader = contender_title(judged.leader)
    if len(judged.entries) == 1:
        return f"only {leader} was measured"
    if judged.winner is not None:
        second = judged.entries[1]
        return f"{set_off(leader)} leads: {set_off(contender_title(second.name))} takes {_times(second)} as long"
    if judged.open and all(entry.low is None for entry in judged.entries[1:]):
        return f"{set_off(leader)} leads in {rounds_text(judged.entries[0].rounds)}, too few to be sure"
    if judged.is_decided:
        return f"{names_text(map(contender_title, judged.leading))} lead, as fast as each other within {MARGIN}"
    rivals = _near([entry for entry in judged.entries if entry.place == "open"])
    return f"{set_off(leader)} leads, but not surely: {_rivals(rivals, _named)} may be as fast ({_span(rivals)})"


def set_off(title: str) -> str:
    """A title in a sentence that goes on after it: one with a comma needs a second one."""
    return f"{title}," if ", " in title and not title.endswith(")") else title


def _near(entries: Sequence[Standing]) -> list[Standing]:
    """Without those that took several times as long, but in too few rounds for an interval: they are no rivals."""
    return [entry for entry in entries if entry.low is not None or entry.ratio < FAR_FACTOR] or list(entries)


def _named(entry: Standing) -> str:
    return contender_title(entry.name)


def _rivals(entries: Sequence[Standing], title_of: Callable[[Standing], str]) -> str:
    titles = [title_of(entry) for entry in entries]
    left = len(titles) - MOST_RIVALS
    return names_text(titles if left <= 0 else [*titles[:MOST_RIVALS], counted(left, "other", "others")])


def avoid_text(ranking: Ranking) -> str:
    """What to avoid, and by what factor; empty if nothing takes at least twice as long as the leader."""
    return _avoided(ranking.judged.avoided, _named)


def open_text(undecided: Sequence[Ranking], until_decided: bool) -> str:
    """What it would take to decide what is open."""
    count = len(undecided)
    noun = "The open one" if count == 1 else f"The {count} open ones"
    if until_decided:
        return f"{noun}: given up, because more rounds would hardly decide."
    known = [seconds for ranking in undecided if (seconds := seconds_to_decide(ranking)) is not None]
    if not known:
        return f"{noun} would need more than {MOST_ROUNDS} rounds."
    would = "would" if len(known) == count else f"would (or {len(known)} of them would)"
    more = seconds_text(sum(known))
    return f"{noun} {would} probably need {more} more of timed work: {UNTIL_DECIDED} (with --resume)."


def seconds_to_decide(ranking: Ranking) -> float | None:
    """The timed seconds that would probably decide an open comparison; None if too many rounds would be needed."""
    leader, *others = ranking.entries
    total = 0.0
    for entry, standing in zip(others, ranking.judged.entries[1:], strict=True):
        if standing.place == "open":
            needed = rounds_to_decide(dict(leader.rounds), dict(entry.rounds))
            if needed is None:
                return None
            total += (needed - standing.rounds) * (leader.median_seconds + entry.median_seconds)
    return total


def candidate_title(candidate: Candidate, alone: bool) -> str:
    """A candidate: its format, and its conditions unless all candidates share them."""
    name, conditions = candidate
    return contender_title(name) if alone else f"{contender_title(name)} ({conditions})"


def recommendation_text(recommendation: Recommendation, until_decided: bool = False) -> str:
    """The recommendation for a whole workload, with its confidence."""
    alone = len({conditions for _, conditions in recommendation.candidates}) == 1
    entries = recommendation.standings
    titles = {
        entry: candidate_title(candidate, alone)
        for entry, candidate in zip(entries, recommendation.candidates, strict=True)
    }
    used = titles[entries[0]]
    count = len(recommendation.operations)
    workload = "this operation" if count == 1 else f"these {count} operations, each of which counts the same"
    parts = [f"Use {set_off(used)} for {workload}", _confidence(recommendation, titles, until_decided)]
    if avoided := _avoided(recommendation.judged.avoided, lambda entry: titles[entry]):
        parts.append(f"A{avoided[1:]}")
    if recommendation.floor is not None:
        parts.append(f"Bare bytes without any format take {digits(recommendation.floor)} times as long")
    return " ".join(f"{part}." for part in parts)


def short_text(recommendation: Recommendation) -> str:
    """The recommendation in one sentence, to be remembered: what to use, how sure that is, and what to avoid most."""
    alone = len({conditions for _, conditions in recommendation.candidates}) == 1
    titles = [candidate_title(candidate, alone) for candidate in recommendation.candidates]
    entries = recommendation.standings
    said = {
        "clear": f"it is certainly the fastest, and the next best takes {digits(entries[1].ratio)} times as long"
        if len(entries) > 1
        else "",
        "shared": f"it leads, together with others that are as fast within {MARGIN}",
        "open": "it is probably the fastest, but others may be as fast",
        "first impression": "it leads, but in too few rounds to be sure",
        "alone": "nothing else did all of it",
    }[recommendation.confidence]
    avoided = recommendation.judged.avoided
    worst = ""
    if avoided:
        worst = f". Avoid {titles[entries.index(avoided[0])]}, which takes {digits(avoided[0].ratio)} times as long"
    return f"use {titles[0]}: {said}{worst}."


def _confidence(recommendation: Recommendation, titles: dict[Standing, str], until_decided: bool) -> str:
    entries, kind = recommendation.standings, recommendation.confidence
    rounds = rounds_text(recommendation.rounds)
    if kind == "alone":
        return "No other format did all of them, so there is nothing to compare it with"
    if kind == "first impression":
        chance = round(1 / recommendation.chance) if recommendation.chance else 0
        return (
            f"This is a first impression from {rounds}: whoever is ahead in all of them may be so by chance, one time "
            f"in {max(chance, 1)}; six rounds can be sure"
        )
    if kind == "clear":
        return (
            f"This is clear (95 %, {rounds}): the next best, {titles[entries[1]]}, takes {_times(entries[1])} as long"
        )
    leading = _near([entry for entry in entries[1:] if entry.place != "behind"])
    named = _rivals(leading, lambda entry: titles[entry])
    if kind == "shared":
        return f"{named} {'does' if len(leading) == 1 else 'do'} as well: within {MARGIN} of its time (95 %, {rounds})"
    rivals = [entry for entry in leading if entry.place == "open"]
    text = f"This is likely, but not certain after {rounds}: {named} may be as fast ({_span(rivals)})"
    if until_decided:
        return f"{text}. Measuring was given up, because more rounds would hardly decide it"
    if recommendation.more_seconds is None:
        return f"{text}. More than {MOST_ROUNDS} rounds would be needed to decide it, so treat them as equals"
    return f"{text}. About {seconds_text(recommendation.more_seconds)} more of timed work would decide: {UNTIL_DECIDED}"


def headline(run: Run) -> str:
    """The answer of a run with one case; with several, how often each format is recommended."""
    recommendations = answering(run)
    until_decided = run.description.until_decided
    if len(recommendations) == 1:
        return recommendation_text(recommendations[0], until_decided)
    counted: dict[str, int] = {}
    for each in recommendations:
        counted[each.recommended[0]] = counted.get(each.recommended[0], 0) + 1
    if not counted:
        return "No two formats were measured under the same conditions, so there is nothing to recommend."
    ordered = sorted(counted.items(), key=lambda item: -item[1])
    said = names_text(f"{contender_title(name)} for {count}" for name, count in ordered)
    sure = sum(each.confidence in ("clear", "shared") for each in recommendations)
    return f"Of {len(recommendations)} workloads, use {said}; {sure} of these answers are certain (95 %)."


def answering_method(run: Run) -> str:
    """The method that answers the question: the fair one if it ran, otherwise the published one."""
    return "fair" if any(ranking.method == "fair" for ranking in run.rankings) else "published"


def answering(run: Run) -> list[Recommendation]:
    """The recommendations that answer the question."""
    return [each for each in run.recommendations if each.method == answering_method(run)]


def rounds_text(count: int) -> str:
    """A number of rounds."""
    return "1 round" if count == 1 else f"{count} rounds"


def _avoided(avoided: Sequence[Standing], title_of: Callable[[Standing], str]) -> str:
    if not avoided:
        return ""
    said = [f"{title_of(entry)}, {digits(entry.ratio)} times as long" for entry in avoided[:MOST_AVOIDED]]
    left = len(avoided) - MOST_AVOIDED
    return f"avoid {names_text([*said, *([counted(left, 'other', 'others')] if left > 0 else [])])}"


def _times(entry: Standing) -> str:
    reach = f" ({digits(entry.low)} to {digits(entry.high)})" if entry.low is not None else ""
    return f"{digits(entry.ratio)} times{reach}"


def _span(entries: Sequence[Standing]) -> str:
    """How many times as long they take: by their intervals, or by the estimate where there are too few rounds."""
    low = min(entry.ratio if entry.low is None else entry.low for entry in entries)
    high = max(entry.ratio if entry.high is None else entry.high for entry in entries)
    few = ", by too few rounds" if any(entry.low is None for entry in entries) else ""
    return f"{f'{low:.2g} to {high:.2g}' if low < high else f'{low:.2g}'} times as long{few}"
