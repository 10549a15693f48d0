"""The training design has nothing of an evaluation and nothing impossible, and isolates each phase somewhere."""

from __future__ import annotations

from itertools import pairwise

from hyperslab.model.counting import count_operations
from hyperslab.model.predict import why_not
from hyperslab.model.terms import EXTENDED
from hyperslab.model.training import SIZES, design, smaller

SMALL = smaller(SIZES["quick"], 4)


def test_all_can_be_done_and_differs() -> None:
    for size in (*SIZES.values(), SMALL):
        cells = design(size)
        assert [why_not(cell) for cell in cells if why_not(cell)] == []
        assert len(
            {
                (cell.workload.model_dump_json(), str(cell.layout), cell.library, cell.cache, cell.field)
                for cell in cells
            }
        ) == len(cells)
        keys = [cell.file_key for cell in cells]
        assert len(set(keys)) == 1 + sum(a != b for a, b in pairwise(keys)), "files are shared"


def test_nothing_is_an_evaluations() -> None:
    for cell in (cell for size in SIZES.values() for cell in design(size)):
        assert 69_649 % cell.layout.chunk_shape[0] or cell.layout.chunk_shape[0] == 1
        is_drawn = cell.workload.accesses[0].select == "list"
        assert len(cell.workload.array.shape) == 2 or is_drawn
        assert cell.workload.array.shape[-1] != 64 or is_drawn
        assert all(access.shape != [1000, 8] for access in cell.workload.accesses)


def test_every_term_is_seen_and_phases_stand_alone() -> None:
    cells = design(SMALL)
    for library, operation in (("hdf5", "read"), ("hdf5", "write"), ("zarr", "read"), ("zarr", "write")):
        counted = [
            (cell, count_operations(cell).get(operation))
            for cell in cells
            if cell.library.name == library and cell.writes == (operation == "write")
        ]
        found = [(cell, each) for cell, each in counted if each is not None]
        unseen = ["n_absent", "n_far", "n_made", "n_encode", "s_encode", "s_encode_out", "s_encode_alone"]
        unseen += ["s_fresh"] * (operation == "write")
        for term in EXTENDED.terms(library, operation, ("deflate", "zstd")):
            if term.variable not in unseen:
                assert any(term.value(each, cell.layout.codec) > 0 for cell, each in found), (library, term.name)
        for cell, each in found:
            if cell.cache == "library-warm":
                assert each.n_rdisk == each.n_cache == each.n_array == 0
            if cell.cache == "page-warm":
                assert each.n_rdisk == each.n_rindex == 0
            if cell.cache == "cold" and operation == "read":
                assert each.n_rdisk > 0
