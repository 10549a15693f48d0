"""`make audit-deps` tells what is wrong from what could not be asked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "packaging"))
import audit_deps


def tool(said: str, status: int) -> tuple[str, ...]:
    return (sys.executable, "-c", f"import sys; print({said!r}, file=sys.stderr); sys.exit({status})")


GOOD = audit_deps.Question("licences", tool("licenses ok", 0))
WRONG = audit_deps.Question("sources", tool("error[source-not-allowed]: detected 'git' source", 1))
AWAY = "failed to fetch advisory database https://nowhere.invalid/db"
UNASKED = audit_deps.Question("faults", tool(AWAY, 1))


@pytest.mark.parametrize(
    ("asked", "status", "lines"),
    [
        ([GOOD], 0, ["good: licences"]),
        (
            [GOOD, WRONG, UNASKED],
            1,
            ["good: licences", "WRONG: sources", "error[source-not-allowed]: detected 'git' source"],
        ),
        (
            [GOOD, UNASKED],
            3,
            ["good: licences", f"NOT ASKED: faults: the list of known faults cannot be reached ({AWAY})"],
        ),
    ],
)
def test_the_status_says_whether_everything_is_good(
    asked: list[audit_deps.Question], status: int, lines: list[str]
) -> None:
    said, found = audit_deps.report([(one, audit_deps.answered(one)) for one in asked])
    assert found == status
    assert said[: len(lines)] == lines


def test_licences_and_known_faults_of_crates_and_packages_are_asked_for() -> None:
    commands = [" ".join(one.command) for one in audit_deps.questions("deny", "audit")]
    assert commands[0] == "deny check licenses"
    assert any("advisories" in one for one in commands)
    assert any(one.startswith("audit ") and "requirements.lock" in one for one in commands)


def test_packages_that_a_tool_skipped_were_not_asked_about() -> None:
    skipped = audit_deps.Question("packages", tool("zipp  could not be audited: zipp (4)\nNo known faults", 0))
    said, status = audit_deps.report([(skipped, audit_deps.answered(skipped))])
    assert status == 3
    assert said[0].startswith("NOT ASKED: packages: ")
    assert "1 could not be audited" in said[0]
