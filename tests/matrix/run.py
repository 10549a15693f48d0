"""Smoke-tests the wheel with each line of versions.txt, in an environment made for it: `make matrix`.

The wheel is built, or given: `python tests/matrix/run.py --wheel dist/hyperslab-...whl`. An sdist may be given too
(with `--only '3.12 plain'`, because pip builds it for each line). A Python that is not on this machine, and that
neither `uv` nor Debian's packages provide, is named and left out. What was found is written to results.md beside this
file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "cli"))
import debian_python  # noqa: E402
import plain_install  # noqa: E402

ROOT = HERE.parents[1]
RESULTS = HERE / "results.md"
NAMES = ("python", "numpy", "zarr", "h5py", "libhdf5", "xarray", "pandas")
NEWEST = ["h5netcdf"]  # of whatever version fits
ABSENT = "left out"


def environments() -> list[list[str]]:
    """The lines of versions.txt, as words."""
    lines = (HERE / "versions.txt").read_text().splitlines()
    return [line.split() for line in lines if line.strip() and not line.startswith("#")]


def lowest(extra: str | None = None) -> dict[str, str]:
    """The oldest versions of libraries that pyproject.toml allows, by name: of those that are always needed, or of an
    extra. Where two extras name one library, the newer version counts.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, str] = {}
    for requirement in project["optional-dependencies"][extra] if extra else project["dependencies"]:
        name, extras, version = re.match(r"([\w.-]+)(?:\[(.+)\])?(?:>=([\d.]+))?", requirement).groups()  # type: ignore[union-attr]
        if name == "hyperslab":
            for inner in extras.split(","):
                found = _newer(found, lowest(inner))
        else:
            found = _newer(found, {f"{name}{f'[{extras}]' if extras else ''}": version})
    return found


def _newer(one: dict[str, str], other: dict[str, str]) -> dict[str, str]:
    """Both, with the newer of two versions."""
    known = {name: [versions[name] for versions in (one, other) if name in versions] for name in one | other}
    return {name: max(some, key=lambda version: [*map(int, version.split("."))]) for name, some in known.items()}


def packages_of(words: list[str]) -> list[str]:
    """What pip installs for a line: `lowest` and `lowest=EXTRA` stand for the oldest versions that we say work, except
    for libraries that the line names.
    """
    oldest: dict[str, str] = {}
    given: list[str] = []
    for word in words:
        kind, _, extra = word.partition("=")
        if kind == "lowest":
            oldest = _newer(oldest, lowest(extra or None))
        else:
            given.append(word)
    named = {word.partition("==")[0] for word in given}
    return [*(f"{name}=={version}" for name, version in oldest.items() if name not in named), *given]


