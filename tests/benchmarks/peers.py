"""Peers in processes of their own, asked one thing at a time over a pipe.

Every library, rumi too, runs in a worker process, so that all pay the same for
being asked. A worker answers with the seconds that its reads took and a digest
of what it read, which the harness compares.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@dataclass(frozen=True)
class Recipe:
    """A worker's script, and what pip installs for it; nothing means this interpreter."""

    script: str
    packages: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """The pinned packages, in words."""
        return ", ".join(package.replace("==", " ") for package in self.packages)


PEERS = {
    "rumi": Recipe("rumi_worker.py"),
    # A second one, for two processes at the same time.
    "rumi again": Recipe("rumi_worker.py"),
    "rumi-eo": Recipe("rumi_eo_worker.py", ("rumi-eo[write]==0.16.0", "ml_dtypes")),
    "rumi-eo new": Recipe("rumi_eo_new_worker.py", ("rumi-eo==0.26.1", "ml_dtypes")),
    "rasterio": Recipe("rasterio_worker.py"),
    "zarr": Recipe("zarr_worker.py", ("zarr==3.1.6", "numcodecs")),
    "tifffile": Recipe(
        "tifffile_worker.py", ("tifffile==2026.3.3", "imagecodecs==2026.3.6", "zarr==3.1.6")
    ),
    "async-geotiff": Recipe(
        "async_geotiff_worker.py",
        ("async-geotiff==0.5.1", "async-tiff==0.7.2", "obstore==0.12.1"),
    ),
}


class Peer:
    """One worker process."""

    def __init__(self, name: str, environments: Path) -> None:
        script, packages = PEERS[name].script, PEERS[name].packages
        self.name = name
        environment = dict(os.environ)
        if packages:
            python = _environment(environments / name, packages)
            environment.pop("PYTHONPATH", None)
        else:
            python = sys.executable
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), *sys.path)))
        self._process = subprocess.Popen(
            [python, str(HERE / "workers" / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, op: str, **arguments: object) -> dict:
        """Return the worker's answer.

        Raises
        ------
        RuntimeError
            If it failed, with its own words.
        """
        self.start(op, **arguments)
        return self.finish()

    def start(self, op: str, **arguments: object) -> None:
        """Ask, without waiting for the answer."""
        self._process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        self._process.stdin.flush()

    def finish(self) -> dict:
        """Return the answer to what was asked; errors as of `ask`."""
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with status {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()


def _environment(folder: Path, packages: tuple[str, ...]) -> str:
    """Return the interpreter of a virtual environment, made once."""
    python = folder / "bin" / "python"
    stamp = folder / "installed.txt"
    wanted = "\n".join(packages)
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *packages], check=True)
        stamp.write_text(wanted)
    return str(python)
