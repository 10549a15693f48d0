"""The far files of the benchmarks, of which the one with the most chunks has a quarter as many."""

from __future__ import annotations

from functools import partial

import far_files

CMIP_STEPS = 609
MAKERS = {**far_files.MAKERS, "cmip": partial(far_files.cmip_like, steps=CMIP_STEPS)}
