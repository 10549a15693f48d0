"""What is not ours goes to libhdf5 untouched, with its own errors."""

from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from run_programs import python, without

VALUES = np.random.default_rng(1).integers(0, 1000, (400, 3000), dtype="i4")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("passing") / "a.h5"
    with h5py.File(path, "w") as made:
        made.create_dataset("packed", data=VALUES, chunks=(50, 600), compression="gzip")
        made.create_dataset("text", data=["a" * (k % 50) for k in range(5000)], chunks=(500,), compression="gzip")
        made.create_dataset("fixed", data=VALUES[:, :2000].astype("S4"), chunks=(50, 500), compression="gzip")
    return path


@pytest.fixture
def file(made_once: Path, tmp_path: Path) -> Path:
    """A file of the test's own."""
    return shutil.copy(made_once, tmp_path / "a.h5")


def check(code: str, path: Path, reason: str | None, served: int = 0) -> None:
    expected = without(code, path)  # first, as the code may change the file in the same way each time
    ran = python(code, path)
    assert (ran.status, ran.out) == (expected.returncode, expected.stdout), ran.errors
    assert ran.errors == expected.stderr.decode().rstrip("\n")
    assert ran.served == served, ran.counts
    if reason is not None:
        assert ran.passed(reason) >= 1, ran.counts


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("writable", 'file = h5py.File(sys.argv[1], "r+"); print(file["packed"][:].sum())'),
        ("driver", 'file = h5py.File(sys.argv[1], driver="core"); print(file["packed"][:].sum())'),
        ("driver", 'file = h5py.File(sys.argv[1], driver="stdio"); print(file["packed"][:].sum())'),
        ("driver", 'file = h5py.File(open(sys.argv[1], "rb")); print(file["packed"][:].sum())'),
        ("conversion", 'file = h5py.File(sys.argv[1]); print(file["packed"].astype("i2")[:].sum())'),
        ("pointers", 'file = h5py.File(sys.argv[1]); print(file["text"][:].sum())'),
    ],
)
def test_reads_of_libhdf5(file: Path, reason: str, code: str) -> None:
    check(f"import sys, h5py\n{code}", file, reason)


def test_a_file_that_is_open_for_writing_elsewhere_in_the_process(file: Path) -> None:
    code = """
    import os, sys, h5py
    with h5py.File(sys.argv[1]) as read:
        print(read["packed"][:].sum())
        writer = os.open(sys.argv[1], os.O_RDWR)
    with h5py.File(sys.argv[1]) as read:
        print(read["packed"][:].sum())
        os.close(writer)
    with h5py.File(sys.argv[1]) as read:
        print(read["packed"][:].sum())
    """
    check(code, file, "writable", served=2)


@pytest.mark.parametrize("way", ["the file itself", "a hard link", "a symbolic link"])
def test_a_file_that_had_a_writer_stays_libhdf5s_until_it_is_opened_again(file: Path, way: str) -> None:
    """What libhdf5 has in memory may be older than the file by then, and only libhdf5 knows what its answer is."""
    link = file.with_name("link.h5")
    if way == "a hard link":
        link.hardlink_to(file)
    elif way == "a symbolic link":
        link.symlink_to(file)
    code = """
    import os, sys, h5py
    path = sys.argv[1]
    folder = os.path.dirname(path)
    link = os.path.join(folder, "link.h5")
    with h5py.File(path) as read:
        print(read["packed"][:].sum())
        writer = os.open(link if os.path.exists(link) else path, os.O_RDWR)
        h5py.File(os.path.join(folder, "other.h5"), "w").close()
        print(read["packed"][1:].sum())
        os.close(writer)
        h5py.File(os.path.join(folder, "other.h5"), "w").close()
        print(read["packed"][2:].sum())
    with h5py.File(path) as read:
        print(read["packed"][3:].sum())
    """
    expected, ran = without(code, file), python(code, file)
    assert (ran.status, ran.out, ran.errors) == (0, expected.stdout, "")
    assert (ran.served, ran.passed("writable")) == (2, 2), ran.counts


