"""The far files of the benchmarks with fewer elements that do not compress, which take longest to make. The one with
the most chunks has a quarter as many.
"""

from __future__ import annotations

from functools import partial

import far_files

CMIP_STEPS = 609
MAKERS = {
    "goes": partial(far_files.goes_like, every=6),
    "cmip": partial(far_files.cmip_like, steps=CMIP_STEPS),
    "era": partial(far_files.era_like, every=6),
}
