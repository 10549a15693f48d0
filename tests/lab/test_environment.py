"""When two runs were made on the same machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hyperslab.lab.environment import observe


def test_a_kernel_that_keeps_some_memory_makes_no_other_machine(tmp_path: Path) -> None:
    """Two builds of one kernel left 8 KiB more or less, and runs on one machine could not be compared."""
    here = observe(tmp_path, [])
    there = replace(here, memory_nbytes=here.memory_nbytes + 8192, kernel="another")
    assert here.differences(there) == []
    (said,) = here.differences(replace(here, memory_nbytes=here.memory_nbytes * 2))
    assert said.startswith("memory_nbytes: ")
    (said,) = here.differences(replace(here, cpu_count=here.cpu_count + 1))
    assert said.startswith("cpu_count: ")
