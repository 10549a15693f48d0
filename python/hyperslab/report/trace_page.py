"""One self-contained page about a trace: what to do first, then every array with its heat map, then the timeline."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from hyperslab.advise.results import Counsel
from hyperslab.quantities import seconds_text
from hyperslab.replacing import replace_with
from hyperslab.report.chunk_map import chunk_map
from hyperslab.report.markup import section
from hyperslab.report.trace_words import CACHE_WORDS, Told, advice_lines, facts, headline, measured_where
from hyperslab.trace.summaries import ArraySummary, timeline
from hyperslab.trace.trace import Trace

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
STYLE = """
pre { overflow-x: auto; background: var(--raised); border: 1px solid var(--rule); border-radius: 6px;
  padding: .5rem .8rem; font-size: .85rem; margin: .4rem 0 1rem; }
ol.todo > li { margin-bottom: .6rem; overflow-wrap: anywhere; }
td { overflow-wrap: anywhere; }
svg { display: block; max-width: 100%; height: auto; margin: .4rem 0; }
svg.map { width: 100%; max-width: 45rem; }
svg text { font: 11px var(--sans); fill: var(--muted); }
.warning { border-left: 3px solid var(--open); padding-left: .8rem; }
@media (max-width: 62rem) { body { overflow-wrap: anywhere; } tbody th { padding-right: .6rem; } }
tbody th { overflow-wrap: normal; }
"""
WIDTH, HEIGHT = 960, 150
MOST_ARRAYS = 50
READ_PAINT, WRITE_PAINT = "#1f5fa8", "#e07b1a"


def write_trace_page(path: Path, trace: Trace, told: Sequence[Told]) -> None:
    """Write the page. It needs no network and runs no scripts."""
    replace_with(path, render(trace, told))


def render(trace: Trace, told: Sequence[Told]) -> str:
    """The HTML of the whole page."""
    shown = list(enumerate(told))[:MOST_ARRAYS]
    summaries = [one for one, _ in told]
    program = " ".join(map(str, trace.program.get("arguments", []))) or "this process"
    css = files("hyperslab.report").joinpath("page.css").read_text(encoding="utf-8")
    entries = [("todo", "Without rewriting data"), ("timeline", "Timeline")]
    entries += [(f"array-{place}", one.array.title) for place, one in enumerate(summaries[:MOST_ARRAYS])]
    links = "".join(f'<li><a href="#{anchor}">{escape(name)}</a></li>' for anchor, name in entries)
    warnings = "".join(f'<p class="warning">{escape(note)}</p>' for note in trace.notes)
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>hyperslab trace: {escape(program)}</title><style>{css}{STYLE}</style></head><body>",
            f'<nav aria-label="Contents"><p class="mark">hyperslab</p><ol>{links}</ol></nav>',
            f'<main><header><p class="kicker">Trace of {escape(program)}</p>',
            "<h1>What your program reads and writes</h1>",
            f'<p class="lede">{escape(headline(trace, summaries))}</p>{warnings}</header>',
            section("todo", "Without rewriting any data", _todo(told)),
            section("timeline", "Timeline", timeline_figure(trace)),
            *(_array_section(place, one, each) for place, (one, each) in shown),
            _left_out(len(summaries) - MOST_ARRAYS),
            "</main></body></html>",
        ]
    )


def _left_out(count: int) -> str:
    return f"<p>{count} more arrays took less time; `hyperslab trace show --json` has them.</p>" if count > 0 else ""


def _todo(told: Sequence[Told]) -> str:
    lines = advice_lines(told)
    if not lines:
        return "<p>Nothing: no chunk was decoded again, and no other library would read these arrays for you.</p>"
    items = "".join(f"<li>{escape(said)}{f'<pre>{escape(call)}</pre>' if call else ''}</li>" for said, call in lines)
    states = {CACHE_WORDS[each.cache] for _, each in told if not isinstance(each, str) and not each.now.unknown}
    note = f'<p class="note">Predictions are for a program that starts {" or ".join(sorted(states))}.</p>'
    return f'<ol class="todo">{items}</ol>{note if states else ""}'


def _array_section(place: int, one: ArraySummary, counsel: Counsel | str) -> str:
    rows = "".join(f'<tr><th scope="row">{name}</th><td>{escape(said)}</td></tr>' for name, said in facts(one, counsel))
    table = f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>'
    return section(f"array-{place}", one.array.title, table + chunk_map(one))


def timeline_figure(trace: Trace) -> str:
    """The time in reads and writes, from the first access to the last."""
    if not len(trace):
        return ""
    reads, writes = timeline(trace)
    highest = max(max(a + b for a, b in zip(reads, writes, strict=True)), 1e-12)
    step = WIDTH / len(reads)
    bars = []
    for place, (read, write) in enumerate(zip(reads, writes, strict=True)):
        top = HEIGHT
        for seconds, paint in ((read, READ_PAINT), (write, WRITE_PAINT)):
            tall = HEIGHT * seconds / highest
            top -= tall  # type: ignore[assignment]
            if tall > 0:
                box = f'x="{place * step:.1f}" y="{top:.1f}" width="{step - 1:.1f}" height="{tall:.1f}"'
                bars.append(f'<rect {box} fill="{paint}"/>')
    end = seconds_text(trace.seconds)
    bin_text = seconds_text(trace.seconds / len(reads))
    caption = "Time in reads (blue) and writes (orange), summed over threads. "
    caption += f"A bar stands for {bin_text}; the highest has {seconds_text(highest)} of access."
    return (
        f'<figure class="pane"><svg viewBox="0 0 {WIDTH} {HEIGHT + 20}" role="img" aria-label="{caption}">'
        f"{''.join(bars)}"
        f'<line y1="{HEIGHT}" x2="{WIDTH}" y2="{HEIGHT}" stroke="var(--rule)"/>'
        f'<text x="0" y="{HEIGHT + 15}">0</text><text x="{WIDTH}" y="{HEIGHT + 15}" text-anchor="end">{end}</text>'
        "</svg>"
        f"<figcaption>{caption} {measured_where(trace)}</figcaption></figure>"
    )
