"""Store profiles are saved and loaded completely; any other file is refused with the reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up import made_up_store_profile

from hyperslab.errors import NotAStoreProfile, Untrained
from hyperslab.model import BASELINES, EXTENDED, load_store_profile, price
from hyperslab.model.store_profile import default_path

pytestmark = pytest.mark.usefixtures("prepared_workers")


def test_what_is_loaded_predicts_the_same(tmp_path: Path) -> None:
    made = made_up_store_profile(tmp_path)
    made.save(tmp_path / "new" / "folder" / "profile.json")
    found = load_store_profile(tmp_path / "new" / "folder" / "profile.json")
    assert found.environment == made.environment
    assert found.libraries == ("hdf5", "zarr")
    for model in (EXTENDED, EXTENDED.without("knee"), *BASELINES):
        for cell in made.cells[::17]:
            costs = [price(cell.variables, p.coefficients(cell.library, cell.operation, model)) for p in (made, found)]
            assert costs[1].seconds == pytest.approx(costs[0].seconds, rel=1e-6)
            assert costs[1].high == pytest.approx(costs[0].high, rel=1e-4)


def test_a_profile_from_before_openings_were_counted(tmp_path: Path) -> None:
    text = made_up_store_profile(tmp_path, ("hdf5",)).to_json()
    (tmp_path / "new.json").write_text(text)
    document = json.loads(text)
    place = document["variables"].index("n_again")
    del document["variables"][place]
    for cell in document["cells"]:
        del cell["variables"][place]
    (tmp_path / "old.json").write_text(json.dumps(document))
    old, new = (load_store_profile(tmp_path / name) for name in ("old.json", "new.json"))
    assert old.cells == new.cells


def test_a_profile_from_before_later_calls_were_counted_prices_what_they_find_as_it_did(tmp_path: Path) -> None:
    document = json.loads(made_up_store_profile(tmp_path, ("hdf5",)).to_json())
    place = document["variables"].index("s_later")
    for row in (document["variables"], *(cell["variables"] for cell in document["cells"])):
        del row[place]
    (tmp_path / "old.json").write_text(json.dumps(document))
    found = load_store_profile(tmp_path / "old.json").coefficients("hdf5", "read")
    made = {one.term.variable: one.value for one in found.each}
    assert made["s_later"] == made["s_covered"] > 0
    cell = load_store_profile(tmp_path / "old.json").cells[0].variables._replace(s_covered=1e9, s_later=0.0)
    costs = [price(each, found) for each in (cell, cell._replace(s_covered=0.0, s_later=1e9))]
    assert (costs[0].seconds, costs[0].high) == pytest.approx((costs[1].seconds, costs[1].high))


def test_a_library_that_was_not_trained(tmp_path: Path) -> None:
    with pytest.raises(Untrained, match="has no flat, read; it has hdf5 read, hdf5 write"):
        made_up_store_profile(tmp_path, ("hdf5",)).coefficients("flat", "read")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda d: d.update(version=1), "version 1, but this program reads version 6"),
        (lambda d: d.update(schema="other"), "not a store profile"),
        (lambda d: d.pop("fits"), "damaged"),
        (lambda d: d.update(variables=["n_memcpy"]), "damaged"),
        (lambda d: d["fits"][0].update(covariance=[[1.0]]), "damaged"),
        (lambda d: d["fits"][0]["coefficients"][0].update(value=-1.0), "damaged"),
        (lambda d: d["fits"][0]["coefficients"][0].update(value=float("nan")), "damaged"),
        (lambda d: d["environment"].update(colour="red"), "damaged"),
        (lambda d: d.update(cells=7), "damaged"),
        (lambda d: d["cells"][0].update(variables=[1]), "damaged"),
    ],
)
def test_other_files_are_refused(change: Any, what: str, tmp_path: Path) -> None:
    document = json.loads(made_up_store_profile(tmp_path, ("hdf5",)).to_json())
    change(document)
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(document))
    with pytest.raises(NotAStoreProfile, match=what):
        load_store_profile(path)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"[" * 100_000, b"\xff\xfe", b"3"])
def test_what_is_no_json(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_bytes(content)
    with pytest.raises(NotAStoreProfile, match=r"profile\.json"):
        load_store_profile(path)


def test_a_file_that_is_not_there_says_how_to_make_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotAStoreProfile, match="hyperslab calibrate -o"):
        load_store_profile(tmp_path / "none.json")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "hyperslab" / "store-profile.json"
    with pytest.raises(NotAStoreProfile, match="does not exist"):
        load_store_profile()


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    text = made_up_store_profile(tmp_path, ("hdf5",)).to_json()
    path = tmp_path / "profile.json"
    for length in range(0, len(text) - 2, len(text) // 40):
        path.write_text(text[:length])
        with pytest.raises(NotAStoreProfile):
            load_store_profile(path)


def test_another_machine_is_noticed(tmp_path: Path) -> None:
    made = made_up_store_profile(tmp_path)
    assert made.differs_from_this_machine(tmp_path) == []
    elsewhere = replace(made.environment, cpu="Another", kernel="1.0", libraries={"zarr3": "zarr 0.1"})
    found = replace(made, environment=elsewhere).differs_from_this_machine(tmp_path)
    assert len(found) == 3
    assert "against Another" in found[0]
