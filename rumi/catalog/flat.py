"""Many byte strings in one buffer: header blobs and paths of a catalog, without an object a row."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi._core import RECORD, parse_headers
from rumi.errors import FormatError, HeaderError, RumiError
from rumi.header import Header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

__all__ = ["FlatBytes", "Headers"]


class FlatBytes:
    """Byte strings that lie one after another.

    Attributes
    ----------
    data : ndarray of uint8, shape (n_bytes,)
    offsets : ndarray of int64, shape (N + 1,)
        Where each string starts in `data`, and where the last one ends.

    Notes
    -----
    Processes that are forked share both arrays: nothing in them counts references.
    """

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.data = data
        self.offsets = offsets

    @classmethod
    def from_arrow(cls, column: Any, name: str) -> FlatBytes:
        """Take a column of Arrow, without copying what is in one piece already.

        Parameters
        ----------
        column : pyarrow.ChunkedArray
            Of any string or binary type.
        name : str
            What errors call it.

        Raises
        ------
        FormatError
            If a value is missing, or the type is another.
        """
        import pyarrow as pa

        if column.null_count:
            row = column.is_null().index(True).as_py()
            raise FormatError(f"{name}: expected a value in every row, found none in row {row}")
        try:
            # Through the type of the same kind: Arrow casts text to bytes of the same width only.
            kind = pa.large_string() if _is_text(column.type) else pa.large_binary()
            array = column.cast(kind).combine_chunks()
        except pa.ArrowNotImplementedError as error:
            raise FormatError(f"{name}: expected text or bytes, found {column.type}") from error
        if isinstance(array, pa.ChunkedArray):
            array = array.chunk(0) if array.num_chunks else pa.array([], kind)
        _, offsets, data = array.buffers()
        if len(array) == 0 or offsets is None:
            return cls(np.empty(0, np.uint8), np.zeros(1, np.int64))
        where = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        held = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        return cls(held, where)

    def __len__(self) -> int:
        """Return the number of strings."""
        return len(self.offsets) - 1

    def at(self, row: int) -> bytes:
        """Return one string; `row` is inside 0..N-1."""
        start, stop = self.offsets[row : row + 2]
        return self.data[start:stop].tobytes()


class Headers(FlatBytes):
    """The header blobs of a catalog, in one buffer.

    ``headers[row]`` is the Header of a row; `fields` holds those of all rows as
    columns.

    Parameters
    ----------
    data, offsets
        As of `FlatBytes`.
    """

    def __getitem__(self, row: int) -> Header:
        """Parse one blob.

        Raises
        ------
        HeaderError
            If it breaks the specification.
        """
        return Header(self.at(row))

    def __iter__(self) -> Iterator[Header]:
        """Parse one blob after another."""
        return (self[row] for row in range(len(self)))

    @cached_property
    def fields(self) -> NDArray[Any]:
        """The fields of all blobs: a structured array, shape (N,).

        ``fields["image_width"]`` is a column. Besides the specification's names
        there are ``frame_count``, ``base_frame_offset`` and ``file_size`` (bytes),
        ``itemsize`` (bytes of a sample in memory) and ``valid``; a row that is
        not valid is zero in all columns. Parsed at the first need, without the GIL.
        """
        out = np.zeros(len(self), np.dtype(list(RECORD)))
        parse_headers(self.data, self.offsets, out)
        out.flags.writeable = False
        return out

    @property
    def shapes(self) -> NDArray[np.int64]:
        """Bands, height and width of all images in pixels, shape (N, 3)."""
        names = ("samples_per_pixel", "image_length", "image_width")
        return np.stack([self.fields[name] for name in names], axis=1).astype(np.int64)

    @property
    def invalid(self) -> NDArray[np.intp]:
        """Rows whose blob breaks the specification."""
        return np.flatnonzero(self.fields["valid"] == 0)

    def check(self, name: Callable[[int], str]) -> None:
        """Refuse blobs that break the specification.

        Parameters
        ----------
        name : callable
            From a row to what errors call it.

        Raises
        ------
        HeaderError
            If there is one; the text is about the first, and says how many there are.
        """
        rows = self.invalid
        if not rows.size:
            return
        more = f" (and {rows.size - 1} rows more)" if rows.size > 1 else ""
        row = int(rows[0])
        try:
            found = self[row]
        except RumiError as error:
            raise HeaderError(f"row {row} ({name(row)}): {error}{more}") from error
        raise HeaderError(f"row {row} ({name(row)}): {found!r} was refused{more}")


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view"
    )
