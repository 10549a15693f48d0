"""A busy machine is noticed before it is measured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hyperslab.lab import other_load
from hyperslab.lab.other_load import OtherLoad, wait_until_quiet

TICK = os.sysconf("SC_CLK_TCK")


class Proc:
    """Counters of a kernel with the processors of this process and one more, in seconds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processors = sorted(os.sched_getaffinity(0))

    def write(self, busy: float, stolen: float, own: float, child: float, other: float) -> None:
        """Each of our processors was busy for so long; the process, its child and another one used so much."""
        ticks = [busy, 0, 0, 1000, 50, 0, 0, stolen, 0, 0]
        foreign = max(self.processors) + 1
        lines = [f"cpu{n} {' '.join(str(round(one * TICK)) for one in ticks)}" for n in self.processors]
        lines += [f"cpu{foreign} {99 * TICK} 0 0 0 0 0 0 0 0 0", "intr 5"]
        (self.folder / "stat").write_text("\n".join(lines))
        mine = os.getpid()
        for number, parent, used in ((mine, 1, own), (mine + 1, mine, child), (mine + 2, 1, other)):
            (self.folder / str(number)).mkdir(exist_ok=True)
            rest = [parent, *[0] * 9, round(used * TICK), 0, 0, 0]
            (self.folder / str(number) / "stat").write_text(f"{number} (a ) b) S {' '.join(map(str, rest))}")


def shared(folder: Path, monkeypatch: pytest.MonkeyPatch, **later: float) -> float | None:
    """The share of others after ten seconds."""
    now = iter((100.0, 110.0))
    monkeypatch.setattr(other_load.time, "monotonic", lambda: next(now))
    proc = Proc(folder)
    proc.write(5, 0, 3, 1, 8)
    load = OtherLoad(folder)
    proc.write(**later)
    return load.share()


def test_what_others_use_is_what_neither_we_nor_our_children_used(tmp_path, monkeypatch) -> None:
    count = len(os.sched_getaffinity(0))
    found = shared(tmp_path, monkeypatch, busy=5 + 6, stolen=2, own=3 + 4 * count, child=1 + count, other=9)
    assert found == pytest.approx(0.3), "eight seconds of ten, of which five were ours"


def test_a_quiet_machine_has_no_others(tmp_path, monkeypatch) -> None:
    count = len(os.sched_getaffinity(0))
    assert shared(tmp_path, monkeypatch, busy=5 + 6, stolen=0, own=3 + 6.5 * count, child=1, other=8) == 0


def test_a_kernel_that_does_not_say_is_unknown(tmp_path: Path) -> None:
    assert OtherLoad(tmp_path).share() is None


def test_this_machine_says_something() -> None:
    share = OtherLoad().share()
    assert share is None or 0 <= share <= 1


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ([0.02], []),
        ([None], []),
        ([0.6, 0.5, 0.03], ["busy: other programs use 60 % of the processors; waiting up to 10 s", "quiet now"]),
        ([0.6] * 40, ["busy", "still busy: what is measured now gets wider intervals"]),
    ],
)
def test_it_waits_for_others_but_not_for_long(shares, said) -> None:
    """calibrate measured a busy machine without a word."""
    given, lines, now = iter(shares), [], iter(range(100))
    wait_until_quiet(lines.append, sample=lambda: next(given), clock=lambda: float(next(now)))
    assert len(lines) == len(said)
    for line, part in zip(lines, said, strict=True):
        assert part in line
