"""What a wheel contains, and what it says of the software in it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import build  # noqa: E402
import notices  # noqa: E402
import sbom  # noqa: E402

needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")


@needs_cargo
@pytest.mark.slow  # cargo reads the manifests of all crates
@pytest.mark.parametrize("machine", build.MACHINES)
def test_the_notices_name_every_linked_crate_and_its_licence(machine: str) -> None:
    text = notices.notices(machine)
    command = ["cargo", "tree", "--locked", "--edges", "normal,no-proc-macro", "--target", notices.target_of(machine)]
    command += ["--prefix", "none", "--format", "{p}|{l}"]
    command += [word for name in notices.LINKED for word in ("--package", name)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    crates = {line.replace(" (*)", "") for line in listed if line and "hyperslab" not in line.split()[0]}
    assert len(crates) > 100
    for crate in crates:
        name, version = crate.partition("|")[0].split()[:2]
        assert f"\n{name} {version.removeprefix('v')}: " in text, crate
        assert "GPL" not in crate or " OR " in crate, crate


@needs_cargo
def test_the_module_and_the_library_to_preload_are_built_of_the_same_crates() -> None:
    """With another feature in one of them, a crate is compiled twice, and so are all that need it."""
    crates = [crates_of("hyperslab-python"), crates_of("hyperslab-preload")]
    shared = {crate for crate, _ in crates[0]} & {crate for crate, _ in crates[1]}
    assert len(shared) > 100
    assert [each for each in crates[0] ^ crates[1] if each[0] in shared] == []


def crates_of(package: str) -> set[tuple[str, str]]:
    """The crates that a package needs, and their features."""
    command = ["cargo", "tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}|{f}"]
    command += ["--package", package]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return {(crate, features) for crate, _, features in (line.replace(" (*)", "").partition("|") for line in listed)}


@needs_cargo
def test_the_standard_library_is_named_with_its_copyright() -> None:
    own, *others = notices.standard_library()
    assert own[0].startswith("the Rust standard library 1.")
    for name, licence, _ in others:
        assert "GPL" not in licence, name
        assert not name.startswith("windows"), name


def test_texts_that_differ_in_spaces_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [("one 1", "MIT", ["you  may\nuse it"]), ("two 2", "MIT", ["you may use it"]), ("three 3", "MIT", [])]
    monkeypatch.setattr(notices, "crates", lambda machine: iter(entries))
    monkeypatch.setattr(notices, "standard_library", lambda: iter(()))
    text = notices.notices("x86_64")
    assert text.count("use it") == 1
    assert f"{notices.RULE}\none 1, two 2\n{notices.RULE}" in text
    assert "three 3: MIT; its sources have no file with the text" in text


def made_wheel(folder: Path, name: str = "hyperslab-1.0-cp311-abi3-manylinux_2_28_x86_64.whl", **more: str) -> Path:
    files = dict.fromkeys(("hyperslab/py.typed", "hyperslab/NOTICES.txt", "hyperslab/_core.abi3.so"), "")
    files["hyperslab/libhyperslab_preload.so"] = "GLIBC_2.34"  # which it looks up where there is one
    files["hyperslab-1.0.data/data/share/man/man1/hyperslab.1"] = files["hyperslab-1.0.dist-info/licenses/LICENSE"] = ""
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, content in {**files, **more}.items():
            archive.writestr(path, content)
    return folder / name


def test_a_wheel_that_is_not_what_it_should_be_is_refused(tmp_path: Path) -> None:
    assert build.faults(made_wheel(tmp_path)) == []
    wrong = {"tests/test_it.py": "", "hyperslab/_core.abi3.so": f"{ROOT}/crates/x.rs"}
    assert build.faults(made_wheel(tmp_path, **wrong)) == [
        "tests/test_it.py is in it",
        f"hyperslab/_core.abi3.so contains {ROOT}",
    ]
    other = "\x7fELF" + "\0" * 14 + "\x3e\0"
    foreign = made_wheel(
        tmp_path, "hyperslab-1.0-cp311-abi3-manylinux_2_28_aarch64.whl", **{"hyperslab/_core.abi3.so": other}
    )
    assert build.faults(foreign) == ["hyperslab/_core.abi3.so is for x86_64"]
    named = made_wheel(tmp_path, "hyperslab-1.0-cp311-cp311-linux_x86_64.whl")
    assert build.faults(named) == [f"its name is {named.name}"]
    with zipfile.ZipFile(tmp_path / "empty-abi3-manylinux.whl", "w"):
        pass
    assert build.faults(tmp_path / "empty-abi3-manylinux.whl") == [f"{one} is not in it" for one in build.SHIPPED]


def test_a_wheel_for_newer_systems_than_it_promises_is_refused() -> None:
    said = 'is consistent with\nthe following platform tag: "manylinux_2_{}_aarch64".'
    assert build.oldest_system(said.format(17)) == build.oldest_system(said.format(28)) == []
    assert "manylinux_2_34_aarch64" in build.oldest_system(said.format(34))[0]
    assert build.oldest_system("cannot be read") == ["auditwheel: cannot be read"]


def test_no_path_of_this_machine_is_left_to_the_compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "registry" / "src" / "where-1a2b").mkdir(parents=True)
    monkeypatch.setenv("CARGO_HOME", str(tmp_path))
    monkeypatch.setenv("RUSTFLAGS", "-C target-cpu=x86-64-v2")
    rust = build.flags("aarch64")["CARGO_ENCODED_RUSTFLAGS"].split("\x1f")
    assert rust[:2] == ["-C", "target-cpu=x86-64-v2"]
    assert rust[-1] == f"--remap-path-prefix={tmp_path}/registry/src/where-1a2b=crates"
    assert f"--remap-path-prefix={ROOT}=hyperslab" in rust


def test_a_crate_without_a_text_is_named_too(tmp_path: Path) -> None:
    (tmp_path / "LICENSE-MIT").write_text("you may\r\n")
    (tmp_path / "license.rs").write_text("fn main() {}")
    (tmp_path / "zstd").mkdir()
    (tmp_path / "zstd" / "COPYING").write_text("also")
    package = {"manifest_path": str(tmp_path / "Cargo.toml")}
    assert list(notices.texts(package)) == ["you may", "also"]


@needs_cargo
@pytest.mark.slow  # cargo reads the manifests of all crates, for each processor
def test_the_list_of_parts_has_the_crates_of_each_processor_once() -> None:
    listed = [one["purl"] for one in sbom.bom()["components"]]
    assert len(listed) == len(set(listed))
    wanted = {f"pkg:cargo/{one['name']}@{one['version']}" for name in build.MACHINES for one in notices.packages(name)}
    assert wanted == {purl for purl in listed if purl.startswith("pkg:cargo/")}
    assert any(purl.startswith("pkg:pypi/numpy@") for purl in listed)


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
