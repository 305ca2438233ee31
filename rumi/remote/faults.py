"""What goes wrong between here and a server.

Clients say what happened with an `AttemptError`; whoever asked decides whether to
try again and, in the end, raises the `SourceError` that users see.
"""

from __future__ import annotations

import errno
import re

from rumi.errors import MissingObjectError, SourceError

__all__ = ["AttemptError", "attempt_error", "pause", "source_error"]

# Statuses of a server that may do better next time.
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})

_STATUSES = {
    "FileNotFoundError": 404,
    "NotFoundError": 404,
    "PermissionDeniedError": 403,
    "PermissionError": 403,
    "UnauthenticatedError": 401,
    "PreconditionError": 412,
    "NotModifiedError": 304,
}

# obstore's words: the status after what was asked, the kind of a fault of the network,
# and the innermost reason.
_ASKED = re.compile(r"^.*?Error performing .*? - ", re.DOTALL)
_STATUS = re.compile(r"status code: (\d{3})")
_KIND = re.compile(r"\bkind: (Timeout|Connect|Request|Interrupted|Decode)\b")
_REASON = re.compile(r"(?:message|error): \"?([^\",\n]+)\"?,")
_KINDS = {
    "Timeout": "timed out",
    "Connect": "cannot connect",
    "Request": "the connection failed",
    "Interrupted": "the connection was broken",
    "Decode": "the connection was broken",
}
# Paths of the services that tell a machine in a cloud who it is.
_METADATA = re.compile(r"Error performing \w+ \S*/(latest/|computeMetadata|metadata/identity)")
_XML = re.compile(r"<(Code|Message)>(.*?)</\1>", re.DOTALL)
_LONGEST_REASON = 300

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


class AttemptError(Exception):
    """One failed attempt to get a range.

    Parameters
    ----------
    reason : str
        In one line, without the URL.
    status : int or None
        HTTP status, where there was an answer.
    transient : bool
        Whether another attempt makes sense.
    """

    def __init__(self, reason: str, status: int | None = None, *, transient: bool = False) -> None:
        # Where there was an answer, a server's own words begin with the number too.
        number = f"{status} "
        said = status is not None and (reason.startswith(number) or status == 200)
        super().__init__(f"HTTP status {status}: {reason.removeprefix(number)}" if said else reason)
        self.status = status
        self.transient = transient


def attempt_error(error: Exception) -> AttemptError:
    """Turn what a client raised into an `AttemptError`."""
    if isinstance(error, TimeoutError):
        return AttemptError("timed out", transient=True)
    text, _, details = str(error).partition("\n\nDebug source:")
    status = _STATUSES.get(type(error).__name__) or getattr(error, "status", None)
    found = _STATUS.search(text)
    if status is None and found is not None:
        status = int(found[1])
    if "Range request not supported" in text:
        return AttemptError("the server ignores ranges and sent the whole object", 200)
    kind = _KIND.search(details)
    if _METADATA.search(text):
        # A busy service may have them next time; where nothing listens there is none.
        busy = status in _TRANSIENT or (kind is not None and kind[1] != "Connect")
        return AttemptError(
            "no credentials were given, none are in the environment, and no metadata service has "
            "any; a public object is read with anonymous=True (--anonymous)",
            transient=busy,
        )
    if status is None and kind is not None:
        inner = _REASON.findall(details)
        return AttemptError(_KINDS[kind[1]] + (f" ({inner[-1]})" if inner else ""), transient=True)
    return AttemptError(
        _one_line(text) or type(error).__name__, status, transient=_worth_it(error, status)
    )


def _worth_it(error: Exception, status: int | None) -> bool:
    if status is not None:
        return status in _TRANSIENT
    # The clients of fsspec: aiohttp names what broke without a status.
    return isinstance(error, ConnectionError) or type(error).__module__.startswith("aiohttp")


def _one_line(text: str) -> str:
    """Return the reason without what was asked, which may hold a signature."""
    reason = " ".join(_ASKED.sub("", text).split())
    reason = reason.removeprefix("Server returned non-2xx status code: ").rstrip(": ")
    said = [words for _, words in _XML.findall(reason)]
    if said:
        reason = ": ".join([reason.partition(":")[0], *said])
    return reason if len(reason) <= _LONGEST_REASON else reason[: _LONGEST_REASON - 3] + "..."


def pause(attempt: int) -> float:
    """Return the seconds to wait after a failed attempt, the first one being 0.

    Doubles each time, and differs between clients that failed together.
    """
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**attempt)
    import random

    return longest * random.uniform(0.5, 1.0)  # noqa: S311


def source_error(
    name: str, start: int, stop: int, fault: AttemptError, retries: int = 0
) -> SourceError:
    """Return the error of a range that could not be fetched.

    Its attributes ``range`` and ``status`` hold what the text says.
    """
    tried = f" (after {retries + 1} attempts)" if retries else ""
    text = f"{name}: bytes {start} to {stop} were not fetched: {fault}{tried}"
    error = MissingObjectError(text) if fault.status == 404 else SourceError(text)
    if fault.status == 404:
        error.errno = errno.ENOENT
    error.__dict__.update(range=(start, stop), status=fault.status)
    return error
