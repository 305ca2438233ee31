"""Many images: stacks on one grid, and collections that share none.

The classes are those of the AI4EO data model: grid-aligned Images stack into a
Cube of shape (N, B, Y, X); Images that do not share a grid are an
ImageCollection; a CubeCollection is what its aligned groups make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from rumi._core import Plan
from rumi.engine import check_output, shared_array
from rumi.image import Image
from rumi.indexing import axis, finish, is_integer, split_key
from rumi.read import read_many

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Cube", "CubeCollection", "ImageCollection"]

# Files of a stack that are open at the same time.
_OPEN_FILES = 64


@dataclass(frozen=True, slots=True)
class _Grid:
    """What images must share to stack."""

    shape: tuple[int, int, int]
    tile_shape: tuple[int, int]
    encoding: str
    epsg: int | None
    transform: tuple[float, ...] | None

    @classmethod
    def of(cls, image: Image) -> _Grid:
        return cls(
            image.shape,
            image.header.tile_shape,
            image.header.encoding.dtype_name,
            image.epsg,
            image.transform,
        )

    def difference(self, other: _Grid, tolerance: float) -> str | None:
        """Return the first property that differs, in words, or None."""
        for name, mine, theirs in (
            ("shape", self.shape, other.shape),
            ("tile shape", self.tile_shape, other.tile_shape),
            ("sample encoding", self.encoding, other.encoding),
            ("EPSG code", self.epsg, other.epsg),
        ):
            if mine != theirs:
                return f"{name}: expected {mine}, found {theirs}"
        if not _same_transform(self.transform, other.transform, tolerance):
            return f"transform: expected {self.transform}, found {other.transform}"
        return None


def _same_transform(
    mine: tuple[float, ...] | None, theirs: tuple[float, ...] | None, tolerance: float
) -> bool:
    if mine is None or theirs is None or tolerance == 0:
        return mine == theirs
    return all(abs(a - b) <= tolerance for a, b in zip(mine, theirs, strict=True))


def _as_images(images: Iterable[Any]) -> tuple[Image, ...]:
    return tuple(image if isinstance(image, Image) else Image(image) for image in images)


class ImageCollection(Sequence[Image]):
    """Images in an order, on whatever grids.

    Parameters
    ----------
    images : iterable of Image, path or bytes-like
    """

    def __init__(self, images: Iterable[Any]) -> None:
        self._images = _as_images(images)

    @overload
    def __getitem__(self, index: int) -> Image: ...
    @overload
    def __getitem__(self, index: slice) -> ImageCollection: ...
    def __getitem__(self, index: int | slice) -> Image | ImageCollection:
        """Return an image, or a collection of some."""
        if isinstance(index, slice):
            return ImageCollection(self._images[index])
        return self._images[index]

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._images)

    def cubes(self, *, tolerance: float = 0.0) -> CubeCollection:
        """Group the images that share a grid, in the order of their first ones.

        Parameters
        ----------
        tolerance : float
            Largest difference of a transform coefficient, in units of the CRS.
        """
        groups: list[tuple[_Grid, list[Image]]] = []
        for image in self._images:
            grid = _Grid.of(image)
            for known, members in groups:
                if known.difference(grid, tolerance) is None:
                    members.append(image)
                    break
            else:
                groups.append((grid, [image]))
        return CubeCollection(Cube(members, tolerance=tolerance) for _, members in groups)

    def __repr__(self) -> str:
        """Show how many images there are."""
        return f"<rumi.ImageCollection of {len(self)} images>"


class Cube:
    """Grid-aligned images as one tensor of shape (N, B, Y, X).

    Parameters
    ----------
    images : iterable of Image, path or bytes-like
        At least one. All of one shape, tile size, sample encoding, CRS and
        transform.
    tolerance : float
        Largest difference of a transform coefficient, in units of the CRS.

    Raises
    ------
    ValueError
        If there is no image, or one differs: the text names it and the property.
    """

    def __init__(self, images: Iterable[Any], *, tolerance: float = 0.0) -> None:
        self.images = _as_images(images)
        if not self.images:
            raise ValueError("a cube has at least one image, found none")
        first = _Grid.of(self.images[0])
        for number, image in enumerate(self.images[1:], 1):
            difference = first.difference(_Grid.of(image), tolerance)
            if difference is not None:
                raise ValueError(
                    f"image {number} ({image.name}) is not aligned with image 0 "
                    f"({self.images[0].name}): {difference}"
                )

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Images, bands, height and width."""
        return (len(self.images), *self.images[0].shape)

    @property
    def ndim(self) -> int:
        """Always 4."""
        return 4

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of a sample."""
        return self.images[0].dtype

    @property
    def epsg(self) -> int | None:
        """EPSG code that all images share."""
        return self.images[0].epsg

    @property
    def transform(self) -> tuple[float, ...] | None:
        """Transform of the first image."""
        return self.images[0].transform

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)

    def read(
        self,
        *,
        images: Any = None,
        bands: Any = None,
        window: Any = None,
        out: Any = None,
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Read the same window and bands of some images, in one batch.

        Parameters
        ----------
        images : slice or sequence of int, optional
            Zero-based; all by default.
        bands, window, out, threads : optional
            As of `rumi.read_many`.

        Returns
        -------
        ndarray, shape (N, B, H, W)

        Raises
        ------
        TypeError, ValueError, IndexError, RumiError, OSError
            As `rumi.read_many`.
        """
        chosen = self._chosen(images)
        plan = Plan(chosen[0].header, bands, window)
        shape = (len(chosen), *plan.shape)
        array = (
            np.empty(shape, self.dtype)
            if out is None
            else check_output(shared_array(out), shape, self.dtype)
        )
        for start in range(0, len(chosen), _OPEN_FILES):
            part = chosen[start : start + _OPEN_FILES]
            read_many(
                [image.opened() for image in part],
                [image.header for image in part],
                None if window is None else [window] * len(part),
                bands=bands,
                out=array[start : start + len(part)],
                threads=threads,
            )
        return array if out is None else out

    def _chosen(self, images: Any) -> list[Image]:
        if images is None:
            return list(self.images)
        if isinstance(images, slice):
            part = axis(images, len(self.images), "image")
            return list(self.images[part.start : part.stop : part.step])
        chosen = [self.images[axis(number, len(self.images), "image").start] for number in images]
        if not chosen:
            raise ValueError(f"images selects nothing; the cube has {len(self.images)}")
        return chosen

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Read ``cube[images, bands, rows, cols]``, as `Image` reads its three axes.

        Each axis is selected on its own: a sequence of bands beside an integer
        column does not move the axes, as it would in NumPy.
        """
        first, bands, rows, cols = split_key(key, self.ndim)
        if is_integer(first):
            number = axis(first, len(self.images), "image").start
            return self.images[number][bands, rows, cols]
        row = axis(rows, self.shape[2], "row")
        col = axis(cols, self.shape[3], "column")
        window = (row.start, col.start, row.stop - row.start, col.stop - col.start)
        return finish(self.read(images=first, bands=bands, window=window), bands, row, col)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Read everything.

        Raises
        ------
        ValueError
            If ``copy=False``: pixels are always decoded into new memory.
        """
        if copy is False:
            raise ValueError("reading a cube always makes a new array")
        array = self.read()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __repr__(self) -> str:
        """Show shape and sample type; reads nothing."""
        sides = " x ".join(map(str, self.shape))
        return f"<rumi.Cube {sides} {self.images[0].header.encoding.dtype_name}>"

    def _repr_html_(self) -> str:
        from rumi.display import cube_html

        # Each image's was read when the cube was made.
        first = self.images[0]
        return cube_html([image.name for image in self.images], first.header, first.georeferencing)


