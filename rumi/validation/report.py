"""What a validation says: one finding for each clause of the specification."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["Broken", "Clause", "Finding", "NotChecked", "Report", "Status"]

Status = Literal["passed", "failed", "not checked"]


@dataclass(frozen=True, slots=True)
class Clause:
    """One demand of the specification.

    Attributes
    ----------
    id : str
        Stable name, such as ``file.bigtiff``.
    section : str
        Heading in the specification.
    text : str
        What is demanded, in its words as far as they fit a line.
    """

    id: str
    section: str
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one clause.

    Attributes
    ----------
    clause : Clause
    status : {"passed", "failed", "not checked"}
    reason : str
        Why it failed or could not be checked; empty where it passed.
    offset : int or None
        Byte of the file, or of the blob for clauses of ``blob.``.
    expected, found : str
        Of a failed clause.
    """

    clause: Clause
    status: Status
    reason: str = ""
    offset: int | None = None
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        """Write one line."""
        line = f"{self.status:11}  {self.clause.id}: {self.clause.text}"
        if self.status == "passed":
            return line
        where = "" if self.offset is None else f" at byte {self.offset}"
        values = f"expected {self.expected}, found {self.found}" if self.expected else ""
        return f"{line} [{'; '.join(filter(None, (self.reason, values)))}{where}]"


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of one file, in the order of the specification.

    Attributes
    ----------
    name : str
        The file.
    findings : tuple of Finding
    """

    name: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether no clause failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that failed."""
        return tuple(finding for finding in self.findings if finding.status == "failed")

    def __bool__(self) -> bool:
        """Whether no clause failed."""
        return self.ok

    def __str__(self) -> str:
        """Write the verdict and a line a clause."""
        counts = {
            status: sum(finding.status == status for finding in self.findings)
            for status in ("passed", "failed", "not checked")
        }
        summary = ", ".join(f"{count} {status}" for status, count in counts.items())
        verdict = "ok" if self.ok else "not compliant"
        return "\n".join((f"{self.name}: {verdict} ({summary})", *map(str, self.findings)))

    def to_dict(self) -> dict[str, Any]:
        """Return what `json.dumps` writes."""
        return {
            "name": self.name,
            "ok": self.ok,
            "findings": [asdict(finding) for finding in self.findings],
        }


class Broken(Exception):  # noqa: N818 - not an error of the program
    """Raised by a check whose clause does not hold."""

    def __init__(
        self, expected: object, found: object, *, offset: int | None = None, reason: str = ""
    ) -> None:
        super().__init__(f"expected {expected}, found {found}")
        self.expected = str(expected)
        self.found = str(found)
        self.offset = offset
        self.reason = reason


class NotChecked(Exception):  # noqa: N818 - not an error of the program
    """Raised by a check that has nothing to look at."""
