"""Parsers for other languages: every target of the compiler, checked as far as it can be.

`formats/generator/languages.json` says what is done for which; the table in the
documentation is generated from the same file. Languages whose parsers are run
against the conformance vectors are in test_vectors.py.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

FORMATS = Path(__file__).resolve().parents[1] / "formats"
RUNTIMES = Path(__file__).parent / "parsers" / "runtimes"
LANGUAGES = json.loads((FORMATS / "generator" / "languages.json").read_text())
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(
    NODE is None or not (FORMATS / "node_modules" / "kaitai-struct-compiler").is_dir(),
    reason="parsers cannot be generated: needs node and `npm install --prefix formats`",
)


def run(*command, cwd=None):
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )


def of_kind(*kinds):
    return [target for target, language in LANGUAGES.items() if language["run"] in kinds]


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """Parsers for all languages, each in a folder of its name."""
    folder = tmp_path_factory.mktemp("parsers")
    done = run(NODE, FORMATS / "generate.mjs", "--target", "all", "-o", folder)
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == of_kind("fails")
    return folder


@pytest.fixture
def folder(generated, tmp_path, target):
    """A copy of the parsers of one language, to work in."""
    shutil.copytree(generated / target, tmp_path / target)
    (tmp_path / target / "out").mkdir()
    return tmp_path / target


def test_every_target_of_the_compiler_is_listed():
    done = run(NODE, FORMATS / "generate.mjs", "--targets")
    assert set(done.stdout.split()) == set(LANGUAGES)


@pytest.mark.parametrize("target", of_kind("vectors", "compiler", "syntax", "generated"))
def test_target_is_generated(target, generated):
    files = list((generated / target).iterdir())
    names = {path.stem.lower().replace("_", "") for path in files}
    assert names == {"rumiheader", "rumifile"}
    assert all(path.stat().st_size > 1000 for path in files)


def commands(language, folder):
    """Fill in the names of files, one command for each where the tool takes only one."""
    runtime = RUNTIMES / language.get("runtime", "")
    fixed = [part.replace("{runtime}", str(runtime)) for part in language["command"]]
    at = next(i for i, part in enumerate(fixed) if part.startswith("{"))
    files = sorted(path.name for path in folder.glob(f"*.{fixed[at].strip('{}')}"))
    assert len(files) == 2
    groups = [[name] for name in files] if language["run"] == "syntax" else [files]
    return [[*fixed[:at], *group, *fixed[at + 1 :]] for group in groups]


@pytest.mark.parametrize("target", of_kind("compiler", "syntax"))
def test_target_passes_its_compiler(target, folder):
    language = LANGUAGES[target]
    tool = language["command"][0]
    if shutil.which(tool) is None:
        pytest.skip(f"the {language['name']} parser is not checked: needs {tool}")
    for command in commands(language, folder):
        done = run(*command, cwd=folder)
        assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize("target", of_kind("compiler", "syntax"))
def test_the_check_of_a_target_can_fail(target, folder):
    language = LANGUAGES[target]
    if shutil.which(language["command"][0]) is None:
        pytest.skip(f"needs {language['command'][0]}")
    for path in folder.glob("*.*"):
        path.write_text(path.read_text().replace("}", "", 1).replace("end\n", "", 1))
    done = [run(*command, cwd=folder) for command in commands(language, folder)]
    assert any(result.returncode != 0 for result in done)


COMPILE = """
import KaitaiStructCompiler from 'kaitai-struct-compiler';
const field = { id: 'one', type: 'u1', ...JSON.parse(process.argv[1]) };
const spec = { meta: { id: 'small', endian: 'le' }, seq: [field] };
await KaitaiStructCompiler.compile('nim', spec, null, false).then(
  (files) => console.log(Object.keys(files).join()),
  (error) => console.log(`fails: ${error.message}`),
);
"""


@pytest.mark.parametrize("target", of_kind("fails"))
def test_what_fails_fails_in_the_compiler(target, tmp_path):
    """Not because of these specifications: one field with `valid: expr` is enough."""
    assert target == "nim"
    done = run(NODE, FORMATS / "generate.mjs", "--target", target, "-o", tmp_path)
    assert done.returncode == 1
    assert "nim: the compiler fails" in done.stderr
    assert "`valid: expr`" in done.stderr
    assert done.stderr.count("\n") == 1
    small = [
        run(NODE, "--input-type=module", "-e", COMPILE, json.dumps(field), cwd=FORMATS).stdout
        for field in ({}, {"valid": 1}, {"valid": {"expr": "_ == 1"}})
    ]
    assert small == ["small.nim\n", "small.nim\n", "fails: Boxed Exception\n"]
