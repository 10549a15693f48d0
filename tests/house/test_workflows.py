"""The workflows under .github: what they run can be run here, and what a release needs is asked before it begins."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import release  # noqa: E402

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+)(?: [\w-]+)*:(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
# What a job does besides: hand files to the platform.
OTHERS = (".ci/run", "mkdir boms", "gh release create")


def jobs(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text())["jobs"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_job_calls_a_target_of_the_makefile(path: Path) -> None:
    commands = [step["run"] for job in jobs(path).values() for step in job.get("steps", []) if "run" in step]
    for command in commands:
        words = command.split()
        if words[0] == "make":
            assert set(words[1:]) <= TARGETS, command
        else:
            assert command.startswith(OTHERS), command


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_job_may_run_for_hours_or_write_more_than_it_must(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}
    for name, job in jobs(path).items():
        assert "uses" in job or "pages" in job.get("permissions", {}) or job["timeout-minutes"] <= 60, name


def test_the_workflows_are_linted() -> None:
    if not (program := shutil.which("actionlint", path=str(ROOT / ".stamps"))):
        pytest.skip("actionlint is not installed: make review, where there is Go")
    done = subprocess.run([program, *map(str, WORKFLOWS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "Cargo.toml").write_text('[workspace.package]\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2027-01-31\n")
    (tmp_path / "CITATION.cff").write_text("title: hyperslab\nversion: 1.2.0\n")
    return tmp_path


def test_a_release_that_agrees_with_itself(repository: Path) -> None:
    assert list(release.faults(repository, "v1.2.0", ["v1.1.0"])) == []
    assert list(release.faults(repository, None, ["v1.1.0"])) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("CHANGELOG.md", "## 1.2.0 - 2027-01-31", "## 1.2.0", "no heading '## 1.2.0 - YEAR-MONTH-DAY'"),
        ("CITATION.cff", "1.2.0", "1.1.0", "names version 1.1.0, and Cargo.toml 1.2.0"),
        ("Cargo.toml", "1.2.0", "1.3.0", "the tag is v1.2.0, and Cargo.toml says 1.3.0"),
    ],
)
def test_what_stands_against_a_release(repository: Path, name: str, old: str, new: str, said: str) -> None:
    path = repository / name
    path.write_text(path.read_text().replace(old, new))
    assert any(said in fault for fault in release.faults(repository, "v1.2.0", []))


def test_a_version_is_released_once(repository: Path) -> None:
    assert list(release.faults(repository, None, ["v1.2.0"])) == ["v1.2.0 is released: raise the version in Cargo.toml"]


def test_the_conda_recipe_asks_for_what_the_wheel_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    recipe = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text())
    needed = {"".join(line.split()) for line in recipe["requirements"]["run"]} - {"python"}
    assert needed == set(project["dependencies"])
    assert recipe["context"]["version"] == version
    assert recipe["about"]["homepage"] == project["urls"]["Source"]
