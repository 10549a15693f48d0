"""The pictures of gallery.md, made by the page's own blocks: `make docs` runs this.

The blocks run in an empty folder, as tests/house/test_docs.py runs those of every page, with a store profile that is
made up. What they draw into files is taken, and so are the figures that a notebook would show of their objects.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from figure import audit_svg, remote_svg

DOCS = Path(__file__).parent
PICTURES = DOCS / "images" / "gallery"
TESTS = DOCS.parent / "tests"
# The name of a picture, the object of the page that draws it in a notebook, and which of its figures it is.
SHOWN = (("trace.svg", "trace", 1), ("layouts.svg", "advice", 0), ("advice.svg", "advice", 1))
STYLE = "--muted: #626a76; --rule: #c3c8cf; --grid: #e6e8ec; font: 11px system-ui, sans-serif; fill: #626a76"


def alone(page: str, number: int) -> str:
    """A figure of a notebook as a picture of its own."""
    drawn = re.findall(r"<svg (.*?</svg>)", page, flags=re.DOTALL)[number]
    whole = re.search(r'viewBox="0 0 (\S+) (\S+)"', drawn)
    assert whole is not None
    paper = f'<rect width="{whole[1]}" height="{whole[2]}" fill="#ffffff"/>'
    head, _, inside = drawn.partition(">")
    return f'<svg xmlns="http://www.w3.org/2000/svg" style="{STYLE}" {head}>{paper}{inside}\n'


def make(folder: Path) -> dict[str, str]:
    """The name and content of each picture; the page runs in `folder`."""
    sys.path[:0] = [str(TESTS), str(TESTS / "house"), str(TESTS / "model")]
    from made_up import made_up_store_profile, with_codecs
    from pages import run_page

    from hyperslab.model.store_profile import default_path

    home, work = folder / "home", folder / "work"
    work.mkdir()
    os.environ["XDG_DATA_HOME"] = str(home)
    default_path().parent.mkdir(parents=True)
    with_codecs(made_up_store_profile(folder, ("hdf5", "zarr"), slow=3.0), "deflate", "zstd").save(default_path())
    with chdir(work):
        names = run_page(DOCS / "gallery.md", work)
        found = {path.name: path.read_text() for path in work.glob("*.svg")}
    found |= {name: alone(names[which]._repr_html_(), number) for name, which, number in SHOWN}  # type: ignore[attr-defined]
    return found | {"audit.svg": audit_svg(names["before"], names["after"]), "remote.svg": remote_svg()}


def main() -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        made = make(Path(folder))
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    for name, content in made.items():
        (PICTURES / name).write_text(content)
        print(PICTURES / name)


if __name__ == "__main__":
    main()
