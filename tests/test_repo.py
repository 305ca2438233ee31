"""The repository itself: its shape, its layers, and what it promises about imports."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "rumi"

TOP_LEVEL = {
    "LICENSE",
    "MANIFEST.in",
    "README.md",
    "formats",
    "pyproject.toml",
    "rumi",
    "setup.py",
    "tests",
}

MAX_LINES = 400

# Which layer a module is in. A module imports from its own layer and those below;
# "rumi" is the public package, which may be imported from above it only.
LAYERS = {
    "_generated": 0,
    "errors": 0,
    "_core": 1,
    "atomic": 2,
    "backends": 2,
    "batch": 2,
    "codec": 2,
    "compress": 2,
    "container": 2,
    "display": 2,
    "encodings": 2,
    "engine": 2,
    "georef": 2,
    "header": 2,
    "indexing": 2,
    "output": 2,
    "overlap": 2,
    "pixels": 2,
    "pools": 2,
    "remote": 2,
    "source": 2,
    "transforms": 2,
    "validation": 2,
    "workers": 2,
    "aio": 3,
    "read": 3,
    "write": 3,
    "cube": 4,
    "image": 4,
    "orthogonal": 4,
    "pictures": 4,
    "preview": 4,
    "catalog": 5,
    "geotiff": 5,
    "": 5,
    "torch": 6,
    "xarray": 6,
    "demo": 7,
    "cli": 8,
}

# Imported when used, and so never by `import rumi`.
LAZY = (
    "PIL",
    "asyncio",
    "click",
    "dask",
    "fsspec",
    "geozl",
    "importlib.metadata",
    "kaitaistruct",
    "matplotlib",
    "ml_dtypes",
    "obstore",
    "pyarrow",
    "pyproj",
    "rasterio",
    "rich",
    "rumi.catalog",
    "rumi.codec",
    "rumi.compress",
    "rumi.cube",
    "rumi.validation",
    "torch",
    "xarray",
)

# Promised are 150 ms on an idle machine; processor time of a busy one may be twice that.
IMPORT_SECONDS = 0.3


def tracked_files() -> list[Path]:
    """The files of the repository: git's list, or in an unpacked sdist all of them."""
    if (ROOT / ".git").exists():
        command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"]
        names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        return [ROOT / os.fsdecode(name) for name in names.split(b"\0") if name]
    ignored = {"__pycache__", "node_modules", "build", "dist", ".venv", "rumi.egg-info", "demo-out"}
    found = (path for path in ROOT.rglob("*") if path.is_file() and path.suffix != ".so")
    return [path for path in found if not ignored & set(path.relative_to(ROOT).parts)]


