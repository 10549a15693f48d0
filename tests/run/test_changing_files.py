"""Files that change while a program reads them: no stale bytes, and no failure that libhdf5 alone would not have."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from run_programs import Ran, python, without

SHAPE = (200, 40, 50)
VALUES = np.random.default_rng(1).integers(0, 1000, SHAPE, "i4")
# `change` writes other elements into one chunk, in place, as another process or mapped memory would.
PROGRAM = """
    import hashlib, mmap, os, shutil, sys, h5py, numpy as np
    path = sys.argv[1] + ".copy"
    shutil.copy(sys.argv[1], path)
    def show(found):
        print(hashlib.sha256(np.ascontiguousarray(found)).hexdigest()[:16], np.shape(found), flush=True)
    def place(name, number):
        with h5py.File(path) as opened:
            found = opened[name].id.get_chunk_info(number)
            return found.byte_offset, found.size
    def change(offset, bytes, keeps_time):
        found = os.stat(path)
        file = os.open(path, os.O_WRONLY)
        os.pwrite(file, bytes, offset)
        os.close(file)
        if keeps_time:
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    def attempt(read):
        try:
            show(read())
        except OSError as error:
            print("OSError", str(error)[:20], flush=True)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as made:
        made.create_dataset("packed", data=VALUES, chunks=(8, 40, 50), compression="gzip")
        made.create_dataset("checked", data=VALUES, chunks=(8, 40, 50), fletcher32=True)
        made.create_dataset("chunked", data=VALUES, chunks=(8, 40, 50))
    return tmp_path / "a.h5"


def check(code: str, path: Path, **environment: str) -> Ran:
    ran, expected = python(PROGRAM + code, path, **environment), without(PROGRAM + code, path)
    assert (ran.status, ran.out.decode()) == (expected.returncode, expected.stdout.decode()), ran.errors
    assert said(ran.errors) == said(expected.stderr.decode())
    return ran


def said(errors: str) -> list[str]:
    """Without the lines of the program, which a traceback of `python -c` has since Python 3.13."""
    return [line for line in errors.splitlines() if not line.startswith("    ")]


def test_a_chunk_that_is_rewritten_and_the_time_put_back_is_not_stale(file: Path) -> None:
    """Every chunk was read in part, so ours has it decoded; libhdf5's cache has room for few."""
    code = """
    offset, nbytes = place("chunked", 3)
    read = h5py.File(path, rdcc_nbytes=1)
    array = read["checked"], read["chunked"], read["packed"]
    before = [np.array(array[1][:, 3, k]) for k in (1, 2, 3)]
    change(offset, bytes(nbytes), True)
    after = [np.array(array[1][:, 3, k]) for k in (1, 2, 3)]
    for one in (*before, *after):
        show(one)
    """
    ran = check(code, file, HYPERSLAB_SERVE_SMALL="1")
    assert (ran.served, ran.passed("changed")) == (3, 3), ran.counts


def test_what_a_file_was_when_it_was_opened_counts(file: Path) -> None:
    """libhdf5 has read its superblock and root group; what was changed before the first read is libhdf5's to judge."""
    code = """
    offset, nbytes = place("packed", 3)
    read = h5py.File(path)
    change(offset + nbytes // 2, b"damage", False)
    attempt(lambda: read["packed"][:])
    """
    ran = check(code, file)
    assert (ran.served, ran.passed("changed")) == (0, 1), ran.counts


def test_a_forked_child_knows_that_a_file_has_changed(file: Path) -> None:
    code = """
    read = h5py.File(path)
    show(read["packed"][:])
    os.utime(path)
    show(read["packed"][:])
    if os.fork() == 0:
        show(read["packed"][:])
        show(read["checked"][:])
        os._exit(0)
    os.wait()
    show(read["packed"][1:])
    """
    ran = check(code, file)
    assert (ran.served, ran.passed("changed")) == (1, 4), ran.counts


def test_a_forked_child_finds_that_a_file_has_changed_since_its_parent_opened_it(file: Path) -> None:
    code = """
    read = h5py.File(path)
    os.utime(path)
    if os.fork() == 0:
        show(read["packed"][:])
        os._exit(0)
    os.wait()
    """
    ran = check(code, file)
    assert (ran.served, ran.passed("changed")) == (0, 1), ran.counts


