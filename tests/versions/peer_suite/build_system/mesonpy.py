"""Answers pip's question for the metadata of a source distribution from its PKG-INFO.

pip asks it even of what it only downloads; versioned-hdf5's own build system then wants a compiler and libhdf5.
"""

from __future__ import annotations

import email
import shutil
from pathlib import Path
from typing import Any


def prepare_metadata_for_build_wheel(folder: str, settings: Any = None) -> str:
    described = email.message_from_string(Path("PKG-INFO").read_text())
    name = f"{described['Name'].replace('-', '_')}-{described['Version']}.dist-info"
    (Path(folder) / name).mkdir()
    shutil.copy("PKG-INFO", Path(folder) / name / "METADATA")
    return name
