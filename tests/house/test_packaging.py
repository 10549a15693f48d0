"""What a wheel says of the software in it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import notices  # noqa: E402

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")


@pytest.mark.slow  # cargo reads the manifests of all crates
def test_the_notices_name_every_linked_crate_and_its_licence() -> None:
    text = notices.notices()
    command = ["cargo", "tree", "--locked", "--edges", "normal,no-proc-macro", "--target", notices.PLATFORM]
    command += ["--prefix", "none", "--format", "{p}|{l}"]
    command += [word for name in notices.LINKED for word in ("--package", name)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    crates = {line.replace(" (*)", "") for line in listed if line and "hyperslab" not in line.split()[0]}
    assert len(crates) > 100
    for crate in crates:
        name, version = crate.partition("|")[0].split()[:2]
        assert f"\n{name} {version.removeprefix('v')}: " in text, crate
        assert "GPL" not in crate or " OR " in crate, crate


def test_a_crate_without_a_text_is_named_too(tmp_path: Path) -> None:
    (tmp_path / "LICENSE-MIT").write_text("you may\r\n")
    (tmp_path / "license.rs").write_text("fn main() {}")
    (tmp_path / "zstd").mkdir()
    (tmp_path / "zstd" / "COPYING").write_text("also")
    package = {"manifest_path": str(tmp_path / "Cargo.toml")}
    assert list(notices.texts(package)) == ["you may", "also"]


def test_only_what_is_linked_is_listed() -> None:
    def node(name: str, *deps: tuple[str, str | None]) -> dict[str, object]:
        return {"id": name, "deps": [{"pkg": to, "dep_kinds": [{"kind": kind}]} for to, kind in deps]}

    names = ("hyperslab-python", "linked", "deeper", "builds", "tests")
    packages = [{"id": name, "name": name, "version": "1", "source": "registry"} for name in names]
    packages[0]["source"] = None  # type: ignore[assignment]
    nodes = [
        node("hyperslab-python", ("linked", None), ("builds", "build"), ("tests", "dev")),
        node("linked", ("deeper", None)), node("deeper"), node("builds"), node("tests"),
    ]  # fmt: skip
    found = notices.linked(json.loads(json.dumps({"packages": packages, "resolve": {"nodes": nodes}})))
    assert [one["name"] for one in found] == ["deeper", "linked"]
