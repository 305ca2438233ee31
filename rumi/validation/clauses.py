"""Registering checks: one function a clause, in the order of the specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from rumi.validation.report import Broken, Clause, Finding, NotChecked

__all__ = ["Registry"]

Check: TypeAlias = Callable[[Any], None]
_Function = TypeVar("_Function", bound=Check)


class Registry:
    """The clauses about one kind of thing.

    Parameters
    ----------
    prefix : str
        Starts the id of each clause.
    section : str
        Heading of the specification that the clauses stand under.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.checks: list[tuple[Clause, Check]] = []

    def clause(self, name: str, section: str, text: str) -> Callable[[_Function], _Function]:
        """Register the decorated function as the check of a clause."""

        def register(function: _Function) -> _Function:
            self.checks.append((Clause(f"{self._prefix}.{name}", section, text), function))
            return function

        return register

    def run(self, facts: Any) -> list[Finding]:
        """Return a finding for each clause."""
        return [_finding(clause, check, facts) for clause, check in self.checks]

    def skip(self, reason: str) -> list[Finding]:
        """Return findings that say why nothing was checked."""
        return [Finding(clause, "not checked", reason) for clause, _ in self.checks]


def _finding(clause: Clause, check: Check, facts: Any) -> Finding:
    try:
        check(facts)
    except Broken as broken:
        return Finding(
            clause, "failed", broken.reason, broken.offset, broken.expected, broken.found
        )
    except NotChecked as missing:
        return Finding(clause, "not checked", str(missing))
    return Finding(clause, "passed")
