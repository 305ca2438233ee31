"""Every example of the README runs, and says what the README says it says."""

import ast
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rumi.cli import cli
from rumi.demo import scene_path

pytest.importorskip("rasterio", reason="the README's examples read a GeoTIFF")

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMISE = re.compile(r"  # -> (.*)$")


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(README.read_text()) if found == language]


class Printed(str):
    """What a print statement printed: compared as it stands."""

    def __repr__(self) -> str:
        return str(self)


class Checker(ast.NodeTransformer):
    """Turn ``expression  # -> promise`` into a comparison of the two."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.count = 0

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        found = PROMISE.search(self.lines[(node.end_lineno or node.lineno) - 1])
        if found is None:
            return node
        self.count += 1
        call = ast.Call(ast.Name("check", ast.Load()), [node.value, ast.Constant(found[1])], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), node))


def check(value: object, promise: str) -> None:
    if promise.endswith("..."):
        assert repr(value).startswith(promise.removesuffix("..."))
    else:
        assert repr(value) == promise


def run_examples(texts: list[str]) -> int:
    """Run examples one after another, as a reader does; return how many promises were kept."""
    namespace: dict[str, Any] = {
        "check": check,
        "print": lambda *parts: Printed(" ".join(map(str, parts))),
    }
    count = 0
    for text in texts:
        checker = Checker(text.splitlines())
        tree = checker.visit(ast.parse(text))
        exec(compile(tree, str(README), "exec"), namespace)
        count += checker.count
    assert count == sum(line.count("  # -> ") for text in texts for line in text.splitlines())
    return count


def needs_torch(text: str) -> bool:
    return "import torch" in text


def test_python_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("pyarrow", "xarray", "obstore", "PIL"):
        pytest.importorskip(name, reason=f"the README's examples need {name}")
    assert run_examples([text for text in blocks("python") if not needs_torch(text)]) > 10


# What Python 3.12 and later say of a fork of a process with threads.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
# Of machines with one processor.
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
def test_torch_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples for PyTorch, after those that they build on."""
    pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0")
    monkeypatch.chdir(tmp_path)
    assert any(map(needs_torch, blocks("python")))
    run_examples(blocks("python"))


def test_console_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(scene_path(), "scene.tif")
    commands = [line for text in blocks("console") for line in text.splitlines()]
    assert len(commands) > 5
    for line in commands:
        assert line.startswith("$ "), line
        program, *arguments = shlex.split(line[2:])
        if program == "rumi":
            result = CliRunner().invoke(cli, arguments)
            assert result.exit_code == 0, (line, result.output)
        else:
            subprocess.run([program, *arguments], check=True)
    made = {path.name for path in tmp_path.iterdir()}
    assert made >= {"scene.rumi", "scene.blob", "chip.npy", "chip.png", "back.tif"}
    assert len(list((tmp_path / "converted").iterdir())) == 2


def test_shell_examples_are_shell() -> None:
    for text in blocks("bash"):
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_files_that_the_readme_links_to_exist() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)]+)\)", README.read_text())
    assert links
    for link in links:
        assert (README.parent / link).exists(), link


def test_every_command_and_variable_is_in_the_readme() -> None:
    text = README.read_text()
    for name in cli.commands:
        assert f"rumi {name}" in text
    for source in (README.parent / "rumi").rglob("*.py"):
        for variable in re.findall(r'"(RUMI_[A-Z_]+)"', source.read_text()):
            assert f"`{variable}`" in text, f"{variable} of {source.name}"
