"""List the parts of the wheel in CycloneDX's form: `python packaging/sbom.py OUTPUT.cdx.json`.

The crates are those that are linked for any processor, as for the licences; the Python packages are those that
`pip install hyperslab` brings, with the versions that the tests ran with. maturin would write such a list too, with the
folders of the machine.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

import notices
from build import MACHINES

ROOT = notices.ROOT


def crates() -> list[dict[str, Any]]:
    """The crates that are linked, each one once."""
    every = {(one["name"], one["version"]): one for machine in MACHINES for one in notices.packages(machine)}
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:cargo/{one['name']}@{one['version']}",
            "purl": f"pkg:cargo/{one['name']}@{one['version']}",
            "name": one["name"],
            "version": one["version"],
            "licenses": [{"expression": one["license"].replace("/", " OR ")}] if one["license"] else [],
        }
        for _, one in sorted(every.items())
    ]


def packages(project: dict[str, Any]) -> list[dict[str, Any]]:
    """The Python packages that are always installed, in the versions for the newest Python."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    locked = dict(line.partition(" ;")[0].split("==") for line in lines if "python_version <" not in line)
    names = [re.match(r"[\w.-]+", one).group().lower() for one in project["dependencies"]]  # type: ignore[union-attr]
    versions = {name.lower(): version for name, version in locked.items()}
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{versions[name]}",
            "purl": f"pkg:pypi/{name}@{versions[name]}",
            "name": name,
            "version": versions[name],
        }
        for name in names
    ]


def bom() -> dict[str, Any]:
    """The whole list."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    itself = f"pkg:pypi/hyperslab@{version}"
    parts = [*crates(), *packages(project)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, itself).urn,
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": itself,
                "purl": itself,
                "name": "hyperslab",
                "version": version,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": parts,
        "dependencies": [{"ref": itself, "dependsOn": [one["bom-ref"] for one in parts]}],
    }


def main() -> None:
    """Write the list."""
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    made = bom()
    target.write_text(json.dumps(made, indent=1) + "\n")
    print(f"{target}: {len(made['components'])} parts")


if __name__ == "__main__":
    main()
