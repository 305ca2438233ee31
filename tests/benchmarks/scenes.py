"""The pixels that benchmarks read: real scenes, or the one that ships with the package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data" / "bench"
SHIPPED = ROOT / "rumi" / "data"


def landsat() -> tuple[str, np.ndarray]:
    """Return a name and a scene of uint16, shape (3, 1024, 1024).

    The shipped scene is smaller: it is repeated, with noise of one count so
    that no repetition compresses better than the scene does.
    """
    import rasterio

    real = SHARED / "landsat8_3band_utm21.tif"
    if real.exists():
        with rasterio.open(real) as source:
            return f"real scene {real.name}", source.read()
    (shipped,) = SHIPPED.glob("*.tif")
    with rasterio.open(shipped) as source:
        scene = source.read()
    noise = np.random.default_rng(0).integers(0, 2, (3, 1024, 1024)).astype(np.uint16)
    repeats = (1, -(-1024 // scene.shape[1]), -(-1024 // scene.shape[2]))
    return f"shipped scene {shipped.name}, repeated with noise", (
        np.tile(scene, repeats)[:, :1024, :1024] + noise
    )


def scenes(quick: bool) -> Iterator[tuple[str, np.ndarray]]:
    """Yield names and samples of all real scenes, or of the one that ships with the package.

    Complex integers, which rasterio reads as floats, are pairs of integers again.
    """
    import rasterio

    paths = sorted(SHARED.glob("*.tif"))
    if not paths:
        yield landsat()
        return
    for path in paths[:: 7 if quick else 1]:
        with rasterio.open(path) as source:
            samples = source.read()
            if source.dtypes[0] == "complex_int16":
                parts = np.stack([samples.real, samples.imag], axis=-1).astype("<i2")
                samples = parts.view([("real", "<i2"), ("imag", "<i2")])[..., 0]
        yield path.stem, samples


def many_frames(rows: int, cols: int, tile: int = 8) -> np.ndarray:
    """Return an image of rows x cols tiles whose frames differ in size."""
    rng = np.random.default_rng(1)
    image = rng.integers(0, 200, (1, rows * tile, cols * tile)).astype(np.uint16)
    image[:, :, ::3] = 7
    return image


def windows(count: int, side: int, shape: tuple[int, int], seed: int = 2) -> list[list[int]]:
    """Return random square windows inside an image."""
    rng = np.random.default_rng(seed)
    return [
        [
            int(rng.integers(0, shape[0] - side + 1)),
            int(rng.integers(0, shape[1] - side + 1)),
            side,
            side,
        ]
        for _ in range(count)
    ]
