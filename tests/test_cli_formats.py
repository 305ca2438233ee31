"""`rumi formats`: parsers for other languages, with and without what generates them."""

import json
import os
import shutil
import stat
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rumi.cli import cli
from rumi.cli import formats as _command  # noqa: F401 - loads the module, which a name hides

MODULE = sys.modules["rumi.cli.formats"]
FORMATS = Path(__file__).resolve().parents[1] / "formats"
MODULES = FORMATS / "node_modules"
NODE = shutil.which("node")

needs_node = pytest.mark.skipif(
    NODE is None or not (MODULES / "kaitai-struct-compiler").is_dir(),
    reason="nothing can be generated: needs node and `npm install --prefix formats`",
)
posix_only = pytest.mark.skipif(os.name != "posix", reason="stands shell scripts in for programs")


def run(*arguments, **environment):
    return CliRunner(env=environment).invoke(cli, ["formats", *map(str, arguments)])


def refused(result, status, *words):
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("rumi: error: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


def program(folder, name, script):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """The specifications as a wheel has them: in a folder without node's packages."""
    folder = tmp_path / "package"
    ignored = shutil.ignore_patterns("node_modules", "docs")
    shutil.copytree(FORMATS, folder, ignore=ignored)
    monkeypatch.setattr(MODULE, "_folder", lambda: folder)
    return folder


def test_without_a_target_the_targets_are_listed(tmp_path):
    result = run(PATH=str(tmp_path))
    assert result.exit_code == 0
    listed = [line.split()[0] for line in result.stdout.splitlines()]
    assert {"python", "javascript", "rust", "nim", "ksy", "vectors", "all"} <= set(listed)
    found = json.loads(run("--json").stdout)["targets"]
    assert [row["target"] for row in found] == [name for name in listed if name != "all"]
    assert {"target": "nim", "name": "Nim", "checked": "cannot be generated"} in found


def test_mistakes_are_usage_errors(tmp_path):
    refused(run("--target", "java"), 2, "-o")
    refused(run("-o", tmp_path), 2, "--target")
    refused(run("--target", "cobol", "-o", tmp_path), 2, "cobol", "java", "vectors")


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("ksy", ["rumi_file.ksy", "rumi_header.ksy"]),
        ("vectors", ["README.md", "blobs.json", "files.json"]),
    ],
)
def test_what_needs_no_node(tmp_path, target, names):
    result = run("--target", target, "-o", tmp_path / "out", "--json", PATH=str(tmp_path))
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["files"] == names
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names


@needs_node
def test_a_language(tmp_path):
    result = run("--target", "lua", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{tmp_path / 'out'}: rumi_file.lua, rumi_header.lua\n"
    assert "RumiHeader" in (tmp_path / "out" / "rumi_header.lua").read_text()
    refused(run("--target", "nim", "-o", tmp_path / "nim"), 1, "valid: expr")


def test_without_node(tmp_path):
    refused(run("--target", "java", "-o", tmp_path, PATH=str(tmp_path)), 1, "Node.js", "install")
    assert list(tmp_path.iterdir()) == []


@posix_only
def test_with_an_old_node(tmp_path):
    program(tmp_path / "bin", "node", "echo v12.22.9")
    result = run("--target", "java", "-o", tmp_path / "out", PATH=str(tmp_path / "bin"))
    refused(result, 1, "v12.22.9", "18.3")


@posix_only
def test_without_npm(tmp_path, packed):
    program(tmp_path / "bin", "node", "echo v20.0.0")
    environment = {"PATH": str(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    refused(run("--target", "java", "-o", tmp_path / "out", **environment), 1, "npm", "install")


@posix_only
def test_where_npm_fails_nothing_is_left(tmp_path, packed):
    program(tmp_path / "bin", "node", "echo v20.0.0")
    program(tmp_path / "bin", "npm", "echo npm error network unreachable >&2; exit 1")
    environment = {"PATH": f"{tmp_path / 'bin'}:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    result = run("--target", "java", "-o", tmp_path / "out", "-q", **environment)
    refused(result, 1, "network unreachable", "npm install")
    assert list((tmp_path / "cache" / "rumi").iterdir()) == []


@posix_only
@needs_node
def test_the_compiler_is_fetched_once(tmp_path, packed):
    # Stands for npm: puts the packages that are here into the folder after --prefix.
    program(tmp_path / "bin", "npm", f'ln -s "{MODULES}" "$3/node_modules"; echo "$@" >>"$LOG"')
    log = tmp_path / "log"
    environment = {
        "PATH": f"{tmp_path / 'bin'}:{Path(NODE).parent}:/usr/bin:/bin",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "LOG": str(log),
    }
    first = run("--target", "lua", "-o", tmp_path / "one", **environment)
    assert first.exit_code == 0, first.output
    assert "npm" in first.stderr
    second = run("--target", "lua", "-o", tmp_path / "two", **environment)
    assert second.exit_code == 0, second.output
    assert second.stderr == ""
    assert len(log.read_text().splitlines()) == 1
    for name in ("rumi_file.lua", "rumi_header.lua"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