class CubeCollection(Sequence[Cube]):
    """Cubes in an order; `ImageCollection.cubes` makes them.

    Parameters
    ----------
    cubes : iterable of Cube
    """

    def __init__(self, cubes: Iterable[Cube]) -> None:
        self._cubes = tuple(cubes)
        for number, cube in enumerate(self._cubes):
            if not isinstance(cube, Cube):
                raise TypeError(f"cube {number}: expected a Cube, found {type(cube).__name__}")

    @overload
    def __getitem__(self, index: int) -> Cube: ...
    @overload
    def __getitem__(self, index: slice) -> CubeCollection: ...
    def __getitem__(self, index: int | slice) -> Cube | CubeCollection:
        """Return a cube, or a collection of some."""
        if isinstance(index, slice):
            return CubeCollection(self._cubes[index])
        return self._cubes[index]

    def __len__(self) -> int:
        """Return the number of cubes."""
        return len(self._cubes)

    def __iter__(self) -> Iterator[Cube]:
        """Return the cubes in order."""
        return iter(self._cubes)

    def __repr__(self) -> str:
        """Show the shapes of the cubes."""
        shapes = ", ".join(" x ".join(map(str, cube.shape)) for cube in self._cubes[:4])
        more = ", ..." if len(self) > 4 else ""
        return f"<rumi.CubeCollection of {len(self)}: {shapes}{more}>"