def test_a_file_that_another_libhdf5_of_the_process_writes(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[formats]'")
    path = tmp_path / "a.nc"
    with netcdf.Dataset(path, "w") as made:
        made.createDimension("row", 400), made.createDimension("column", 3000)
        made.createVariable("packed", "i4", ("row", "column"), zlib=True, chunksizes=(50, 600))[:] = VALUES
    code = """
    import sys, h5py, netCDF4
    with h5py.File(sys.argv[1], locking=False) as read:
        print(read["packed"][:].sum())
        writer = netCDF4.Dataset(sys.argv[1], "a")
        print(read["packed"][1:].sum())
        writer.close()
        print(read["packed"][2:].sum())
    """
    ran = python(code, path, HDF5_USE_FILE_LOCKING="FALSE")
    sums = [str(int(VALUES[k:].sum())) for k in range(3)]
    assert (ran.status, ran.out.decode().split(), ran.errors) == (0, sums, "")
    assert (ran.served, ran.passed("writable")) == (1, 2), ran.counts


def test_a_file_that_changes(file: Path) -> None:
    code = """
    import os, sys, h5py
    with h5py.File(sys.argv[1]) as read:
        print(read["packed"][:].sum())
        os.utime(sys.argv[1])
        print(read["packed"][:].sum())
        print(read["packed"][1:].sum())
    """
    check(code, file, "changed", served=1)


def test_a_truncated_file(file: Path) -> None:
    code = """
    import os, sys, h5py, shutil
    path = sys.argv[1] + ".copy"
    shutil.copy(sys.argv[1], path)
    with h5py.File(path) as read:
        print(read["packed"][:10].sum())
        os.truncate(path, 20000)
        try:
            read["packed"][:]
        except OSError as error:
            print(str(error)[:20])
        else:
            print("read")
    os.remove(path)
    """
    check(code, file, None, served=1)


def test_mounted_files_links_and_user_blocks(file: Path, tmp_path: Path) -> None:
    """An array is read from the file that it is in, by whatever way the program came to it."""
    for name, value, block in (("parent", 1, 0), ("child", 2, 0), ("block", 3, 1024)):
        with h5py.File(tmp_path / f"{name}.h5", "w", userblock_size=block) as made:
            made.create_dataset("x", data=np.full((200, 200), value, "i4"), chunks=(50, 200), compression="gzip")
            made.create_group("inner")
            made["hard"] = made["x"]
            made["other"] = h5py.ExternalLink("parent.h5", "/x")
    code = """
    import os, sys, h5py
    os.chdir(os.path.dirname(sys.argv[1]))
    parent, child, block = (h5py.File(f"{name}.h5") for name in ("parent", "child", "block"))
    print(child["other"][:].sum(), block["hard"][:].sum(), block["other"][:].sum())
    h5py.h5f.mount(parent["inner"].id, b".", child.id)
    print(parent["inner/x"][:].sum(), parent["inner/hard"][:].sum(), parent["x"][:].sum())
    child.close()
    print(parent["inner/x"][:].sum())
    """
    check(code, file, None, served=7)


def test_damage(file: Path) -> None:
    with h5py.File(file) as opened:
        offset = opened["packed"].id.get_chunk_info(3).byte_offset
    with file.open("r+b") as opened:
        opened.seek(offset + 2)
        opened.write(b"\xff" * 50)
    code = """
    import sys, h5py
    with h5py.File(sys.argv[1]) as read:
        try:
            read["packed"][:]
        except OSError as error:
            print(error)
    """
    check(code, file, "failed")


def test_wrong_arguments_give_the_errors_of_libhdf5(file: Path) -> None:
    code = """
    import sys, h5py, numpy as np
    from h5py import h5s
    with h5py.File(sys.argv[1]) as read:
        array = read["packed"]
        out = np.zeros(400 * 3000, "i4")
        space = h5s.create_simple((400 * 3000 - 1,))
        try:
            array.id.read(space, array.id.get_space(), out)
        except Exception as error:
            print(type(error), error)
        far = array.id.get_space()
        far.select_hyperslab((0, 0), (400, 3000))
        far.offset_simple((5, 5))
        try:
            array.id.read(h5s.create_simple((400 * 3000,)), far, out)
        except Exception as error:
            print(type(error), error)
    """
    check(code, file, None)


def test_memory_outside_of_its_dataspace_is_not_written(file: Path) -> None:
    """libhdf5 refuses such memory only when it reads; we must not write behind the program's array."""
    code = """
    import sys, h5py, numpy as np
    from h5py import h5s
    with h5py.File(sys.argv[1]) as read:
        array = read["packed"]
        block = np.full(3 * 400 * 3000, 7, "i4")
        memory = h5s.create_simple((400 * 3000,))
        memory.select_hyperslab((400 * 1500,), (400 * 3000,))
        try:
            array.id.read(memory, array.id.get_space(), block[: 400 * 3000])
        except Exception as error:
            print(type(error), error)
        print((block[400 * 3000 :] == 7).all())
        box = h5s.create_simple((400, 3000))
        box.select_hyperslab((0, 1), (400, 2999))
        box.offset_simple((0, 5))
        space = array.id.get_space()
        space.select_hyperslab((0, 0), (400, 2999))
        try:
            array.id.read(box, space, block[: 400 * 3000])
        except Exception as error:
            print(type(error), error)
        print((block == 7).all())
    """
    check(code, file, "memory")


def test_memory_stays_as_it_is_where_nothing_is_filled_in(file: Path) -> None:
    with h5py.File(file, "w") as made:
        for name, written in (("holes", 100), ("nothing", 0), ("all", 400)):
            one = made.create_dataset(
                name, (400, 3000), "i4", chunks=(50, 600), compression="gzip", fill_time="never", fillvalue=3
            )
            one[:written] = VALUES[:written]
        made.create_dataset("flat", (400, 3000), "i4", fill_time="never")
    code = """
    import sys, h5py, numpy as np
    with h5py.File(sys.argv[1]) as read:
        for name in ("holes", "nothing", "flat", "all"):
            out = np.full((400, 3000), 7, "i4")
            read[name].read_direct(out)
            print(name, out.sum(), (out == 7).sum())
    """
    check(code, file, "layout", served=1)


def test_signals_that_the_program_itself_causes(file: Path) -> None:
    """A program may handle writes to memory that it protects. If we blocked them, the system would end it at once."""
    code = """
    import ctypes, faulthandler, mmap, sys, h5py, numpy as np
    faulthandler.enable()
    memory = mmap.mmap(-1, 400 * 3000 * 4)
    out = np.frombuffer(memory, "i4").reshape(400, 3000)
    array = h5py.File(sys.argv[1])["packed"]
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(out.ctypes.data), ctypes.c_size_t(len(memory)), mmap.PROT_READ)
    array.id.read(h5py.h5s.create_simple((400, 3000)), array.id.get_space(), out)
    """
    # With two threads, both may fault, and then the second one ends the program while the handler still writes.
    expected, ran = without(code, file), python(code, file, HYPERSLAB_THREADS="1")
    assert b"Segmentation fault" in expected.stderr
    assert "Segmentation fault" in ran.errors
    assert ran.status == expected.returncode


def test_a_selection_that_was_moved(file: Path) -> None:
    code = """
    import sys, h5py, numpy as np
    from h5py import h5s
    with h5py.File(sys.argv[1]) as read:
        array = read["packed"]
        out = np.zeros(100 * 2000, "i4")
        moved = array.id.get_space()
        moved.select_hyperslab((0, 0), (100, 2000))
        moved.offset_simple((7, 9))
        array.id.read(h5s.create_simple((100 * 2000,)), moved, out)
        print(out.sum(), out[:5])
    """
    check(code, file, "selection")


def test_forked_children_are_served(file: Path) -> None:
    code = """
    import multiprocessing, sys, h5py
    def total(path):
        with h5py.File(path) as read:
            return int(read["packed"][:].sum())
    if __name__ == "__main__":
        print(total(sys.argv[1]))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(total, [sys.argv[1]] * 4))
    """
    expected, ran = without(code, file), python(code, file)
    assert (ran.status, ran.out, ran.errors) == (0, expected.stdout, "")
    # The pool ends its processes by a signal: reads of the last tenth of a second may not be counted.
    assert ran.served >= 2
    assert ran.counts["processes"] >= 2


def test_a_forked_child_reads_what_its_parent_opened(file: Path) -> None:
    code = """
    import os, sys, h5py
    read = h5py.File(sys.argv[1])
    print(read["packed"][:].sum(), flush=True)
    child = os.fork()
    if child == 0:
        print(read["packed"][1:].sum(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(read["packed"][2:].sum())
    """
    check(code, file, None, served=3)


def test_properties_in_which_libhdf5_reports_what_it_did(file: Path) -> None:
    """h5py keeps one list of properties for each array; libhdf5 writes into it at each read of its own."""
    code = """
    import sys, h5py
    with h5py.File(sys.argv[1]) as read:
        array = read["packed"]
        print(array[[1, 3], :5].sum())
        print(array[[k for k in range(0, 400, 3)]].sum())
    """
    check(code, file, "small", served=1)