def python_modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    """The first name below `rumi`, which is what layers are about."""
    first = path.relative_to(PACKAGE).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imported_modules(path: Path) -> Iterator[tuple[str, int]]:
    """Yield what a file imports of rumi, and the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "rumi":
                    yield alias.name.partition(".")[2].split(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            if node.module == "rumi":
                for alias in node.names:
                    yield (alias.name if alias.name in LAYERS else ""), node.lineno
            elif node.module and node.module.startswith("rumi."):
                yield node.module.split(".")[1], node.lineno


def test_the_top_level_is_the_agreed_one() -> None:
    found = {path.relative_to(ROOT).parts[0] for path in tracked_files()}
    # What setuptools adds to an sdist is no file of the repository.
    visible = {name for name in found if not name.startswith(".")} - {"PKG-INFO", "setup.cfg"}
    assert visible == TOP_LEVEL
    assert {".ci", ".gitignore"} <= found


@pytest.mark.parametrize("path", python_modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_are_small(path: Path) -> None:
    if "_generated" in path.parts:
        pytest.skip("generated")
    assert len(path.read_text().splitlines()) <= MAX_LINES


@pytest.mark.parametrize("path", python_modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_module_imports_from_a_layer_above(path: Path) -> None:
    name = module_name(path)
    if name == "_generated":
        pytest.skip("generated")
    assert name in LAYERS, f"{name} has no layer yet: add it to LAYERS in {Path(__file__).name}"
    for imported, line in imported_modules(path):
        assert LAYERS[imported] <= LAYERS[name], (
            f"{path.relative_to(ROOT)}:{line}: {name or 'rumi'} imports "
            f"{imported or 'the public package'} from a layer above it"
        )


def test_compiled_code_imports_only_errors_and_itself() -> None:
    for path in sorted((PACKAGE / "_core").glob("*.p[yx][xd]")):
        for imported in re.findall(r"^\s*from rumi\.?(\w*)[\w.]* c?import", path.read_text(), re.M):
            assert imported in ("_core", "_generated", "errors"), f"{path.name}: {imported}"


def test_compiled_names_are_imported_through_the_gate() -> None:
    for path in python_modules():
        if path.parent == PACKAGE / "_core":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert not node.module.startswith("rumi._core."), f"{path}:{node.lineno}"


def import_in_a_new_process(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_importing_rumi_loads_nothing_optional() -> None:
    code = f"import sys, rumi; print(*[name for name in {LAZY!r} if name in sys.modules])"
    assert import_in_a_new_process(code).split() == []


def test_importing_rumi_starts_no_thread_and_no_process_module() -> None:
    code = (
        "import sys, threading, rumi\n"
        "print(threading.active_count(), 'multiprocessing' in sys.modules)"
    )
    assert import_in_a_new_process(code).split() == ["1", "False"]


def test_importing_rumi_costs_little_more_than_numpy() -> None:
    # A ratio of processor times, of the same machine and moment, and the best of
    # several: times alone would fail on a busy one.
    code = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"
    best = {
        name: min(float(import_in_a_new_process(code.format(name))) for _ in range(5))
        for name in ("numpy", "rumi")
    }
    assert best["rumi"] < 3 * best["numpy"]


def test_importing_rumi_is_quick() -> None:
    # The processor time of the whole process, the start of Python included.
    code = "import rumi, time; print(time.process_time())"
    assert min(float(import_in_a_new_process(code)) for _ in range(5)) < IMPORT_SECONDS


def test_what_is_imported_late_is_there_all_the_same() -> None:
    code = (
        "import rumi\n"
        "print(rumi.codec.PRESETS[0], len(rumi.validation.clauses()) > 9, rumi.validate.__name__)\n"
        "print(rumi.Catalog.__name__, rumi.geotiff.convert.__name__, hasattr(rumi, 'nothing'))"
    )
    found = import_in_a_new_process(code).split()
    assert found == ["auto", "True", "validate", "Catalog", "convert", "False"]


def test_the_version_stands_once() -> None:
    import rumi

    assert metadata.version("rumi") == rumi.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]
    changelog = (ROOT / "README.md").read_text().partition("\n## Changelog\n")[2]
    assert re.findall(r"^### (\S+)$", changelog, re.M)[0] == rumi.__version__


def kind_and_name(name: str) -> tuple[int, str]:
    """The order that ruff sorts by: constants, then classes, then functions."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return kind, name


@pytest.mark.parametrize("path", python_modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_all_is_sorted_and_true(path: Path) -> None:
    tree = ast.parse(path.read_text())
    names = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    ]
    if not names:
        assert path.name in ("__main__.py",) or "_generated" in path.parts, "no __all__"
        return
    assert names[0] == sorted(names[0], key=kind_and_name)
    assert len(set(names[0])) == len(names[0])


def test_public_names_exist() -> None:
    import rumi

    assert all(hasattr(rumi, name) for name in rumi.__all__)


def test_no_tracked_file_names_a_place_on_this_machine() -> None:
    places = ("/work" + "/", "/tmp" + "/lab", "/root" + "/", "file://" + "/opt")
    for path in tracked_files():
        if not path.is_file():
            continue
        data = path.read_bytes()
        for place in places:
            assert place.encode() not in data, f"{path.relative_to(ROOT)} contains {place}"


def test_every_extension_has_stubs_and_the_package_is_marked_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
    for source in (PACKAGE / "_core").glob("*.pyx"):
        assert source.with_suffix(".pyi").is_file(), f"{source.name} has no stub"


def test_every_extension_is_built_by_setup() -> None:
    built = (ROOT / "setup.py").read_text()
    for source in (PACKAGE / "_core").glob("*.pyx"):
        assert f'"{source.stem}"' in built


def readme_commands() -> list[str]:
    """The two lines of the README's first section of commands."""
    block = re.search(r"^```bash\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    assert block is not None
    return [line for line in block[1].splitlines() if line and not line.startswith("#")]


def test_readme_has_two_commands_of_one_line() -> None:
    demo, tests = readme_commands()
    assert demo.endswith("rumi demo")
    assert "[test]" in tests
    assert tests.endswith("pytest")


def test_ci_runs_the_readmes_commands_literally() -> None:
    lines = [line.strip() for line in (ROOT / ".ci" / "run").read_text().splitlines()]
    for command in readme_commands():
        assert command in lines


def test_ci_script_is_executable_bash() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().startswith("#!/usr/bin/env bash\n")
    subprocess.run(["bash", "-n", str(script)], check=True)
