"""The headline of the page: what is fastest, operation by operation, or why no winner can be named."""

from __future__ import annotations

from collections import Counter
from html import escape

from hyperslab.bench.rankings import Ranking
from hyperslab.bench.results import Run
from hyperslab.report.captions import data_text
from hyperslab.report.markup import section, table_markup
from hyperslab.report.palette import paint_of
from hyperslab.report.tables import Table, lead, outcome
from hyperslab.report.views import Arrays, case_named
from hyperslab.report.wording import (
    arrays_text,
    cache_title,
    conditions_text,
    digits,
    interval_text,
    operation_title,
    seconds_text,
)

MOST_CARDS = 12


def answering(run: Run) -> list[Ranking]:
    """The rankings that answer the question: by the fair method where it ran, else the published one."""
    fair = [r for r in run.rankings if r.method == "fair"]
    return fair or run.rankings


def summary_sentence(run: Run) -> str:
    """How often each format won, as HTML."""
    compared = [r for r in answering(run) if len(r.entries) > 1]
    if not compared:
        return "No two formats were measured under the same conditions, so there is nothing to rank."
    wins = Counter(r.winner for r in compared if r.winner is not None).most_common()
    says = [f"<strong>{escape(name)}</strong> in {count}" for name, count in wins]
    unnamed = sum(r.winner is None for r in compared)
    if unnamed:
        says.append(f"no format in {unnamed}, where intervals overlap or trials are too few")
    noun = "comparison" if len(compared) == 1 else "comparisons"
    return f"Fastest in {len(compared)} {noun} by the {compared[0].method} method: {', '.join(says)}."


def answers_section(run: Run) -> str:
    """One article for each case: cards for its largest arrays, and a table of every comparison."""
    rankings = answering(run)
    names = dict.fromkeys(r.case for r in rankings)
    articles = "".join(_article(run, name, [r for r in rankings if r.case == name]) for name in names)
    nothing = "<p>No trial was accepted: see “What has no figures” for the reasons.</p>"
    chooser = '<div class="chooser" id="answer-chooser"></div>'
    return section("answer", "Fastest for arrays like yours", f"{chooser}{articles}" if articles else nothing)


def _article(run: Run, name: str, rankings: list[Ranking]) -> str:
    case = case_named(run, name)
    largest = max((Arrays(r.shape, r.count) for r in rankings), key=lambda arrays: arrays.size)
    cards = [r for r in rankings if Arrays(r.shape, r.count) == largest]
    if len(cards) > MOST_CARDS:
        cards = [r for r in cards if r.conditions == cards[0].conditions][:MOST_CARDS]
    dtype = next(s.dtype for s in run.summaries if s.case == name)
    about = f"{arrays_text(largest.shape, largest.count, dtype)}, {data_text(case)}"
    meant = "; ".join(dict.fromkeys(conditions_text(case, r.conditions, r.method) for r in rankings))
    title = f"{name}: {case.title}" if case and case.title else name
    return (
        f'<article class="answer" data-case="{escape(name)}"><h3>{escape(title)}</h3>'
        f'<p class="about">{escape(about)}. Conditions: {escape(meant)}.</p>'
        f'<div class="cards">{"".join(map(_card, cards))}</div>'
        f"<details><summary>All {len(rankings)} comparisons of this case</summary>"
        f"{table_markup(_comparisons(rankings))}</details></article>"
    )


def _card(ranking: Ranking) -> str:
    first = ranking.entries[0]
    where = f"{ranking.conditions}, {cache_title(ranking.cache)}"
    where += f", {ranking.processes} processes" if ranking.processes > 1 else ""
    figures = f"{seconds_text(first.median_seconds)} {interval_text(first.low_seconds, first.high_seconds)}, "
    figures += f"{digits(first.throughput_mbps)} MB/s, n = {first.n}"
    ahead = lead(ranking)
    if ahead is None:
        answer, why, colour = "no winner", outcome(ranking).removeprefix("no winner: "), "var(--rule)"
        figures = f"lowest median {first.format}: {figures}"
    else:
        answer, colour = first.format, paint_of(first.format).colour
        why = f"{digits(ahead)} × ahead of {ranking.entries[1].format}"
    return (
        f'<div class="card" style="--paint:{colour}"><p class="what">{escape(operation_title(ranking.operation))}</p>'
        f'<p class="winner">{escape(answer)}</p><p class="why">{escape(why)}</p>'
        f'<p class="where">{escape(where)}</p><p class="figures">{escape(figures)}</p></div>'
    )


def _comparisons(rankings: list[Ranking]) -> Table:
    rows = []
    for r in rankings:
        first, ahead = r.entries[0], lead(r)
        says = f"{digits(ahead)} × ahead of {r.entries[1].format}" if ahead else outcome(r)
        rows.append(
            (
                r.operation,
                f"{r.count} × [{r.shape.replace('x', ' × ')}]",
                r.conditions + (f", {r.processes} processes" if r.processes > 1 else ""),
                cache_title(r.cache),
                r.winner or "no winner",
                says,
                f"{first.format} {seconds_text(first.median_seconds)}",
                interval_text(first.low_seconds, first.high_seconds),
                digits(first.throughput_mbps),
                str(first.n),
            )
        )
    header = (
        "operation", "arrays", "conditions", "cache", "fastest", "", "lowest median", "95 % interval", "MB/s", "n",
    )  # fmt: skip
    note = "Times hold everything that a user waits for: creating and writing until durable; opening, reading, closing."
    return Table("Every comparison", header, tuple(rows), note)