@pytest.mark.parametrize("name", ["packed", "checked", "chunked"])
@pytest.mark.parametrize("how", ["os.truncate(path, 3000)", "change(2000, b'\\xff' * 5_000_000, False)"])
def test_what_libhdf5_would_have_in_its_cache_is_answered(file: Path, name: str, how: str) -> None:
    """The array fits into libhdf5's cache, so a program that had read it does not notice that the file is gone."""
    code = f"""
    os.environ["NAME"] = "{name}"
    read = h5py.File(path, rdcc_nbytes=16 << 20)
    array = read["{name}"]
    show(array[:])
    {how}
    show(array[:])
    show(array[50:150, 3])
    show(array[7, 3, 4])
    show(array.astype("f8")[16:24])
    show(np.array([array[k] for k in range(0, 200, 8)]))
    """
    ran = check(code, file)
    assert ran.served == 1, ran.counts


def test_zeros_behind_the_end_of_a_truncated_file_are_not_what_libhdf5_has_in_its_cache(tmp_path: Path) -> None:
    """The index of the chunks is still there, so libhdf5 reads on without an error."""
    with h5py.File(tmp_path / "a.h5", "w") as made:
        made.create_dataset("chunked", data=VALUES, chunks=(8, 40, 50))
    code = """
    read = h5py.File(path, rdcc_nbytes=16 << 20)
    array = read["chunked"]
    show(array[:])
    os.truncate(path, 5000)
    show(array[:])
    show(array[7, 3, 4])
    """
    assert check(code, tmp_path / "a.h5").served == 1


def test_what_libhdf5_would_have_dropped_from_its_cache_is_read_anew(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as made:
        made.create_dataset("chunked", data=np.tile(VALUES, (2, 1, 1)), chunks=(8, 40, 50))
    code = """
    offset, nbytes = place("chunked", 0)
    read = h5py.File(path, rdcc_nbytes=2 << 20)
    array = read["chunked"]
    show(array[:160])
    change(offset, bytes(nbytes), False)
    show(array[:8])
    show(array[160:])
    show(array[:8])
    show(array[0, 3, 4])
    """
    assert check(code, tmp_path / "a.h5").served == 1


def test_a_forked_child_is_answered_as_its_parent(file: Path) -> None:
    code = """
    read = h5py.File(path, rdcc_nbytes=16 << 20)
    array = read["packed"]
    show(array[:])
    os.truncate(path, 3000)
    if os.fork() == 0:
        show(array[:])
        show(array[5])
        os._exit(0)
    os.wait()
    show(array[:])
    """
    check(code, file)


def test_what_libhdf5_would_not_have_fails_with_its_own_error(file: Path) -> None:
    code = """
    read = h5py.File(path, rdcc_nbytes=1 << 20)
    array = read["packed"]
    show(array[:8])
    os.truncate(path, 3000)
    show(array[:8])
    show(array[3, 4])
    attempt(lambda: array[100:])
    attempt(lambda: array[100, 3, 4])
    attempt(lambda: read["checked"][:])
    """
    check(code, file)


def test_a_file_without_a_name_is_served_all_the_same(file: Path) -> None:
    code = """
    read = h5py.File(path)
    show(read["packed"][:])
    os.link(path, path + ".link")
    show(read["packed"][1:])
    os.unlink(path)
    os.unlink(path + ".link")
    show(read["packed"][2:])
    """
    assert check(code, file).served == 3


def test_a_file_that_the_process_maps_to_write_to_is_libhdf5s(file: Path) -> None:
    """The system notes when mapped memory is first written to, and not the times after that."""
    code = """
    offset, nbytes = place("chunked", 3)
    read = h5py.File(path, rdcc_nbytes=1)
    array = read["chunked"]
    show(array[:, 3, 1])
    descriptor = os.open(path, os.O_RDWR)
    memory = mmap.mmap(descriptor, 0)
    os.close(descriptor)
    for k in range(5):
        memory[offset + k * 8000 : offset + k * 8000 + 4000] = bytes([k + 1]) * 4000
        show(array[:, 3, 1])
    """
    ran = check(code, file, HYPERSLAB_SERVE_SMALL="1")
    assert (ran.served, ran.passed("writable")) == (1, 5), ran.counts
