"""The first section of the page: what to use, who leads each operation, what to avoid, and how sure that is."""

from __future__ import annotations

from html import escape

from hyperslab.bench.rankings import Ranking
from hyperslab.bench.results import Run
from hyperslab.quantities import UNKNOWN, digits, interval_text, seconds_text
from hyperslab.report.answer_words import answering, answering_method, avoid_text, leads_text, recommendation_text
from hyperslab.report.captions import data_text, scale_text
from hyperslab.report.markup import section, table_markup
from hyperslab.report.palette import paint_of
from hyperslab.report.tables import Table
from hyperslab.report.unmeasured import unmeasured_lines
from hyperslab.report.views import Arrays, case_named
from hyperslab.report.wording import arrays_text, cache_title, conditions_text, contender_title, operation_title

MOST_CARDS = 12


def answering_rankings(run: Run) -> list[Ranking]:
    """The comparisons that answer the question."""
    method = answering_method(run)
    return [ranking for ranking in run.rankings if ranking.method == method]


def answers_section(run: Run) -> str:
    """The section with one article per case: cards for the case's largest arrays, and a table of all comparisons."""
    rankings = answering_rankings(run)
    names = dict.fromkeys(r.case for r in rankings)
    articles = "".join(_article(run, name, [r for r in rankings if r.case == name]) for name in names)
    nothing = "<p>No trial was accepted; “Trials without figures” gives the reasons.</p>"
    chooser = '<div class="chooser" id="answer-chooser"></div>'
    missing = "".join(f'<p class="note">{escape(said)}</p>' for said in unmeasured_lines(run))
    answer = f"{chooser}{articles}" if articles else nothing
    return section("answer", "The best format for arrays like yours", f"{answer}{missing}")


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
    said = [recommendation_text(each, run.description.until_decided) for each in answering(run) if each.case == name]
    scaled = scale_text(run, name)
    return (
        f'<article class="answer" data-case="{escape(name)}"><h3>{escape(title)}</h3>'
        f'<p class="recommended">{escape(" ".join(said))}</p>'
        f'<p class="about">{escape(about)}. Conditions: {escape(meant)}. {escape(scaled)}</p>'
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
    colour = paint_of(first.format).colour if ranking.judged.is_decided else "var(--rule)"
    avoid = avoid_text(ranking)
    return (
        f'<div class="card" style="--paint:{colour}"><p class="what">{escape(operation_title(ranking.operation))}</p>'
        f'<p class="winner">{escape(contender_title(first.format))}</p><p class="why">{escape(leads_text(ranking))}</p>'
        + (f'<p class="why">{escape(avoid)}</p>' if avoid else "")
        + f'<p class="where">{escape(where)}</p><p class="figures">{escape(figures)}</p></div>'
    )


def _comparisons(rankings: list[Ranking]) -> Table:
    rows = [
        (
            r.operation,
            f"{r.count} × [{r.shape.replace('x', ' × ')}]",
            r.conditions + (f", {r.processes} processes" if r.processes > 1 else ""),
            cache_title(r.cache),
            leads_text(r),
            avoid_text(r).removeprefix("avoid ") or UNKNOWN,
            seconds_text(r.entries[0].median_seconds),
            interval_text(r.entries[0].low_seconds, r.entries[0].high_seconds),
            digits(r.entries[0].throughput_mbps),
            str(r.entries[0].n),
        )
        for r in rankings
    ]
    header = (
        "operation", "arrays", "conditions", "cache", "who leads", "avoid", "its median", "95 % interval", "MB/s", "n",
    )  # fmt: skip
    note = (
        "Times include everything that a user waits for: create and write until durable; open, read and close. Formats "
        "are compared within rounds, in which each ran once; “95 %” means that at most one such statement in twenty is "
        "wrong."
    )
    return Table("Every comparison", header, tuple(rows), note)
