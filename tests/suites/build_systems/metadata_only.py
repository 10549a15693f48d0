"""The build system that pip finds in place of a package's own: it takes the metadata from PKG-INFO and builds nothing.

pip asks for metadata even of what it only downloads, and a real build system first wants a compiler and libraries.
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
