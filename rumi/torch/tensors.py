"""Samples as tensors: which types torch has, and who owns the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rumi.encodings import from_pair
from rumi.errors import UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.catalog import Catalog

__all__ = ["Layer", "as_tensor"]

# Types that NumPy knows by other packages only: an integer of the same bits.
_VIEWS = {
    "bfloat16": np.int16,
    "float8_e4m3fn": np.uint8,
    "float8_e5m2": np.uint8,
    "float8_e8m0fnu": np.uint8,
}


def as_tensor(samples: NDArray[Any], dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return samples as a tensor.

    Parameters
    ----------
    samples : ndarray
        C-contiguous; of any type that rumi reads.
    dtype : torch.dtype, optional
        To convert to; the type of the samples by default.

    Returns
    -------
    Tensor
        On the memory of `samples` where nothing is converted.

    Raises
    ------
    UnsupportedError
        If torch has no such type, and `dtype` does not say what to convert to or
        the samples are complex.
    """
    kind = samples.dtype
    if kind.name in _VIEWS and hasattr(torch, kind.name):
        found = torch.from_numpy(samples.view(_VIEWS[kind.name])).view(getattr(torch, kind.name))
    elif kind.isbuiltin == 1:
        found = torch.from_numpy(samples)
    elif kind.names is not None:
        raise UnsupportedError(f"torch has no type for complex samples of two {kind[0]}")
    elif dtype is None:
        raise UnsupportedError(
            f"torch has no type for samples of {kind.name}; convert them with dtype=, such as "
            "torch.float32"
        )
    else:
        # By way of float32, which holds every number of the small types.
        found = torch.from_numpy(samples.astype(np.float32))
    return found if dtype is None else found.to(dtype)


class Layer:
    """One catalog as tensors: images, or labels."""

    def __init__(self, catalog: Catalog, bands: Any, dtype: torch.dtype | None) -> None:
        self.catalog = catalog
        self.bands = bands
        self.dtype = dtype

    def check(self) -> None:
        """Refuse a catalog whose chips cannot be in one batch, or be tensors."""
        catalog = self.catalog.load()
        if len(catalog) == 0:
            raise ValueError(f"{catalog.name}: expected at least one row, found none")
        fields = catalog.headers.fields
        names = ["sample_format", "bits_per_sample"]
        if self.bands is None:
            names.append("samples_per_pixel")
        for name in names:
            wrong = np.flatnonzero(fields[name] != fields[name][0])
            if wrong.size:
                row = int(wrong[0])
                raise ValueError(
                    f"row {row} ({catalog.paths([row])[0]}): {name}: expected {fields[name][0]} "
                    f"as of row 0, found {fields[name][row]}"
                )
        kind = from_pair(*(int(fields[name][0]) for name in names[:2])).dtype
        as_tensor(np.zeros(1, kind), self.dtype)

    def read(self, rows: NDArray[Any], windows: NDArray[Any], threads: int | None) -> NDArray[Any]:
        """Return chips, shape (N, B, H, W)."""
        return self.catalog.read(rows, windows, bands=self.bands, threads=threads)

    def tensors(self, chips: NDArray[Any], *, copy: bool = False) -> list[torch.Tensor]:
        """Return each chip of a batch as a tensor with a storage of its own.

        The storages are parts of one block of memory, which lives as long as one of
        them does, unless they are copied or converted.
        """
        copied = copy and self.dtype is None and len(chips) > 1
        # By NumPy: torch starts threads for it, which wait for each other on a busy machine.
        return [as_tensor(chip.copy() if copied else chip, self.dtype) for chip in chips]
