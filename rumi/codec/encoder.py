"""Encoders: one compressor, one frame after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from openzl import ext as openzl

from rumi._core import openzl_reason
from rumi.codec.graphs import build
from rumi.codec.steps import Geometry
from rumi.errors import CodecError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from rumi.codec.recipes import Recipe

__all__ = ["FRAME_MAGIC", "FRAME_VERSION", "NUMBERS", "FrameEncoder"]

# OpenZL's frame format version, pinned for every frame rumi writes.
FRAME_VERSION = 24

# The first four bytes of a frame, little endian, are this and the version.
FRAME_MAGIC = 0xD7B1A5C0

# OpenZL's word for "write this checksum", and for "fall back where a graph fails".
_ON = 1

NUMBERS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class FrameEncoder:
    """Compress the samples of one frame after another; one compressor for all.

    Parameters
    ----------
    recipe : Recipe or callable
        What to do, or a builder: called with an `openzl.ext.Compressor`, it
        returns the GraphID to start with.
    width : {1, 2, 4, 8}
        Bytes of one number.
    predictor : callable, optional
        A node of another library: called with a compressor and the graph of the
        recipe, it returns the graph that runs it first.

    Notes
    -----
    Writes Numeric frames of one output at format version 24 with both OpenZL
    checksums. For one thread at a time; OpenZL's binding holds the GIL.
    """

    def __init__(
        self,
        recipe: Recipe | Callable[[Any], Any],
        width: int,
        predictor: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        self._name = getattr(recipe, "__name__", recipe)
        self._dtype = NUMBERS[width]
        self._geometry = Geometry()
        self._compressor = openzl.Compressor()
        if callable(recipe):
            graph = recipe(self._compressor)
        else:
            graph = build(self._compressor, recipe, self._geometry, predictor)
        self._compressor.select_starting_graph(graph)
        self._context = openzl.CCtx()
        self._context.ref_compressor(self._compressor)
        for parameter, value in (
            (openzl.CParam.StickyParameters, 1),
            (openzl.CParam.FormatVersion, FRAME_VERSION),
            (openzl.CParam.ContentChecksum, _ON),
            (openzl.CParam.CompressedChecksum, _ON),
            # A step that cannot take some stream is replaced by a generic graph.
            (openzl.CParam.PermissiveCompression, _ON),
        ):
            self._context.set_parameter(parameter, value)

    def encode(self, samples: NDArray[Any]) -> bytes:
        """Return the frame of samples.

        Parameters
        ----------
        samples : ndarray of unsigned, shape (h, w) or (B, h, w), C-contiguous
            Numbers of 16 bytes (complex128) are taken as two of 8.

        Raises
        ------
        CodecError
            If OpenZL fails.
        """
        self._geometry.set(samples.shape)
        numbers = samples.reshape(-1).view(self._dtype)
        if not numbers.flags.aligned:
            # As in a memory map that begins in the middle of a number.
            numbers = numbers.copy()
        try:
            frame: bytes = self._context.compress([openzl.Input(openzl.Type.Numeric, numbers)])
        except RuntimeError as error:
            raise CodecError(
                f"OpenZL cannot compress {numbers.size} numbers of {numbers.itemsize} bytes with "
                f"{self._name}: {openzl_reason(error)}"
            ) from error
        finally:
            if self._geometry.interrupts:
                interrupt = self._geometry.interrupts[0]
                self._geometry.interrupts.clear()
                raise interrupt
        return frame
