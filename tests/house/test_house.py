"""The limits that CONTRIBUTING.md promises, kept by a test rather than by reviewers."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "hyperslab"
# Upper layers first; a module may import its own layer and those below it, never one above. A dotted name is one room,
# or one module, of a package whose other parts are in another layer.
# `model` is above `bench`: workloads are made of its patterns. Both measure by `lab`, which knows neither.
LAYERS = [
    ["__main__"],
    ["cli"],
    ["running"],
    ["advise"],
    ["report"],
    ["parallel"],  # counts by `model`, per process
    ["model"],
    ["trace"],  # what a program did; `model` prices it
    ["bench"],
    ["lab"],
    ["formats"],
    ["conversion"],  # archives written again
    ["versions.compat"],
    ["versions", "versions.file", "versions.rewrite.repairing"],  # what is kept is written as any version
    ["versions.rewrite"],
    ["versions.inspect"],  # exports write references
    ["versions.commit", "versions.stage"],
    ["references"],
    ["h5"],  # h5py's interface
    ["archive.opening", "archive.xarray_engine"],  # `open` can open a version
    ["versions.layout"],  # a version is read as an archive
    ["archive"],
    ["storage"],  # how arrays are laid out
    ["journal"],  # before an archive is read, a commit that was cut short is finished
    ["meant", "needed", "panics", "preloading", "progress", "regular_files", "replacing"],
    ["errors", "memory", "cached", "chunk_grid", "_core"],
]
MOST_FILE_LINES, MOST_FUNCTION_LINES, MOST_BYTES = 500, 70, 1_000_000
FORBIDDEN_MODULES = {"utils", "helpers", "common", "base", "manager", "misc"}


def committed() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


FILES = committed()
PYTHON = [path for path in FILES if path.suffix == ".py"]
RUST = [path for path in FILES if path.suffix == ".rs"]
OURS = [path for path in PYTHON if path.is_relative_to(PACKAGE)]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def layer_of(module: str) -> int | None:
    """The layer of a module, by the longest of the names there that it begins with."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        for depth, names in enumerate(LAYERS):
            if name in names:
                return depth
    return None


