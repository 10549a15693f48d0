"""What the campaign of `advice_programs.py` found: a line for each program, the shares, and the tables of the docs.

    python benchmarks/advice_table.py [RESULTS] [--write]

prints the summary and both tables in Markdown. `--write` puts the tables into docs/cost-model.md and docs/advise.md,
between the two lines `<!-- advice_table -->` of each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FACTOR = 1.5
"""Predictions are right if they are within this factor of what was measured."""
WITHIN = 1.25
"""Advice is right if its layout takes at most so many times as long as the best of six others."""
SLOWER = 1.1
"""Advice harms if its layout takes more than so many times as long as today's; less is noise of the machine."""
RATIOS = {"predicted_over_measured": "the program's own clock", "predicted_over_traced": "the trace"}
"""What predictions are compared with. A trace times the library that stores the array, not what xarray or pandas do."""
COLUMNS = {"plain": "plain library", "run": "`hyperslab run`"}


def _ratio(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


def line(row: Mapping[str, Any]) -> str:
    """One program in a line."""
    at = f"{row['number']:>3} {row['idiom']}; {row['pattern']}; {'×'.join(map(str, row['shape']))} {row['dtype']}"
    cut = "one piece" if row["chunks"] is None else "×".join(map(str, row["chunks"]))
    parts = [f"{at} in {cut}, {row['codec']}; {row['calls']} calls"]
    took = f"{1e3 * row['measured']:.0f} ms" if row["measured"] else "?"
    parts.append(f"    predicted/measured {_ratio(row['predicted_over_measured'])} of {took}")
    parts[-1] += f", /traced {_ratio(row['predicted_over_traced'])} of {1e3 * row.get('traced', 0):.0f} ms"
    for name, column in row["columns"].items():
        best = column["best"]
        against = f" ({best[0]}, {1e3 * best[1]:.0f} ms)" if best else ""
        parts[-1] += f"; {name}: {_ratio(column['advised_over_best'])} of best{against}"
        parts[-1] += f", {_ratio(column['advised_over_today'])} of today"
        parts += [f"    {name}, {layout}: {problem[-160:]}" for layout, problem in column["problems"].items()]
    if "chosen" in row:
        parts.append(f"    advice: {'keep' if row['keep'] else ''} {'; '.join(map(str, row['chosen'].values()))}")
    parts += [f"    REFUSED: {row['refused']}"] if "refused" in row else []
    parts += [f"    not written: {name}: {why[-160:]}" for name, why in row.get("not_written", {}).items()]
    parts += [] if row["is_deterministic"] else ["    the program printed different sums"]
    return "\n".join(parts)


def is_near(ratio: float | None) -> bool:
    """Whether a prediction is within the factor; one that is missing is not."""
    return ratio is not None and 1 / FACTOR <= ratio <= FACTOR


def shares(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """How many of how many programs each claim holds for."""
    made = {words: (sum(is_near(row[key]) for row in rows), len(rows)) for key, words in RATIOS.items()}
    for name in COLUMNS:
        mine = [row["columns"][name] for row in rows if name in row["columns"]]
        near = [one["advised_over_best"] is not None and one["advised_over_best"] <= WITHIN for one in mine]
        made[f"best, {name}"] = (sum(near), len(mine))
    plain = [row["columns"]["plain"]["advised_over_today"] for row in rows]
    made["slower"] = (sum(one is not None and one > SLOWER for one in plain), len(rows))
    return made


def _said(count: tuple[int, int]) -> str:
    return f"{count[0]} of {count[1]}"


def summary(results: Mapping[str, Any]) -> str:
    """The shares in words."""
    found = shares(results["programs"])
    lines = [f"predicted within a factor of {FACTOR} of {words}: {_said(found[words])}" for words in RATIOS.values()]
    lines += [f"advised within 25 % of the best of six, {name}: {_said(found[f'best, {name}'])}" for name in COLUMNS]
    lines.append(f"advice slower than today's file: {_said(found['slower'])}")
    wrong = [row for row in results["programs"] if "refused" in row]
    lines.append(f"refused: {len(wrong)}")
    return "\n".join(lines)


def _by(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, list[Mapping[str, Any]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(str(row[key]), []).append(row)
    return groups


def _origin(results: Mapping[str, Any]) -> str:
    environment = results["environment"]
    return (
        f"`python benchmarks/advice_programs.py --seed {results['seed']} --count {results['count']}`: "
        f"{results['measured_at']}, commit {results['revision']}, {environment['cpu']}, {environment['cpu_count']} "
        f"processors, {environment['file_system']}.\n"
    )


def predicted_markdown(results: Mapping[str, Any]) -> str:
    """For docs/cost-model.md: how near the predictions were."""
    rows = results["programs"]
    head = " | ".join(f"within a factor of {FACTOR} of {words} | predicted / that" for words in RATIOS.values())
    lines = [_origin(results), f"| idiom | programs | {head} |", "|---" * (2 + 2 * len(RATIOS)) + "|"]
    for name, mine in [*_by(rows, "idiom").items(), ("all", rows)]:
        cells = []
        for key in RATIOS:
            known = sorted(row[key] for row in mine if row[key] is not None)
            spread = f"{known[0]:.2f} to {known[-1]:.2f}" if known else "?"
            cells += [str(sum(is_near(row[key]) for row in mine)), spread]
        lines.append(f"| {name} | {len(mine)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def advised_markdown(results: Mapping[str, Any]) -> str:
    """For docs/advise.md: what the advice was worth."""
    rows = results["programs"]
    head = " | ".join(f"within 25 % of the best of six, {words}" for words in COLUMNS.values())
    lines = [_origin(results), f"| pattern | programs | {head} | today's file / advised, plain library | slower |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for name, mine in [*sorted(_by(rows, "pattern").items()), ("all", rows)]:
        found = shares(mine)
        gains = sorted(1 / one for row in mine if (one := row["columns"]["plain"]["advised_over_today"]) is not None)
        spread = f"{gains[0]:.2f} to {gains[-1]:.2f}" if gains else "?"
        near = " | ".join(_said(found[f"best, {column}"]) for column in COLUMNS)
        lines.append(f"| {name} | {len(mine)} | {near} | {spread} | {found['slower'][0]} |")
    return "\n".join(lines) + "\n"


MARK = "<!-- advice_table -->"


def written(page: str, table: str) -> str:
    """A page of the docs with the table between its two marks."""
    before, _, after = page.split(MARK)
    return f"{before}{MARK}\n\n{table}\n{MARK}{after}"


if __name__ == "__main__":
    root = Path(__file__).parent
    paths = [word for word in sys.argv[1:] if word != "--write"]
    saved = json.loads(Path(paths[0] if paths else root / "results" / "advice_programs.json").read_text())
    tables = {"cost-model.md": predicted_markdown(saved), "advise.md": advised_markdown(saved)}
    print(summary(saved), *tables.values(), sep="\n\n")
    if "--write" in sys.argv:
        for name, table in tables.items():
            docs = root.parent / "docs" / name
            docs.write_text(written(docs.read_text(), table))
