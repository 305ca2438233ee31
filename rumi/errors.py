"""Every exception that rumi raises on its own account.

Mistakes of the caller (a window outside the image, a band that is not an
integer) are plain :class:`TypeError`, :class:`ValueError` or
:class:`IndexError`. Whatever is wrong with a file, a header blob, a frame or a
source is a :class:`RumiError`, so one ``except`` clause covers bad data::

    RumiError
    ├── FormatError (ValueError)      the bytes break the specification
    │   ├── HeaderError               ... in the header blob
    │   └── TruncatedError            ... because they end too early
    ├── UnsupportedError (NotImplementedError)
    ├── CodecError (RuntimeError)     a frame does not decode, or not to its tile
    ├── StaleHeaderError              the header does not belong to the file
    └── SourceError (OSError)         bytes could not be fetched
        └── MissingObjectError (FileNotFoundError)  ... since there is no such object
"""

__all__ = [
    "CodecError",
    "FormatError",
    "HeaderError",
    "MissingObjectError",
    "RumiError",
    "SourceError",
    "StaleHeaderError",
    "TruncatedError",
    "UnsupportedError",
]


class RumiError(Exception):
    """Base of every error about a file, header, frame or source."""


class FormatError(RumiError, ValueError):
    """The bytes break a clause of the specification."""


class HeaderError(FormatError):
    """The header blob breaks a clause of *Header blob* in the specification."""


class TruncatedError(FormatError):
    """The file or blob ends before the bytes its own fields announce."""


class UnsupportedError(RumiError, NotImplementedError):
    """The input is meaningful but rumi, or this installation, cannot carry it."""


class CodecError(RumiError, RuntimeError):
    """A frame does not decode, or does not decode to the samples of its tile."""


class StaleHeaderError(RumiError):
    """The header was made for another state of the file than the one read."""


class SourceError(RumiError, OSError):
    """The bytes of a source could not be fetched."""


class MissingObjectError(SourceError, FileNotFoundError):
    """There is no such object in its store."""
