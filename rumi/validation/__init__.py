"""Checking a file clause by clause against the specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from rumi.source import open_source
from rumi.validation.blob_clauses import BLOB, MATCH, BlobAndFile
from rumi.validation.facts import BlobFacts, FileFacts
from rumi.validation.file_clauses import FILE
from rumi.validation.frame_clauses import DECODED, FRAMES, FrameFacts
from rumi.validation.remote import at_hand, buffered
from rumi.validation.report import Clause, Finding, Report

if TYPE_CHECKING:
    from rumi.source import SourceLike

__all__ = ["Clause", "Depth", "Finding", "Report", "clauses", "validate"]

Depth = Literal["none", "headers", "decode"]


def clauses() -> list[Clause]:
    """Return every clause that `validate` looks at, in the order of its report."""
    return [
        clause for registry in (FILE, FRAMES, DECODED, BLOB, MATCH) for clause, _ in registry.checks
    ]


def validate(
    source: SourceLike,
    header: Any = None,
    *,
    frames: Depth = "decode",
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Check a file, and its header blob where there is one, clause by clause.

    Parameters
    ----------
    source : path, URL, RemoteSource or bytes-like
        The file. A remote one is downloaded, into the folder for temporary files,
        where its frames are looked into.
    header : Header or bytes-like, optional
        Its blob. Any bytes will do: what is wrong with them is in the report.
    frames : {"none", "headers", "decode"}
        How far to look into the frames: not at all, at their own headers, or at
        every sample.
    progress : callable, optional
        Called with the numbers of frames decoded and in all.

    Returns
    -------
    Report
        One finding for each clause; `Report.ok` where none failed. A broken
        file gives findings, not exceptions.

    Raises
    ------
    OSError
        If the file cannot be read.
    TypeError, ValueError
        If an argument is of another kind.
    """
    if frames not in ("none", "headers", "decode"):
        raise ValueError(f"frames is 'none', 'headers' or 'decode', found {frames!r}")
    opened = buffered(open_source(source))
    file = FileFacts(opened)
    findings = FILE.run(file)
    with at_hand(file, wanted=frames != "none"):
        inside = FrameFacts(file, progress)
        skipped = "frames were not asked for"
        findings += FRAMES.skip(skipped) if frames == "none" else FRAMES.run(inside)
        findings += DECODED.run(inside) if frames == "decode" else DECODED.skip(skipped)
    if header is None:
        findings += BLOB.skip("no blob was given") + MATCH.skip("no blob was given")
    else:
        blob = BlobFacts(bytes(memoryview(bytes(header))))
        findings += BLOB.run(blob) + MATCH.run(BlobAndFile(blob, file))
    return Report(str(opened.name), tuple(findings))
