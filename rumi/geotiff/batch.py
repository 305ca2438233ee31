"""Many GeoTIFFs to rumi files: folders and globs, several processes, resumable."""

from __future__ import annotations

import glob
import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rumi import georef, pools
from rumi.container import Container, read_container
from rumi.errors import RumiError
from rumi.georef import Georeferencing
from rumi.geotiff.convert import Conversion, convert, convert_telling
from rumi.geotiff.findings import Inspection, inspect
from rumi.geotiff.losses import accept, parse_drop
from rumi.geotiff.places import check_target, modified, named
from rumi.source import is_path, is_remote, open_source, source_name

if TYPE_CHECKING:
    from types import FrameType

    from rumi.geotiff.places import Place

__all__ = ["Failure", "convert_many"]

_SUFFIXES = (".tif", ".tiff")
_OPTIONS = frozenset(convert.__kwdefaults__ or ()) - {"progress"}


def _mute(_text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A GeoTIFF that did not become a rumi file.

    Attributes
    ----------
    src, dst : str
        The GeoTIFF, and the rumi file that it would have become.
    kind : str
        Class of the error, such as "UnsupportedError".
    message : str
        Text of the error.
    seconds : float
        What it took to fail.
    """

    src: str
    dst: str
    kind: str
    message: str
    seconds: float


@dataclass(frozen=True, slots=True)
class _Job:
    """One file to convert; small and picklable."""

    src: Any
    dst: Any
    resume: bool
    options: dict[str, Any] = field(default_factory=dict)

    def run(self) -> Conversion | Failure:
        start = time.monotonic()
        try:
            done = _finished(self) if self.resume else None
            # The result carries the warnings.
            return done or convert_telling(_mute, self.src, self.dst, **self.options)
        except Exception as error:  # a row of the table, whatever it is
            return self.failed(type(error).__name__, str(error), time.monotonic() - start)

    def lost(self, found: pools.Lost) -> Failure:
        return self.failed(found.kind, f"{source_name(self.src)}: {found.reason}")

    def failed(self, kind: str, message: str, seconds: float = 0.0) -> Failure:
        return Failure(source_name(self.src), source_name(self.dst), kind, message, seconds)


def convert_many(
    sources: Place | Iterable[Place],
    folder: Place,
    *,
    workers: int = 1,
    client: Any = None,
    resume: bool = True,
    on_progress: Callable[[int, int, Conversion | Failure], object] | None = None,
    **options: Any,
) -> list[Conversion | Failure]:
    """Convert GeoTIFFs into a folder.

    Parameters
    ----------
    sources : path, URL, RemoteSource or iterable of them
        Files; local folders, searched for .tif and .tiff at any depth; local
        patterns such as ``"scenes/**/B0?.tif"``. Hidden files are left alone.
        Stores are not searched: each of their objects is named.
    folder : path, URL or RemoteSource
        Made if it is missing. The files keep their place below a source folder,
        or below the part of a pattern before its first wildcard.
    workers : int
        Processes. With more than one, each converts with one thread unless
        `threads` says otherwise.
    client : dask.distributed.Client, optional
        Converts on its cluster instead; paths must mean the same there. Files of
        lost workers are converted by others.
    resume : bool
        Leave a file alone that is valid, newer than its source, and has the
        shape, sample type, tiles and georeferencing that it would get. Where one
        of them is remote, its store's clock counts.
    on_progress : callable, optional
        Called in this process with the numbers of files done and in all, and the
        result, after each file.
    **options
        Of `convert`.

    Returns
    -------
    list of Conversion or Failure
        In the order of the sources. A file that fails is a row, not an exception.

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used, or two sources would become one file.
    FileNotFoundError
        If a folder or pattern has no GeoTIFF.
    UnsupportedError
        If there is a client, and no dask.distributed here or no rumi there.
    OSError
        If `folder` cannot be made.

    Notes
    -----
    Processes are spawned: a script that calls this needs the usual
    ``if __name__ == "__main__":``. One that dies takes only the file it was
    converting with it. After Ctrl-C the finished files stay, and the next call
    goes on.
    """
    pools.check(workers, client)
    if unknown := sorted(set(options) - _OPTIONS):
        raise TypeError(f"no such option: {', '.join(unknown)}")
    options["drop"] = sorted(parse_drop(options.get("drop", ())))
    if workers > 1 or client is not None:
        options.setdefault("threads", 1)
    jobs = [_Job(src, dst, resume, options) for src, dst in _pairs(sources, folder)]
    for parent in {os.path.dirname(job.dst) for job in jobs if isinstance(job.dst, str)}:
        os.makedirs(parent, exist_ok=True)
    results: list[Conversion | Failure | None] = [None] * len(jobs)
    parts = [[job] for job in jobs]
    running = pools.run(_run_all, parts, workers, client, _interrupt_once)
    for done, (number, (result,)) in enumerate(running, 1):
        if isinstance(result, pools.Lost):
            result = jobs[number].lost(result)
        results[number] = result
        if on_progress is not None:
            on_progress(done, len(jobs), result)
    return [result for result in results if result is not None]


def _pairs(sources: Place | Iterable[Place], folder: Place) -> list[tuple[Any, Any]]:
    """Return source and target of each file, in order, each source once."""
    if is_path(sources) or is_remote(sources):
        sources = [sources]  # type: ignore[list-item]
    root = named(folder)
    if is_remote(root):
        # Any name will do to see whether the store takes uploads at all.
        check_target(None, _below_folder(root, "a.rumi"), overwrite=True)
    targets: dict[str, tuple[Any, Any]] = {}
    for source in sources:  # type: ignore[union-attr]
        for src, relative in _expand(named(source)):
            dst = _below_folder(root, os.path.splitext(relative)[0] + ".rumi")
            other, _ = targets.setdefault(source_name(dst), (src, dst))
            if other != src:
                raise ValueError(
                    f"{source_name(other)} and {source_name(src)} would both become "
                    f"{source_name(dst)}; convert them apart"
                )
    return list(targets.values())


def _below_folder(root: Any, relative: str) -> Any:
    """Return the place of a file below a folder or a prefix of a store."""
    if not is_remote(root):
        return os.path.join(root, relative)
    parts = (root.path.rstrip("/"), relative.replace(os.sep, "/"))
    return replace(root, path="/".join(filter(None, parts)))


def _expand(source: Any) -> list[tuple[Any, str]]:
    """Return the files that a source means, each with its place below the source."""
    if is_remote(source):
        name = source.full_path or source_name(source).partition("?")[0].partition("://")[2]
        if name.endswith("/") or "*" in name or "/" not in source_name(source).partition("://")[2]:
            raise ValueError(
                f"{source_name(source)}: expected the URL of a GeoTIFF; folders and patterns are "
                "searched on local disks only"
            )
        return [(source, name.rpartition("/")[2])]
    if os.path.isdir(source):
        base = source
        found = _below(source)
    elif glob.has_magic(source) and not os.path.exists(source):
        base = _fixed_part(source)
        found = [path for path in glob.glob(source, recursive=True) if os.path.isfile(path)]
    else:
        return [(source, os.path.basename(source))]
    if not found:
        raise FileNotFoundError(f"{source}: no GeoTIFF found")
    return [(path, os.path.relpath(path, base or os.curdir)) for path in sorted(found)]


def _below(folder: str) -> list[str]:
    return [
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.lower().endswith(_SUFFIXES) and not name.startswith(".")
    ]


def _fixed_part(pattern: str) -> str:
    """Return the folders of a pattern before its first wildcard."""
    head = os.path.dirname(pattern)
    while glob.has_magic(head):
        head = os.path.dirname(head)
    return head


def _finished(job: _Job) -> Conversion | None:
    """Return the result of an earlier conversion if its file will do."""
    start = time.monotonic()
    try:
        written = modified(job.dst)
        container = read_container(open_source(job.dst))
    except (OSError, RumiError):
        return None
    if not _is_older(job.src, written):
        return None
    found = inspect(job.src, crs=job.options.get("crs"))
    if not is_remote(job.src) and not all(_is_older(file, written) for file in found.files):
        return None
    losses = accept(
        found.losses,
        parse_drop(job.options["drop"]),
        allow_no_crs=job.options.get("allow_no_crs", False),
        name=found.src,
    )
    if not _would_be(found, container, job.options):
        return None
    return Conversion(
        src=found.src,
        dst=source_name(job.dst),
        header=container.header,
        epsg=found.epsg,
        losses=losses,
        nodata=found.nodata,
        band_names=found.band_names,
        warnings=found.warnings,
        notes=found.notes,
        bytes_in=_size(job.src),
        bytes_out=container.header.file_size,
        seconds=time.monotonic() - start,
        skipped=True,
    )


def _is_older(place: Any, written: int | None) -> bool:
    changed = modified(place)
    return changed is not None and written is not None and changed < written


def _size(place: Any) -> int:
    return int(open_source(place).size) if is_remote(place) else os.stat(place).st_size


def _would_be(found: Inspection, container: Container, options: dict[str, Any]) -> bool:
    """Whether a file has the layout and georeferencing that a conversion would give it."""
    header = container.header
    tile = options.get("tile_size", 512)
    unit = options.get("frame_unit", "tile") if found.shape[0] > 1 else "tile"
    wanted = Georeferencing(found.epsg, found.transform, found.raster_type)
    return (
        (header.shape, header.dtype, header.unit) == (found.shape, found.dtype, unit)
        and header.tile_shape == (tuple(tile) if isinstance(tile, (tuple, list)) else (tile, tile))
        and georef.encode(container.georeferencing) == georef.encode(wanted)
    )


def _run_all(jobs: Sequence[_Job]) -> list[Conversion | Failure]:
    """Convert; importable by name, as a task must be."""
    return [job.run() for job in jobs]


def _interrupt_once() -> None:
    """Let the first Ctrl-C start the cleaning up of a worker, and no other one disturb it."""

    def handler(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)
