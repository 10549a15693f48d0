"""Ask whether what we link and install may be used: licences, sources, known faults. `make audit-deps` runs it.

Each question is answered by a tool: `cargo deny` for the crates, `pip-audit` for the Python packages. The lists of
known faults are on the network. Where one cannot be reached, that is said in words, and the exit status is 3: nothing
is wrong, but not everything was asked. It is 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
WRONG, UNASKED = 1, 3
SKIPPED = "could not be audited"
# What the tools say if they get no answer.
UNREACHED = re.compile(
    r"failed to fetch advisory database|failed to (?:open|load|acquire).*advisory|error sending request"
    r"|Could ?n[o']t resolve|Could not connect|ConnectionError|Connection (?:refused|reset)|Max retries|timed out"
    r"|Name or service|HTTPError|Failed to establish|ServiceError|Forbidden",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Question:
    """What is asked, by which command."""

    asked: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """What a tool answered: `good`, `wrong` or `unasked`, and its own words."""

    state: str
    said: str


def questions(cargo_deny: str, pip_audit: str) -> list[Question]:
    """What `make audit-deps` asks."""
    python = (pip_audit, "--no-deps", "--disable-pip", "--progress-spinner=off", "--requirement", "requirements.lock")
    return [
        Question("licences of the crates", (cargo_deny, "check", "licenses")),
        Question("sources and versions of the crates", (cargo_deny, "check", "bans", "sources")),
        Question("known faults of the crates", (cargo_deny, "check", "advisories")),
        Question("known faults of the Python packages", python),
    ]


def answered(question: Question) -> Answer:
    """Ask one question."""
    try:
        done = subprocess.run(question.command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        return Answer("unasked", "there was no answer within 15 minutes")
    said = (done.stdout + done.stderr).strip()
    if skipped := said.count(SKIPPED):  # pip-audit takes what it did not find for harmless
        return Answer("wrong" if done.returncode else "unasked", said if done.returncode else f"{skipped} {SKIPPED}")
    if done.returncode == 0:
        return Answer("good", said)
    return Answer("unasked" if UNREACHED.search(said) else "wrong", said)


def report(answers: list[tuple[Question, Answer]]) -> tuple[list[str], int]:
    """What to print, and the exit status."""
    lines = []
    for question, answer in answers:
        if answer.state == "good":
            lines.append(f"good: {question.asked}")
        elif answer.state == "wrong":
            lines += [f"WRONG: {question.asked}", answer.said]
        else:
            first = next((line for line in answer.said.splitlines() if UNREACHED.search(line)), answer.said)
            lines.append(f"NOT ASKED: {question.asked}: the list of known faults cannot be reached ({first.strip()})")
    states = {answer.state for _, answer in answers}
    if "wrong" in states:
        return lines, WRONG
    if "unasked" in states:
        return [*lines, "ask again where the network leads to these lists: the workflow `test` does"], UNASKED
    return lines, 0


def main() -> None:
    """Ask everything, print the answers, and end with the status that they deserve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cargo_deny")
    parser.add_argument("pip_audit")
    asked = parser.parse_args()
    programs = (str(Path(name).absolute()) for name in (asked.cargo_deny, asked.pip_audit))
    lines, status = report([(one, answered(one)) for one in questions(*programs)])
    print("\n".join(lines))
    sys.exit(status)


if __name__ == "__main__":
    main()