def module_of(path: Path) -> str:
    """A module's name within hyperslab; that of a package for its `__init__`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in OURS}


@cache
def imported_modules(path: Path) -> set[str]:
    """Modules of hyperslab that a file imports, wherever in the file, but for types only."""
    found: set[str] = set()
    waiting: list[ast.AST] = [parsed(path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.removeprefix("hyperslab.") for name in names if name.startswith("hyperslab.")}
    return {name if name in MODULES else name.rpartition(".")[0] or name for name in found}


def test_imports_go_only_downward() -> None:
    assert [wrong for path in OURS for wrong in imported_from_above(path)] == []


def imported_from_above(path: Path) -> Iterator[str]:
    own = module_of(path)
    depth = layer_of(own)
    if depth is None:
        if own:
            yield f"{relative(path)} is in no layer: add it to LAYERS and ARCHITECTURE.md"
        return
    for module in imported_modules(path):
        below = layer_of(module)
        if below is not None and below < depth and module != "archive":  # whose names are found when they are asked for
            yield f"{relative(path)} imports {module}, which is above it"


def test_no_modules_import_each_other_in_a_circle() -> None:
    imports = {name: imported_modules(path) & set(MODULES) for name, path in MODULES.items()}
    assert circles(imports) == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "d"}, "e": set()}) == [["a", "b", "c"], ["d"]]


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """The sets of modules of which each imports, by way of others, every other one."""
    reached: dict[str, set[str]] = {}
    for start in imports:
        seen, waiting = set(), [start]
        while waiting:
            for name in imports[waiting.pop()] - seen:
                seen.add(name)
                waiting.append(name)
        reached[start] = seen
    found = {tuple(sorted(n for n in reached[name] if name in reached[n])) for name in imports if name in reached[name]}
    return [list(circle) for circle in sorted(found)]


def test_the_pure_crates_do_no_io_and_know_no_python() -> None:
    for path in RUST:
        if relative(path).startswith(("crates/hyperslab-core/src", "crates/hyperslab-model/src")):
            text = path.read_text()
            for forbidden in ("std::fs", "std::io", "std::net", "std::time", "pyo3", "numpy"):
                assert f"use {forbidden}" not in text, f"{relative(path)} uses {forbidden}"


def test_files_are_short() -> None:
    lengths = {relative(path): len(path.read_text().splitlines()) for path in PYTHON + RUST}
    assert {path: length for path, length in lengths.items() if length > MOST_FILE_LINES} == {}


def test_functions_are_short() -> None:
    assert [wrong for path in PYTHON for wrong in long_functions(path)] == []


def long_functions(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            said = node.body[0] if ast.get_docstring(node) else None  # which may be as long as it has to be
            length -= (said.end_lineno or said.lineno) - said.lineno + 1 if said is not None else 0
            if length > MOST_FUNCTION_LINES:
                yield f"{relative(path)}:{node.lineno} {node.name} has {length} lines"


def test_rust_functions_are_short() -> None:
    for path in RUST:
        for name, line, length in rust_functions(path.read_text()):
            assert length <= MOST_FUNCTION_LINES, f"{relative(path)}:{line} {name} has {length} lines"


def rust_functions(text: str) -> list[tuple[str, int, int]]:
    """Name, first line and length of each function, by the indentation that rustfmt keeps."""
    lines, found = text.splitlines(), []
    for number, line in enumerate(lines):
        begun = re.match(r"( *)(?:pub(?:\([a-z]+\))? )?(?:const )?(?:unsafe )?fn (\w+)", line)
        if begun:
            closing = f"{begun[1]}}}"
            ends = next((k for k in range(number, len(lines)) if lines[k] == closing or lines[k].endswith(";")), number)
            found.append((begun[2], number + 1, ends - number + 1))
    return found


def test_ceilings_have_one_home() -> None:
    for path in OURS:
        if path.name != "chunk_grid.py":
            assert not re.search(r"-\(-.* // ", path.read_text()), f"{relative(path)}: use chunk_grid.ceil_div"


def test_no_module_is_a_grab_bag() -> None:
    for path in PYTHON + RUST:
        assert path.stem not in FORBIDDEN_MODULES, relative(path)


def forbidden_words() -> set[str]:
    rows = [line for line in (ROOT / "GLOSSARY.md").read_text().splitlines() if line.startswith("| ")][1:]
    return {word.strip() for row in rows for word in row.rstrip("|").split("|")[-1].split(",") if word.strip()}


# What xarray calls the parts of an engine, and h5py making an array.
NAMES_OF_OTHERS = {"open_dataset", "open_dataset_parameters", "create_dataset"}


def test_names_follow_the_glossary() -> None:
    forbidden = forbidden_words()
    assert "dataset" in forbidden
    judged = [path for path in OURS if not {"formats", "compat", "h5"} & set(path.parts)]
    assert [wrong for path in judged for wrong in names_against(forbidden, path)] == []


def names_against(forbidden: set[str], path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        else:
            continue
        if name in NAMES_OF_OTHERS:
            continue
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        for bad in forbidden:
            if bad in (words if "_" in bad else words.split("_")):
                yield f"{relative(path)}: {name} (the glossary says what to write for {bad})"


def test_no_committed_file_is_large() -> None:
    for path in FILES:
        assert path.stat().st_size <= MOST_BYTES, relative(path)


def test_no_machine_path_or_registry_host_is_committed() -> None:
    hosts = ["pypi" + ".org", "files.pythonhosted" + ".org", "registry.npmjs" + ".org", "deb.debian" + ".org"]
    paths = ["/root" + "/", "/home" + "/", "/work" + "/main"]
    for path in FILES:
        if path.name == "Cargo.lock" or path.suffix in {".png", ".svg", ".parquet"}:
            continue
        text = path.read_text(errors="replace")
        for bad in hosts + paths:
            assert bad not in text, f"{relative(path)} holds {bad}"


def test_relative_links_lead_somewhere() -> None:
    for path in FILES:
        if path.suffix == ".md":
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text()):
                if "://" not in target:
                    assert (path.parent / target).exists(), f"{relative(path)} links to {target}"


def test_every_public_name_has_a_docstring() -> None:
    for path in OURS:
        tree = parsed(path)
        assert ast.get_docstring(tree) or not path.read_text().strip(), relative(path)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{relative(path)}: {node.name}"


def test_python_dependencies_are_locked_by_names_and_versions_only() -> None:
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line


def test_importing_hyperslab_is_light() -> None:
    """The core must not pull in NumPy-scale libraries: counted in modules, since a timing never fails a test."""
    code = "import sys, hyperslab; print(*sys.modules)"
    import sys

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    for heavy in ("pandas", "h5py", "zarr", "matplotlib", "plotly", "pyarrow", "scipy", "dask"):
        assert heavy not in loaded
