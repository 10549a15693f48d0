"""Programs and libraries of others, unmodified: the same output and the same files, with reads that we serve."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from run_programs import Ran, python, run, without

SHAPE = (40, 120, 200)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A NetCDF-4 file with coordinates, as nco and cdo expect it."""
    netcdf = pytest.importorskip("netCDF4")
    path = tmp_path / "a.nc"
    with netcdf.Dataset(path, "w") as made:
        for name, length in zip(("time", "lat", "lon"), SHAPE, strict=True):
            made.createDimension(name, None if name == "time" else length)
            made.createVariable(name, "f8", (name,))[:] = np.linspace(-80, 80, length)
        made["time"].setncatts({"units": "days since 2000-01-01", "calendar": "standard"})
        made["lat"].units, made["lon"].units = "degrees_north", "degrees_east"
        made["lat"].standard_name, made["lon"].standard_name = "latitude", "longitude"
        x = made.createVariable("x", "f4", ("time", "lat", "lon"), zlib=True, shuffle=True, chunksizes=(4, 120, 100))
        x[:] = np.random.default_rng(1).random(SHAPE).round(2)
    return path


def content(out: Path, name: str) -> bytes | None:
    """What a tool wrote. h5repack also writes the time, which h5dump does not show."""
    if not out.exists():
        return None
    if name != "h5repack":
        return out.read_bytes()
    return subprocess.run(["h5dump", "-p", out], capture_output=True, check=True, timeout=120).stdout