def interpreter(python: str) -> str | None:
    """The program of a version of Python: of this machine, of pyenv, by uv, or of Debian's newest packages."""
    found = shutil.which(f"python{python}")
    if found and _is(found, python):
        return found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for program in sorted(pyenv.glob(f"{python}.*/bin/python")):
        if _is(str(program), python):
            return str(program)
    if shutil.which("uv"):
        done = subprocess.run(["uv", "python", "find", python], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
    return debian_python.program(python)


def _is(program: str, python: str) -> bool:
    said = subprocess.run([program, "--version"], capture_output=True, text=True)
    return said.returncode == 0 and said.stdout.startswith(f"Python {python}.")


def built(folder: Path) -> Path:
    """The wheel of this checkout, as users get it."""
    subprocess.run([sys.executable, str(ROOT / "packaging" / "build.py"), "--out", str(folder)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(program: str, place: Path, packages: list[str]) -> str | None:
    """Make an environment with packages. Returns why not, if that is so."""
    subprocess.run([program, "-m", "venv", "--clear", "--without-pip", str(place)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "--disable-pip-version-check"]
    install = [*pip, "install", "--quiet"]
    done = subprocess.run([*install, "--prefer-binary", *packages], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return ([line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines())[-1]


def tried(words: list[str], wheel: Path, folder: Path) -> dict[str, dict[str, str]]:
    """The versions and outcomes of one environment; the reason if it cannot be made."""
    python, packages = words[0], packages_of(words[1:])
    program = interpreter(python)
    if program is None:
        return {"versions": {"python": python}, "outcomes": {ABSENT: f"no Python {python} on this machine"}}
    inside = str(folder / "environment" / "bin" / "python")
    if wrong := installed(program, folder / "environment", [str(wheel), *packages, *NEWEST]):
        return {"versions": {"python": python}, "outcomes": {"environment": wrong}}
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HDF5_PLUGIN_PATH")}
    command = [inside, "-W", "ignore", str(HERE / "smoke.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=plain, timeout=600)
    if done.returncode:
        return {"versions": {"python": python}, "outcomes": {"import": (done.stderr.splitlines() or ["?"])[-1]}}
    found: dict[str, dict[str, str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def plainly(words: list[str], wheel: Path, folder: Path) -> dict[str, dict[str, str]]:
    """Every command in an environment that has nothing but the wheel and what it depends on."""
    python, packages = words[0], packages_of(words[1:])
    program = interpreter(python)
    if program is None:
        return {"versions": {"python": python}, "outcomes": {ABSENT: f"no Python {python} on this machine"}}
    work = folder / "files"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    plain_install.make_files(work)
    inside = str(folder / "plain" / "bin" / "python")
    if wrong := installed(program, folder / "plain", [str(wheel), *packages]):
        return {"versions": {"python": python}, "outcomes": {"environment": wrong}}
    done = subprocess.run([inside, plain_install.__file__, str(work)], capture_output=True, text=True,
                          env=plain_install.environment(work), timeout=600)  # fmt: skip
    outcomes = {}
    for line in done.stdout.splitlines():
        found = json.loads(line)
        outcomes[found["command"]] = plain_install.fault(**found) or "passed"
    if set(outcomes) != set(plain_install.COMMANDS):
        outcomes["all commands"] = done.stderr[-300:]
    listed = [inside, "-c", "import json, platform; from importlib.metadata import version; "
              "print(json.dumps({'python': platform.python_version(), 'numpy': version('numpy')}))"]  # fmt: skip
    return {"versions": json.loads(subprocess.check_output(listed)), "outcomes": outcomes}


def table(rows: list[tuple[list[str], dict[str, dict[str, str]]]]) -> str:
    """The results as a page."""
    lines = [
        "# What the wheel was tried with",
        "",
        "`make matrix` makes one environment for each line of `versions.txt`, installs the wheel in it, and runs",
        "`smoke.py`: HDF5, h5py's interface, Zarr folders, zarr-python with our pipeline, HDF5 as a store of",
        "zarr-python, xarray's engine, references, versions, collections and the command line. A row shows the",
        "versions that pip chose. Only zarr 3.2 and newer can treat missing chunks as errors; for older versions that",
        "part does nothing.",
        "",
        "A row without zarr and h5py is an environment with nothing but the wheel and what it depends on: there, every",
        "command works or names the extra that it needs (`tests/cli/plain_install.py`).",
        "",
        f"| {' | '.join(NAMES)} | result |",
        f"|{'---|' * (len(NAMES) + 1)}",
    ]
    for words, found in rows:
        wrong = {name: said for name, said in found["outcomes"].items() if said != "passed"}
        said = "; ".join(f"{name}: {what[:200]}" for name, what in wrong.items()) or f"{len(found['outcomes'])} passed"
        asked = dict(zip(NAMES, words[:1], strict=False)) | found["versions"]
        lines.append(f"| {' | '.join(asked.get(name, '') for name in NAMES)} | {said} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--only", default="", help="environments whose line contains this; writes no results")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        wheel = (asked.wheel or built(Path(folder))).absolute()
        for words in environments():
            if asked.only in " ".join(words):
                is_plain = words[1:2] == ["plain"]
                found = (
                    plainly([words[0], *words[2:]], wheel, Path(folder))
                    if is_plain
                    else tried(words, wheel, Path(folder))
                )
                print(" ".join(words), "->", json.dumps(found), flush=True)
                rows.append((words, found))
    if not asked.only:
        RESULTS.write_text(table(rows))
    outcomes = [one for _, found in rows for one in found["outcomes"].items()]
    sys.exit(any(said != "passed" for name, said in outcomes if name != ABSENT))


if __name__ == "__main__":
    main()
