"""Follows a page word for word, as somebody does who has just installed Python: every block, from top to bottom.

It makes an empty environment and an empty folder, runs every command of README.md there, `pip install` too, and prints
each one with its output. The status is 1 if a command fails.

- `python tests/matrix/follow_readme.py --wheel dist/hyperslab-....whl`: where the page installs a clone, pip takes the
  wheel, and everything else from the package index.
- `python tests/matrix/follow_readme.py --clone`: pip builds and installs this clone; the libraries are those of this
  Python. What takes minutes takes less time: a store profile is given, and `bench` has half a minute.

`make` is left out: CI runs the same commands.

| block | what happens |
|---|---|
| ```python | runs in one Python, from block to block. If it begins with `# NAME.py`, it is saved first |
| ```sh | runs in bash, command by command |
| ```console | each line that begins with `$ ` runs |
| others | are printed; a script is saved |
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_SECONDS = 1200
INSTALLS = "pip install '.[all]'"
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
        elif language == "sh" and line.strip() and not line.startswith(("#", "make ")):
            yield line


class Reader:
    """Somebody with a new environment and an empty folder."""

    def __init__(self, folder: Path, python: str, wheel: Path | None) -> None:
        self.folder, self.wheel, self.failed = folder / "work", wheel, list[str]()
        self.folder.mkdir()
        place = folder / "environment"
        subprocess.run([python, "-m", "venv", "--clear", str(place)], check=True)
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HYPERSLAB", "HDF5"))
        }
        self.around = kept | {
            "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "HOME": str(folder), "VIRTUAL_ENV": str(place),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_QUIET": "1", "PIP_PREFER_BINARY": "1", "COLUMNS": "120",
        }  # fmt: skip
        if wheel is None:
            self._sees_libraries_of_this_python(place)
            self.around |= {name: str(Path.home() / kind) for name, kind in
                            (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")) if name not in kept}  # fmt: skip
        else:
            self._gets_the_wheel(folder, wheel)
        self._python: subprocess.Popen[str] | None = None

    def _gets_the_wheel(self, folder: Path, wheel: Path) -> None:
        # pip finds the wheel in its folder. As a constraint with its path, pip 23 refuses it together with extras.
        (folder / "constraints.txt").write_text(f"hyperslab=={wheel.name.split('-')[1]}\n")
        links = f"{os.environ.get('PIP_FIND_LINKS', '')} {wheel.absolute().parent}".strip()
        self.around |= {"PIP_CONSTRAINT": str(folder / "constraints.txt"), "PIP_FIND_LINKS": links}

    def _sees_libraries_of_this_python(self, place: Path) -> None:
        """pip takes them for installed. Their own .pth files, such as an editable hyperslab's, do nothing here."""
        (packages,) = place.glob("lib/python*/site-packages")
        (packages / "libraries.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")

    def _run(self, command: str) -> int:
        """Run a command, print what it says, and return its status."""
        folder = self.folder
        if command.startswith(INSTALLS) and self.wheel is None:
            folder = ROOT
        elif command.startswith(INSTALLS):
            command = command.replace("'.[all]'", "'hyperslab[all]'")
        print(f"$ {command}", flush=True)
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=self.around, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=MOST_SECONDS)  # fmt: skip
        print(done.stdout, flush=True)
        return done.returncode

    def follow(self, language: str, text: str) -> None:
        """Do what a block says."""
        if named := re.match(r"# ([\w-]+\.py)\b", text):
            (self.folder / named[1]).write_text(text)
        if language == "python":
            self._run_python(text)
        self.failed += [command for command in commands(language, text) if self._run(command)]

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


def followed(page: Path, python: str, wheel: Path | None, instead: dict[str, str] | None = None) -> list[str]:
    """Follow a page and print everything, with other words for those in `instead`. Returns the commands that failed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        reader = Reader(Path(made), python, wheel)
        try:
            for language, text in blocks(page):
                for word, other in (instead or {}).items():
                    text = text.replace(word, other)
                reader.follow(language, text)
        finally:
            reader.close()
    return reader.failed


def less_time(folder: Path) -> dict[str, str]:
    """What stands for the commands that take minutes."""
    sys.path[:0] = [str(ROOT / "tests" / "model"), str(ROOT / "tests" / "house")]
    from made_up import made_up_store_profile, with_codecs

    profile = folder / "store.json"
    with_codecs(made_up_store_profile(folder, ("hdf5", "zarr"), slow=3.0), "deflate", "zstd").save(profile)
    saves = f'python -c "import shutil; from hyperslab.model.store_profile import default_path as place; ' \
            f"place().parent.mkdir(parents=True); shutil.copy('{profile}', place())\""  # fmt: skip
    return {"hyperslab calibrate --quick": saves, "--minutes 3 ": "--minutes 0.5 "}


def main() -> None:
    """Follow a page, and end with an error if a command failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--wheel", type=Path)
    what.add_argument("--clone", action="store_true")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--page", type=Path, default=ROOT / "README.md")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        instead = less_time(Path(folder)) if asked.clone else {}
        failed = followed(asked.page, asked.python, asked.wheel, instead)
    if failed:
        sys.exit("\n".join(["failed:", *failed]))


if __name__ == "__main__":
    main()
