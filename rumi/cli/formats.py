"""``rumi formats``: parsers of the format for other languages, from its specifications."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click

import rumi
from rumi.cli.console import print_json, print_rows
from rumi.cli.parameters import json_option, local_folder, quiet_option
from rumi.cli.program import Command
from rumi.errors import UnsupportedError

__all__ = ["formats"]

# What is written without the compiler.
_COPIED = {"ksy": "*.ksy", "vectors": "vectors/*"}

_INSTALL = "install Node.js 18.3 or later with npm (https://nodejs.org, or apt install nodejs npm)"
_LEAST_NODE = (18, 3)

_CHECKED = {
    "vectors": "runs all conformance vectors",
    "compiler": "passes its compiler",
    "syntax": "passes a syntax check",
    "generated": "is generated",
    "fails": "cannot be generated",
}


@click.command(cls=Command)
@click.option("--target", metavar="LANGUAGE", help="What to write; without it, see the list.")
@click.option(
    "-o", "--output", metavar="DIR", callback=local_folder, help="Local folder to write to."
)
@json_option
@quiet_option
def formats(target: str | None, output: Path | None, as_json: bool, quiet: bool) -> None:
    """Write parsers of files and header blobs for another language.

    They are generated from the format's Kaitai Struct specifications by the
    Kaitai Struct compiler, which needs Node.js and is fetched with npm at first
    use. The targets ksy, the specifications themselves, and vectors, the
    conformance vectors, need nothing. Without --target the targets are listed.
    """
    if (target is None) != (output is None):
        raise click.UsageError("--target and -o go together")
    folder = _folder()
    languages = json.loads((folder / "generator" / "languages.json").read_text())
    if target is None or output is None:
        _list(languages, as_json=as_json)
        return
    if target not in (*languages, *_COPIED, "all"):
        raise click.UsageError(
            f"no target {target!r}; there are {', '.join((*languages, *_COPIED, 'all'))}"
        )
    if target in _COPIED:
        names = _copy(folder, _COPIED[target], output)
    else:
        names = _generate(folder, target, output, quiet=quiet or as_json)
    if as_json:
        print_json({"target": target, "output": str(output), "files": names})
    elif not quiet:
        click.echo(f"{output}: {', '.join(names)}")


def _folder() -> Path:
    """Return where the specifications are: in the package, or beside it in a checkout."""
    package = Path(rumi.__file__).parent
    for folder in (package / "_formats", package.parent / "formats"):
        if (folder / "rumi_header.ksy").is_file():
            return folder
    raise UnsupportedError("the format specifications are not in this installation of rumi")


def _list(languages: dict[str, Any], *, as_json: bool) -> None:
    checked = {target: _CHECKED[language["run"]] for target, language in languages.items()}
    if as_json:
        print_json(
            {
                "targets": [
                    *(
                        {"target": t, "name": languages[t]["name"], "checked": checked[t]}
                        for t in checked
                    ),
                    {"target": "ksy", "name": "the specifications", "checked": ""},
                    {"target": "vectors", "name": "the conformance vectors", "checked": ""},
                ]
            }
        )
        return
    rows = [(target, f"{languages[target]['name']}: {text}") for target, text in checked.items()]
    rows += [("all", "each of them in a folder of its own")]
    rows += [("ksy", "the Kaitai Struct specifications; needs no Node.js")]
    rows += [("vectors", "the conformance vectors; needs no Node.js")]
    print_rows(rows, max(len(target) for target, _ in rows))


def _copy(folder: Path, pattern: str, output: Path) -> list[str]:
    output.mkdir(parents=True, exist_ok=True)
    found = sorted(path for path in folder.glob(pattern) if path.is_file())
    for path in found:
        shutil.copyfile(path, output / path.name)
    return [path.name for path in found]


def _generate(folder: Path, target: str, output: Path, *, quiet: bool) -> list[str]:
    """Run the generator, which has its packages by then."""
    node = _node()
    script = _with_packages(folder, quiet=quiet) / "generate.mjs"
    before = _listing(output)
    done = _run(node, str(script), "--target", target, "-o", str(output))
    said = done.stderr.strip().splitlines()
    # Of all targets those are left out, and named, that the compiler has not got.
    if done.returncode != 0 and (target != "all" or not _listing(output)):
        raise UnsupportedError(said[-1] if said else f"{target}: node ends with {done.returncode}")
    for line in said:
        click.echo(f"rumi: warning: {line}", err=True)
    after = _listing(output)
    return sorted(name for name, when in after.items() if before.get(name) != when)


def _listing(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file()
    }


def _node() -> str:
    node = shutil.which("node")
    if node is None:
        raise UnsupportedError(f"parsers are generated by Node.js, which is not here; {_INSTALL}")
    said = _run(node, "--version").stdout.strip()
    version = tuple(int(part) for part in said.removeprefix("v").split(".")[:2] if part.isdigit())
    if version < _LEAST_NODE:
        raise UnsupportedError(f"{node} is {said or 'no Node.js'}; {_INSTALL}")
    return node


def _with_packages(folder: Path, *, quiet: bool) -> Path:
    """Return a copy of the generator whose packages are installed."""
    if (folder / "node_modules" / "kaitai-struct-compiler").is_dir():
        return folder
    copy = _cache(folder)
    if (copy / "node_modules" / "kaitai-struct-compiler").is_dir():
        return copy
    npm = shutil.which("npm")
    if npm is None:
        raise UnsupportedError(
            f"the Kaitai Struct compiler is fetched by npm, which is not here; {_INSTALL}"
        )
    if not quiet:
        click.echo(f"rumi: fetching the Kaitai Struct compiler with npm into {copy}", err=True)
    # Made aside and renamed, so that one that was interrupted is not taken for whole.
    partial = copy.with_name(f"{copy.name}.{os.getpid()}")
    shutil.copytree(
        folder, partial, ignore=shutil.ignore_patterns("node_modules", "docs", "vectors")
    )
    try:
        done = _run(
            npm, "install", "--prefix", str(partial), "--omit=optional", "--no-audit", "--no-fund"
        )
        if done.returncode != 0:
            reason = next(
                (line for line in done.stderr.splitlines() if line.strip()), "no reason given"
            )
            raise UnsupportedError(
                f"npm cannot fetch the Kaitai Struct compiler ({reason.strip()}); see that "
                f"`npm install kaitai-struct-compiler` works here"
            )
        if not copy.is_dir():
            partial.rename(copy)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return copy


def _cache(folder: Path) -> Path:
    """Return where a generator with its packages is kept: a folder for its contents."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.sha256()
    for path in sorted((*folder.glob("*.*"), *folder.glob("generator/**/*"))):
        if path.is_file():
            digest.update(path.name.encode() + path.read_bytes())
    return Path(root) / "rumi" / f"formats-{digest.hexdigest()[:16]}"


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - the programs are node and npm, as found on PATH
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
