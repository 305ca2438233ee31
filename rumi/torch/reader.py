"""What both datasets are made of: catalogs, places of chips, valid pixels, the epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import torch
from torch.utils.data import default_collate

from rumi.catalog.align import check_aligned
from rumi.catalog.chips import Chips
from rumi.geotiff.nodata import nodata_mask
from rumi.torch.tensors import Layer, as_tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.catalog import Catalog

__all__ = ["RUN", "ChipOptions", "Reader"]

# Chips that are read together where nobody says how many.
RUN = 32

# How often a place is drawn for a random chip with too few valid pixels.
_ATTEMPTS = 16


class ChipOptions(TypedDict, total=False):
    """What both datasets take; see `ChipDataset`."""

    mode: str
    stride: Any
    bands: Any
    dtype: torch.dtype | None
    labels: Catalog | None
    label_bands: Any
    label_dtype: torch.dtype | None
    min_valid: float
    seed: int
    transform: Callable[..., Any] | None
    threads: int | None


class Reader:
    """Chips by number, as samples; see `rumi.torch.ChipDataset` for the options.

    Pickles as catalogs and options.
    """

    def __init__(self, catalog: Catalog, chip_size: Any, options: ChipOptions) -> None:
        if unknown := sorted(set(options) - set(ChipOptions.__annotations__)):
            raise TypeError(f"no such option: {', '.join(unknown)}")
        self.min_valid = float(options.get("min_valid", 0.0))
        if not 0 <= self.min_valid <= 1:
            raise ValueError(f"min_valid: expected 0 to 1, found {self.min_valid}")
        self.seed = options.get("seed", 0)
        self._place = {
            "size": chip_size,
            "stride": options.get("stride"),
            "mode": options.get("mode", "grid"),
            "seed": self.seed,
        }
        self._transform = options.get("transform")
        self._threads = options.get("threads")
        self._layers = [Layer(catalog, options.get("bands"), options.get("dtype"))]
        labels = options.get("labels")
        if labels is not None:
            layer = Layer(labels, options.get("label_bands"), options.get("label_dtype"))
            self._layers.append(layer)
        for layer in self._layers:
            layer.check()
        if labels is not None:
            check_aligned(catalog, labels)
        # Shared with workers, so that those that persist see it change.
        self.epoch = torch.zeros((), dtype=torch.int64).share_memory_()
        self._nodata: tuple[NDArray[Any], list[str | None]] | None = None
        self._chips: Chips | None = None
        # Made now, so that mistakes are found here, and forked workers share it.
        _ = self.chips

    @property
    def chips(self) -> Chips:
        """Where the chips are."""
        if self._chips is None:
            catalog = self._layers[0].catalog
            self._chips = Chips(
                catalog.headers, name=lambda row: catalog.paths([row])[0], **self._place
            )
        return self._chips

    def arrays(
        self, numbers: NDArray[np.int64], *, judge: bool
    ) -> tuple[list[NDArray[Any]], NDArray[np.float64]]:
        """Read chips.

        Parameters
        ----------
        numbers : ndarray of int64, shape (N,)
        judge : bool
            Whether to count valid pixels, and draw random chips with too few again.

        Returns
        -------
        arrays : list of ndarray, shape (N, B, H, W)
            Chips, and their labels if there are labels.
        shares : ndarray of float64, shape (N,)
            Shares of valid pixels; 1 where nobody counts.
        """
        epoch = int(self.epoch)
        rows, windows = self.chips.locate(numbers, epoch=epoch)
        images = self._layers[0].read(rows, windows, self._threads)
        shares = self._shares(images, rows) if judge else np.ones(len(numbers))
        for attempt in range(1, _ATTEMPTS if self.chips.mode == "random" else 1):
            poor = np.flatnonzero(shares < self.min_valid)
            if not poor.size:
                break
            _, places = self.chips.locate(numbers[poor], epoch=epoch, attempt=attempt)
            others = self._layers[0].read(rows[poor], places, self._threads)
            found = self._shares(others, rows[poor])
            better = found > shares[poor]
            chosen = poor[better]
            images[chosen], windows[chosen] = others[better], places[better]
            shares[chosen] = found[better]
        labels = [layer.read(rows, windows, self._threads) for layer in self._layers[1:]]
        return [images, *labels], shares

    def samples(self, arrays: list[NDArray[Any]], *, copy: bool = False) -> list[Any]:
        """Return chips as samples: tensors, pairs, or what the transform makes of them."""
        parts = [
            layer.tensors(array, copy=copy)
            for layer, array in zip(self._layers, arrays, strict=True)
        ]
        if self._transform is not None:
            return [self._transform(*sample) for sample in zip(*parts, strict=True)]
        return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))

    def batch(self, arrays: list[NDArray[Any]]) -> Any:
        """Return chips as a batch, what DataLoader makes of the samples, without a copy."""
        if self._transform is not None:
            return default_collate(self.samples(arrays))
        parts = [
            as_tensor(array, layer.dtype) for layer, array in zip(self._layers, arrays, strict=True)
        ]
        return parts[0] if len(parts) == 1 else parts

    def _shares(self, images: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the share of valid pixels: those where no band is nodata or NaN."""
        codes, texts = self._nodata_texts()
        found = np.empty(len(images))
        for place, (image, row) in enumerate(zip(images, rows.tolist(), strict=True)):
            lost = nodata_mask(image, texts[codes[row]]) | nodata_mask(image, "nan")
            found[place] = 1 - lost.any(axis=0).mean()
        return found

    def _nodata_texts(self) -> tuple[NDArray[Any], list[str | None]]:
        """Return which of some texts holds for each row, and the texts."""
        if self._nodata is None:
            catalog = self._layers[0].catalog
            texts: list[str | None] = [None]
            codes = np.zeros(len(catalog), np.int32)
            if "nodata" in catalog.columns:
                column = catalog.to_arrow(["nodata"]).column("nodata")
                encoded = column.combine_chunks().dictionary_encode()
                texts = [*encoded.dictionary.to_pylist(), None]
                codes = encoded.indices.fill_null(len(texts) - 1).to_numpy()
            self._nodata = codes, texts
        return self._nodata

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what the catalog tells again."""
        return {**self.__dict__, "_chips": None, "_nodata": None}
