"""On which machine a program was recorded, and when: what is asked of its trace later may be asked elsewhere."""

from __future__ import annotations

import time
from typing import Any

from hyperslab.lab.environment import machine_text


def whereabouts() -> dict[str, Any]:
    """This machine, and the seconds since 1970 at which the program has ended: now."""
    return {"machine": machine_text(), "ended_at": time.time()}
