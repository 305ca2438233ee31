"""Remote reads from a server with latency, in a process of its own.

The server waits 20 ms before each answer and sends it as one packet. Peers read
COGs of the same pixels, each read cold: under a URL that has not been asked for.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .measure import Bench, Part, Plot, Row
from .peers import Peer
from .scenes import windows

SERVER = Path(__file__).parents[1] / "servers.py"
LATENCY = 0.02
LATENCIES = (0.0, 0.01, 0.02, 0.05)
CHIP = 224
TILE = 256


class Server:
    """Serves a folder with latency; use it as a context manager."""

    def __init__(self, folder: Path, latency: float = LATENCY) -> None:
        self._command = [sys.executable, str(SERVER), str(folder), "--latency", str(latency)]

    def __enter__(self) -> Server:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()

    def log(self) -> tuple[int, int]:
        """Requests and bytes since the last call."""
        with urllib.request.urlopen(self.url + "/-/log", timeout=60) as reply:
            lines = json.load(reply)
        return len(lines), sum(line["sent"] for line in lines)


def _cost(server: Server, read: Callable[[], dict], items: int = 1) -> tuple[str, float]:
    """Return requests and bytes of a read, in words, and the requests as a number."""
    server.log()
    read()
    requests, sent = server.log()
    return f"{requests / items:g} requests, {sent / items / 1000:.0f} kB", requests / items


def _limit(read: dict, factor: float, seconds: float) -> dict:
    """Return the time that a read may take: a factor times latency and local read."""
    return {"seconds": factor * (seconds + read["seconds"]), "digest": read["digest"]}


def chips(bench: Bench, server: Server, path: str, blob: str) -> list[Row]:
    """One chip at a time, against the latency of one request and a local read."""
    rows = []
    url = f"{server.url}/{Path(path).name}"
    for name, items in _chips(bench).items():

        def remote(items: list = items) -> dict:
            return bench.rumi.ask("reads", path=url, blob=blob, windows=items, reuse=True)

        def local(items: list = items) -> dict:
            return bench.rumi.ask("reads", path=path, blob=blob, windows=items, reuse=True)

        cost, _ = _cost(server, remote, len(items))
        rows.append(
            bench.pair(
                f"{CHIP} x {CHIP} x 3 chip {name}, header known",
                (f"rumi.read, HTTP ({cost})", "1.3 x (20 ms + local read)"),
                remote,
                lambda local=local: _limit(local(), 1.3, 8 * LATENCY),
                8,
                1.0,
            )
        )
    return rows


def batches(bench: Bench, path: str, blob: str) -> list[Row]:
    """64 chips at once, of one file and of 64."""
    rows = []
    scene = bench.scene
    files, blobs, whole = [], [], [[0, 0, CHIP, CHIP]] * 64
    for number, (row, col, _, _) in enumerate(windows(64, CHIP, scene.shape[1:], seed=8)):
        array = bench.save("chip", scene[:, row : row + CHIP, col : col + CHIP])
        files.append(bench.path(f"remote/chip{number}.rumi"))
        options = {"tile_size": TILE, "codec": "delta>zigzag>lanes>zstd"}
        blobs.append(bench.rumi.ask("write", array=array, path=files[-1], **options)["blob"])
    with Server(Path(bench.path("remote"))) as fresh:
        urls = [f"{fresh.url}/{Path(name).name}" for name in files]
        random = windows(64, CHIP, scene.shape[1:], seed=9)
        one = f"{fresh.url}/{Path(path).name}"
        for name, sources, local, headers, items in (
            ("of 64 files", urls, files, blobs, whole),
            ("of one file, across tiles", [one] * 64, [path] * 64, [blob] * 64, random),
        ):
            given = {"blobs": headers, "windows": items, "threads": None}

            def remote(op: str, sources: list = sources, given: dict = given) -> dict:
                return bench.rumi.ask(op, paths=sources, **given)

            def near(local: list = local, given: dict = given) -> dict:
                return bench.rumi.ask("batch", paths=local, **given)

            cost, _ = _cost(fresh, lambda remote=remote: remote("aio"))
            for op, call in (("aio", "rumi.aio.read_many"), ("batch", "rumi.read_many")):
                rows.append(
                    bench.pair(
                        f"64 chips {name}",
                        (f"{call}, HTTP ({cost})", "3 x 20 ms + local read_many"),
                        lambda remote=remote, op=op: remote(op),
                        lambda near=near: _limit(near(), 1.0, 3 * LATENCY),
                        1,
                        1.0,
                    )
                )
    return rows


def peers(bench: Bench, server: Server, blob: str) -> list[Row]:
    """The same chips from COGs of the same pixels, cold.

    What may be there from before is connections, for all of them.
    """
    rows = []
    tiff = bench.peer("async-geotiff")
    for where, items in _chips(bench).items():

        def ours(items: list = items) -> dict:
            path = f"{server.url}/scene.rumi"
            return bench.rumi.ask("reads", path=path, blob=blob, windows=items, reuse=True)

        cost, requests = _cost(server, ours, len(items))
        for compress in ("DEFLATE", "ZSTD"):
            for name, peer in (("rasterio /vsicurl", bench.cog), ("async-geotiff", tiff)):
                asked = {"url": f"{server.url}/{compress}.tif", "windows": items}

                def theirs(peer: Peer = peer, asked: dict = asked) -> dict:
                    return peer.ask("remote", **asked)

                their_cost, their_requests = _cost(server, theirs, len(items))
                names = (f"rumi.read ({cost})", f"COG {compress}, {name} ({their_cost})")
                work = f"chip {where}, cold, 20 ms"
                aim = 2.0 if peer is bench.cog else None
                rows.append(bench.pair(work, names, ours, theirs, len(items), aim))
                if compress == "DEFLATE" and peer is bench.cog:
                    ratio = their_requests / requests
                    work = f"chip {where}, cold, requests rather than us"
                    rows.append(Row(work, *names, requests, their_requests, ratio, 3.0))
    return rows


def _chips(bench: Bench) -> dict[str, list[list[int]]]:
    """Windows inside a tile and across several."""
    inside = [[row * TILE, col * TILE, CHIP, CHIP] for row in range(3) for col in range(3)]
    return {
        "inside one tile": inside[:8],
        "across tiles": windows(8, CHIP, bench.scene.shape[1:], seed=7),
    }


def latencies(bench: Bench, folder: Path, blob: str) -> Plot:
    """One chip inside a tile, cold, as every request waits longer."""
    items = _chips(bench)["inside one tile"]
    curves: dict[str, list[float]] = {}
    tiff = bench.peer("async-geotiff")
    for latency in LATENCIES:
        with Server(folder, latency) as server:
            ours = {"path": f"{server.url}/scene.rumi", "blob": blob, "windows": items}
            theirs = {"url": f"{server.url}/ZSTD.tif", "windows": items}
            runners = {
                "rumi.read": lambda a=ours: bench.rumi.ask("reads", reuse=True, **a),
                "COG, rasterio /vsicurl": lambda a=theirs: bench.cog.ask("remote", **a),
                "COG, async-geotiff": lambda a=theirs: tiff.ask("remote", **a),
            }
            times = {}
            for name, run in runners.items():
                _, requests = _cost(server, run, len(items))
                times[f"{name}: {requests:g} requests"] = run
            for name, seconds in bench.race("latency", times, max(3, bench.runs // 4)).items():
                curves.setdefault(name, []).append(statistics.median(seconds) / len(items) * 1e3)

    def draw(axes: object) -> None:
        for name, values in curves.items():
            axes.plot([1000 * latency for latency in LATENCIES], values, marker="o", label=name)
        axes.set(xlabel="added latency of a request, ms", ylabel="a cold chip, ms")
        axes.legend(fontsize=7)

    return Plot(
        "latency", "A chip from a server that is far away, nothing known but the blob", draw
    )


def remote_reads(bench: Bench) -> list[Part]:
    """Chips over HTTP, from a server that waits before each answer."""
    folder = Path(bench.path("remote"))
    folder.mkdir(exist_ok=True)
    array = bench.save("scene", np.ascontiguousarray(bench.scene))
    path = str(folder / "scene.rumi")
    blob = bench.rumi.ask("write", array=array, path=path, tile_size=TILE)["blob"]
    for compress in ("DEFLATE", "ZSTD"):
        options = {"compress": compress, "predictor": "YES", "interleave": "PIXEL"}
        bench.cog.ask("write", array=array, path=str(folder / f"{compress}.tif"), **options)
    with Server(folder) as server:
        rows: list[Part] = [*chips(bench, server, path, blob), *peers(bench, server, blob)]
    rows += batches(bench, path, blob)
    return [*rows, latencies(bench, folder, blob)]


SECTIONS = {"remote": remote_reads}