def both(folder: Path, name: str, *words: object) -> Ran:
    """Run a tool with and without us: its output, and the file `out` if it writes one, must agree."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed: tests/system-packages.txt")
    out = folder / "out"
    out.unlink(missing_ok=True)
    expected = subprocess.run([name, *map(str, words)], capture_output=True, cwd=folder, timeout=120)
    written = content(out, name)
    out.unlink(missing_ok=True)
    ran = run(name, *words, cwd=folder)
    assert (ran.status, ran.out) == (expected.returncode, expected.stdout), ran.errors
    assert ran.errors == expected.stderr.decode().rstrip("\n")
    assert content(out, name) == written
    assert ran.status == 0, ran.errors
    return ran


def test_h5dump(file: Path) -> None:
    assert both(file.parent, "h5dump", "-d", "x", "-b", "-o", "out", file).served >= 1
    both(file.parent, "h5dump", "-d", "x", "-s", "3,5,7", "-c", "9,90,150", file)


@pytest.mark.parametrize("words", [["-v", "x"], ["-v", "x", "-d", "lon,3,190,2"], ["--fl_fmt=classic", "-v", "x"]])
def test_ncks(file: Path, words: list[str]) -> None:
    # Without -h it writes the date and its arguments into the file.
    assert both(file.parent, "ncks", "-h", "-O", *words, file, "out").served >= 1


def test_ncra(file: Path) -> None:
    assert both(file.parent, "ncra", "-h", "-O", "-v", "x", file, "out").served >= 1


@pytest.mark.parametrize("operator", ["-fldmean", "-timmean", "-zonmax"])
def test_cdo(file: Path, operator: str) -> None:
    assert both(file.parent, "cdo", "-s", "outputf,%.9g,1", operator, "-selname,x", file).served >= 1


def test_a_c_program_of_the_system(file: Path, tmp_path: Path) -> None:
    libraries = sorted(Path("/usr/lib").glob("*/libhdf5_serial.so.*"))
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not libraries:
        pytest.skip("no C compiler, or no libhdf5 of the system: tests/system-packages.txt")
    source, program = tmp_path / "a.c", tmp_path / "program"
    source.write_text("""
        #include <stdio.h>
        long H5Fopen(const char *, unsigned, long), H5Dopen2(long, const char *, long);
        int H5open(void), H5Dread(long, long, long, long, long, void *), H5Dclose(long), H5Fclose(long);
        extern long H5T_NATIVE_FLOAT_g;
        static float values[40 * 120 * 200];
        int main(int count, char **words) {
            H5open();
            long file = H5Fopen(words[1], 0, 0), array = H5Dopen2(file, "x", 0);
            int done = H5Dread(array, H5T_NATIVE_FLOAT_g, 0, 0, 0, values);
            double sum = 0;
            for (int k = 0; k < 40 * 120 * 200; k++) sum += values[k] * (k % 7);
            printf("%d %.17g %d\\n", done, sum, H5Dclose(array) + H5Fclose(file));
            return 0;
        }
    """)
    subprocess.run([compiler, "-o", program, source, libraries[0]], check=True)
    expected = subprocess.run([program, file], capture_output=True, text=True, timeout=120)
    ran = run(program, file)
    assert expected.stdout.startswith("0 ")
    assert (ran.status, ran.out.decode(), ran.served) == (0, expected.stdout, 1)


def compare(code: str, *words: object, served: int) -> None:
    ran, expected = python(code, *words), without(code, *words)
    assert (ran.status, ran.out.decode()) == (0, expected.stdout.decode()), ran.errors + expected.stderr.decode()
    assert ran.served >= served, ran.counts


def test_pytables(tmp_path: Path) -> None:
    tables = pytest.importorskip("tables")
    path = tmp_path / "a.h5"
    random = np.random.default_rng(1)
    with tables.open_file(path, "w") as made:
        filters = tables.Filters(complevel=1, complib="zlib", shuffle=True)
        made.create_carray("/", "c", obj=random.random((800, 500)), filters=filters, chunkshape=(100, 500))
        records = np.zeros(50_000, [("n", "i4"), ("x", "f8"), ("s", "S8")])
        records["x"], records["n"] = random.random(50_000), np.arange(50_000)
        made.create_table("/", "t", obj=records, filters=filters)
        made.create_array("/", "big", obj=random.integers(0, 9, (500, 900)).astype(">i4"))
    code = """
    import hashlib, sys, tables, numpy as np
    def show(found):
        print(hashlib.sha256(np.ascontiguousarray(found)).hexdigest(), found.shape, found.dtype)
    with tables.open_file(sys.argv[1]) as file:
        show(file.root.c[:])
        show(file.root.c[5:700:3, 10:])
        show(file.root.t[:])
        show(file.root.t.read(100, 40_000, field="x"))
        print(sum(row["x"] for row in file.root.t.where("n % 7 == 3")))
        show(file.root.big[:])
    """
    compare(code, path, served=4)


def test_pandas(tmp_path: Path) -> None:
    pytest.importorskip("tables")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "a.h5"
    random = np.random.default_rng(1)
    frame = pandas.DataFrame(random.random((40_000, 6)), columns=list("abcdef"))
    frame.to_hdf(path, key="fixed", complevel=1)
    frame.to_hdf(path, key="table", format="table", complevel=1)
    code = """
    import sys, pandas
    for key in ("fixed", "table"):
        found = pandas.read_hdf(sys.argv[1], key)
        print(pandas.util.hash_pandas_object(found).sum(), found.shape)
    print(pandas.read_hdf(sys.argv[1], "table", where="index > 30000").sum().sum())
    """
    compare(code, path, served=2)


def test_h5netcdf(file: Path) -> None:
    pytest.importorskip("h5netcdf")
    pytest.importorskip("xarray")
    code = """
    import hashlib, sys, xarray
    with xarray.open_dataset(sys.argv[1], engine="h5netcdf") as opened:
        print(hashlib.sha256(opened["x"].values).hexdigest())
        print(float(opened["x"].mean("time").sum()))
    """
    compare(code, file, served=1)


def test_anndata(tmp_path: Path) -> None:
    pytest.importorskip("anndata")
    path = tmp_path / "a.h5ad"
    made = """
    import sys, anndata, numpy as np
    anndata.settings.allow_write_nullable_strings = True  # as pandas 3 has them
    anndata.AnnData(np.random.default_rng(1).random((2000, 300), "f4")).write_h5ad(sys.argv[1], compression="gzip")
    """
    assert without(made, path).returncode == 0
    code = """
    import hashlib, sys, anndata
    print(hashlib.sha256(anndata.read_h5ad(sys.argv[1]).X).hexdigest())
    """
    compare(code, path, served=1)


def test_dask_with_threads_and_processes(file: Path) -> None:
    pytest.importorskip("dask")
    pytest.importorskip("xarray")
    code = """
    import sys, xarray, dask
    if __name__ == "__main__":
        for scheduler in ("threads", "synchronous"):
            with xarray.open_dataset(sys.argv[1], engine="netcdf4", chunks={"time": 8}) as opened:
                with dask.config.set(scheduler=scheduler):
                    print(float(opened["x"].sum().compute()))
    """
    compare(code, file, served=4)


def test_a_file_of_h5py_alone(tmp_path: Path) -> None:
    """h5repack reads by `H5Dread` too, and writes a file of its own."""
    with h5py.File(tmp_path / "a.h5", "w", track_order=False) as made:
        values = np.random.default_rng(1).integers(0, 99, (300, 400), "i4")
        made.create_dataset("v", data=values, chunks=(50, 400), compression="gzip", track_times=False)
    both(tmp_path, "h5repack", "-f", "NONE", tmp_path / "a.h5", "out")
