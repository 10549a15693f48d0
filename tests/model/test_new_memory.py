"""Passes meet new memory, as the model counts it and as a program does that has just started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
# An array of 8 MB in chunks of 256 KiB, which h5py's cache keeps, read in calls of one chunk: in a process of its own,
# because what others have left in the memory of this one would decide what is found.
PROGRAM = """
import json, resource, sys
from pathlib import Path
from hyperslab.lab.worker import Workbench
from hyperslab.model import Hdf5, Layout, Workload, count
from hyperslab.model.cells import ModelCell
from hyperslab.model.measuring import Pass, _job
import hyperslab.lab.worker as worker

worker.make_ready = lambda nbytes: None  # its own pages are no part of what is counted
boxes = [{"start": [k, 0], "shape": [64, 1024]} for k in range(0, 2048, 64)]
array = {"shape": [2048, 1024], "dtype": "i4"}
read, write = (
    Workload.model_validate({"array": array, "accesses": [{"select": "list", "boxes": boxes, "operation": name}]})
    for name in ("read", "write")
)
layout, bench, path = Layout((64, 1024)), Workbench(), Path(sys.argv[1], "a.h5")
written = ModelCell(write, layout, Hdf5(), "new")
Pass(_job(written, path), written, check=False).run(bench)
cell, faults = ModelCell(read, layout, Hdf5(), "page-warm"), []
for _ in range(4):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    Pass(_job(cell, path), cell, check=False).run(bench)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(json.dumps([faults, count(read, layout, Hdf5()).s_kept]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the allocator of glibc keeps what is freed")
def test_each_pass_touches_the_memory_that_is_counted_as_new(tmp_path: Path) -> None:
    if THP.exists() and "[always]" in THP.read_text():
        pytest.skip("pages of 2 MiB make too few faults to count")
    done = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    faults, kept_nbytes = json.loads(done.stdout)
    assert kept_nbytes == 8 << 20
    assert min(faults) * 4096 > 0.8 * kept_nbytes, faults
