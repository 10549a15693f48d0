"""A notebook shows the progress of work that takes long, and nothing of short work."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import hyperslab as hs
from hyperslab import progress
from hyperslab.progress import Progress, progress_text, watched


class Notebook:
    """What IPython shows below a cell."""

    def __init__(self, *, has_kernel: bool = True) -> None:
        self.shown: list[dict[str, str]] = []
        self.awaited = ""
        self.drawn = threading.Event()  # once the awaited words are drawn
        self.display = SimpleNamespace(display=self._display)
        self._shell = SimpleNamespace(kernel=object()) if has_kernel else SimpleNamespace()

    def get_ipython(self) -> Any:
        return self._shell

    def _display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        self.update(bundle, raw=True)
        return self

    def update(self, bundle: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(bundle)
        if self.awaited in bundle["text/plain"]:
            self.drawn.set()


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    made = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", made)  # type: ignore[arg-type]
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 0.01)
    monkeypatch.setattr(progress, "DRAWN_EVERY_SECONDS", 0.01)
    return made


@watched("chunks")
def work(waits_for: threading.Event, say: int, *, progress: Progress | None = None) -> bool:
    if progress is not None and say:
        progress("<temperature>", say, 8)
    waits_for.wait(20)
    return progress is not None


def test_long_work_is_drawn_and_then_cleared(notebook: Notebook) -> None:
    notebook.awaited = "2 of"
    assert work(notebook.drawn, 2)
    *_, first, last = notebook.shown
    assert "2 of at most 8 chunks" in first["text/plain"]
    assert "<temperature>" in first["text/plain"]
    assert '<progress value="2" max="8">' in first["text/html"]
    assert "&lt;temperature&gt;" in first["text/html"]
    assert last == {"text/plain": "", "text/html": ""}


def test_work_that_says_nothing_is_drawn_too(notebook: Notebook) -> None:
    assert work(notebook.drawn, 0)
    assert "starting" in notebook.shown[0]["text/plain"]
    assert "<progress></progress>" in notebook.shown[0]["text/html"]


def test_short_work_shows_nothing(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 60.0)
    done = threading.Event()
    done.set()
    assert work(done, 2)
    assert not notebook.shown


def test_a_given_progress_and_other_programs_are_left_alone(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    done = threading.Event()
    done.set()
    assert work(done, 2, progress=lambda *one: said.append(one))
    monkeypatch.setitem(sys.modules, "IPython", Notebook(has_kernel=False))  # type: ignore[arg-type]
    assert not work(done, 2)
    monkeypatch.delitem(sys.modules, "IPython")
    assert not work(done, 2)
    assert said == [("<temperature>", 2, 8)]
    assert not notebook.shown


def test_index_and_convert_are_watched(notebook: Notebook, tmp_path: Any) -> None:
    """They still take what they took, and answer the same."""
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = range(1000)
    assert len(hs.index(tmp_path / "a.h5").roots) == 1
    hs.convert(tmp_path / "a.h5", tmp_path / "b.h5")
    assert hs.open(tmp_path / "b.h5")["x"][:].tolist() == [*range(1000)]
    assert "hyperslab-progress" not in {one.name for one in threading.enumerate()}


def test_what_is_left_is_said_if_it_is_known() -> None:
    assert progress_text("sst", 2, 8, "MB", 10.0) == "2 of at most 8 MB, about 30 s left: sst"
    assert progress_text("sst", 0, 8, "MB", 10.0) == "0 of at most 8 MB: sst"
    assert progress_text("sst", 5, 0, "files", 10.0) == "5 files: sst"
    assert progress_text("a\x1b[1m", 0, 0, "files", 1.0) == r"a\x1b[1m"
