"""A process in which only what `pip install hyperslab` brings can be imported, and which runs many commands in turn.

`python plain_install.py FOLDER < commands`: a command a line. Prints one line of JSON for each: the exit status, and
what the command printed. A command that ends in a traceback has the status -1.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import sys
import traceback
from importlib.metadata import packages_distributions
from typing import Any

# The packages in `dependencies`, and what these need.
CORE = {
    "numpy", "pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection", "yaml", "_yaml",
    "typer", "click", "shellingham", "rich", "pygments", "markdown_it", "mdurl", "annotated_doc", "colorama",
    "hyperslab",
}  # fmt: skip


class Blocked:
    """A finder that says of all other packages that they are not installed."""

    names = frozenset(packages_distributions()) - CORE - sys.stdlib_module_names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def run(words: list[str]) -> tuple[int, str]:
    from hyperslab.cli import main

    out = io.StringIO()
    sys.argv = ["hyperslab", *words]
    status = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:
            traceback.print_exc()
            status = -1
    return status, out.getvalue()


def main() -> None:
    sys.meta_path.insert(0, Blocked())
    os.chdir(sys.argv[1])
    for line in sys.stdin:
        status, said = run(shlex.split(line))
        print(json.dumps({"command": line.strip(), "status": status, "said": said}), flush=True)


if __name__ == "__main__":
    main()
