"""Follows a page word for word, as somebody does who has just installed Python: every block, from top to bottom.

`python tests/matrix/follow_readme.py --wheel dist/hyperslab-....whl` makes an empty environment and an empty folder,
runs every command of README.md there, `pip install` too, and prints each one with its output. Where the page installs
hyperslab, pip takes the wheel. The status is 1 if a command fails.

| block | what happens |
|---|---|
| ```python | runs in one Python, from block to block. If it begins with `# NAME.py`, it is saved first |
| ```sh | runs in bash, command by command |
| ```console | each line that begins with `$ ` runs |
| others | are printed |
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_SECONDS = 1200
# The Python that runs the blocks: it reads them as JSON, one a line, and says how each ended.
RUNNER = """
import json, sys, traceback
names = {"__name__": "__main__"}
for line in sys.stdin:
    try:
        exec(compile(json.loads(line), "README.md", "exec"), names)
        said = "ok"
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        said = "failed"
    print(f"\\x00{said}", flush=True)
"""


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """The language and the text of each block."""
    yield from re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def commands(language: str, text: str) -> Iterator[str]:
    """The commands of a block for a shell."""
    for line in text.replace("\\\n", " ").splitlines():
        if language == "console" and line.startswith("$ "):
            yield line.removeprefix("$ ")
        elif language == "sh" and line.strip() and not line.startswith("#"):
            yield line


class Reader:
    """Somebody with a new environment and an empty folder."""

    def __init__(self, folder: Path, python: str, wheel: Path) -> None:
        self.folder, self.failed = folder / "work", list[str]()
        self.folder.mkdir()
        place = folder / "environment"
        subprocess.run([python, "-m", "venv", "--clear", str(place)], check=True)
        # pip finds the wheel in its folder. As a constraint with its path, pip 23 refuses it together with extras.
        (folder / "constraints.txt").write_text(f"hyperslab=={wheel.name.split('-')[1]}\n")
        links = f"{os.environ.get('PIP_FIND_LINKS', '')} {wheel.absolute().parent}".strip()
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HYPERSLAB", "HDF5"))
        }
        self.around = kept | {
            "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "HOME": str(folder), "VIRTUAL_ENV": str(place),
            "PIP_CONSTRAINT": str(folder / "constraints.txt"), "PIP_FIND_LINKS": links,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_QUIET": "1", "PIP_PREFER_BINARY": "1", "COLUMNS": "120",
        }  # fmt: skip
        self._python: subprocess.Popen[str] | None = None

    def follow(self, language: str, text: str) -> None:
        """Do what a block says."""
        if named := re.match(r"# ([\w-]+\.py)\b", text):
            (self.folder / named[1]).write_text(text)
        if language == "python":
            self._run_python(text)
        for command in commands(language, text):
            print(f"$ {command}", flush=True)
            done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.around, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=MOST_SECONDS)  # fmt: skip
            print(done.stdout, flush=True)
            if done.returncode:
                self.failed.append(command)

    def _run_python(self, text: str) -> None:
        print("".join(f">>> {line}\n" for line in text.splitlines()), end="", flush=True)
        if self._python is None:
            self._python = subprocess.Popen(["python", "-c", RUNNER], cwd=self.folder, env=self.around, text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        self._python.stdin.write(json.dumps(text) + "\n")
        self._python.stdin.flush()
        for line in self._python.stdout:
            if line.startswith("\x00"):
                self.failed += [] if line == "\x00ok\n" else [text.splitlines()[0]]
                break
            print(line, end="", flush=True)
        else:
            self.failed.append(text.splitlines()[0])
        print(flush=True)

    def close(self) -> None:
        """End the Python."""
        if self._python is not None:
            self._python.communicate()


def followed(page: Path, python: str, wheel: Path) -> list[str]:
    """Follow a page and print everything. Returns the commands that failed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        reader = Reader(Path(made), python, wheel)
        try:
            for language, text in blocks(page):
                reader.follow(language, text)
        finally:
            reader.close()
    return reader.failed


def main() -> None:
    """Follow a page, and end with an error if a command failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--page", type=Path, default=ROOT / "README.md")
    asked = parser.parse_args()
    failed = followed(asked.page, asked.python, asked.wheel)
    if failed:
        sys.exit("\n".join(["failed:", *failed]))


if __name__ == "__main__":
    main()
