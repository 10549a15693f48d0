"""What pip asks to build hyperslab from its sources: maturin, after the library that `hyperslab run` preloads.

Without cargo's second build, `pip install` from an sdist or a checkout would install a hyperslab that cannot `run`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import maturin
from maturin import (  # noqa: F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).parents[1]


def build_wheel(directory: str, settings: Any = None, metadata: str | None = None) -> str:
    """Build the library, then the wheel with it."""
    _build_preload()
    return str(maturin.build_wheel(directory, settings, metadata))


def build_editable(directory: str, settings: Any = None, metadata: str | None = None) -> str:
    """Build the library, then an editable wheel."""
    _build_preload()
    return str(maturin.build_editable(directory, settings, metadata))


def _build_preload() -> None:
    subprocess.run(["sh", str(ROOT / "crates" / "hyperslab-preload" / "build.sh")], check=True)
