"""Runs a page of the documentation as its reader would: every block, from top to bottom, in one folder and one Python.

| block | what happens |
|---|---|
| ```python | runs; its names stay for the next block. If it begins with `# NAME.py`, it is saved first |
| ```sh | each command runs in bash |
| ```console | each line that begins with `$ ` runs; the other lines are what it printed for us |
| ```yaml, ```bash | saved under the name in its first comment, or under the `name:` of a study |
| ```text, ```py | does not run: it needs what no test has, or a command runs it; a script is saved |
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from command_line import run_hyperslab

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("how-to/*.md"))]
# An address at which no test has a scheduler; tests/house/test_clusters_page.py runs such commands.
NOBODY = "tcp://10.0.0.1"
# What a test does not run, by the beginning of the command.
LEFT_OUT = {
    "pip install": "hyperslab is installed; tests/matrix/follow_readme.py installs it",
    "make ": "CI runs README's two commands; the others take minutes",
    "hyperslab calibrate": "takes minutes; a store profile is given instead",
    "hyperslab evaluate": "takes minutes",
    "hyperslab predict boxes.yaml --profile bucket.json": "needs a bucket",
    "sudo ": "needs root",
}


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """The language and the text of each block, in order."""
    yield from re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def name_of(language: str, text: str) -> str | None:
    """The name under which a block is saved."""
    if named := re.match(r"(?:#!.*\n)?# ([\w-]+\.(?:py|yaml|sh))\b", text):
        return named[1]
    if language == "yaml" and (named := re.search(r"^(?:name|FILE_NAME): (\S+)", text, flags=re.MULTILINE)):
        return f"{named[1]}.yaml"
    return None


def commands(language: str, text: str) -> Iterator[str]:
    """The commands of a block that a test runs."""
    lines = text.replace("\\\n", " ").splitlines()
    if language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    for line in lines:
        if line.strip() and not line.startswith(("#", *LEFT_OUT)) and NOBODY not in line:
            yield line


def has_commands(page: Path) -> bool:
    """Whether a page starts programs, which takes seconds."""
    return any(language in ("sh", "console") and [*commands(language, text)] for language, text in blocks(page))


def run_page(page: Path, folder: Path, environment: dict[str, str] | None = None, **replaced: str) -> dict[str, object]:
    """Run a page in `folder`, which must be the working directory. Returns the names of its Python.

    `replaced` maps names of the page, such as the address of a scheduler, to what stands for them in the test.
    """
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    around = {**os.environ, "PATH": path, "COLUMNS": "100", **(environment or {})}
    around.pop("HDF5_PLUGIN_PATH", None)  # which netCDF4 sets when a test imports it, for its own libhdf5
    names: dict[str, object] = {"__name__": "__main__"}
    for language, text in blocks(page):
        for name, stand_in in replaced.items():
            text = text.replace(name, stand_in)
        if name := name_of(language, text):
            (folder / name).write_text(text)
        if language == "python":
            exec(compile(text, page.name, "exec"), names)
        elif language in ("sh", "console"):
            for command in commands(language, text):
                done = _run(command, folder, around)
                assert done.returncode == 0, f"{page.name}: {command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        else:
            assert language in ("yaml", "text", "py", "bash"), f"{page.name}: what is ```{language}?"
    return names


def _run(command: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command as bash would; a plain call of hyperslab needs neither bash nor all imports anew."""
    if command.startswith("hyperslab ") and not set(command) & set("|<>&;$`*?~#()"):
        return run_hyperslab(*shlex.split(command)[1:], cwd=folder, env=environment, timeout=900)
    words = ["bash", "-ec", command]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
