"""Planning a read: window x bands -> frames, byte ranges, copy rectangles.

The one place that decides what a window and a band selection mean, so every
route (arrays, Torch, xarray, remote) refuses the same input with the same
words. Work and memory are proportional to the frames touched.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc

from rumi._core cimport layout
from rumi._core.header cimport BlobHeader

from operator import index as _operator_index


cdef object _integer(value, str what):
    """Return an integer of any width; bool and float are mistakes, not integers."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        raise TypeError(f"{what} is an integer, found bool")
    try:
        return _operator_index(value)
    except TypeError:
        raise TypeError(f"{what} is an integer, found {type(value).__name__}") from None


cdef object _window_parts(window):
    """Return (row, column, height, width) from a 4-sequence or a rasterio-like window."""
    if type(window) is tuple and len(window) == 4:
        return window
    if hasattr(window, "row_off"):
        try:
            return window.row_off, window.col_off, window.height, window.width
        except AttributeError as error:
            raise TypeError(
                f"a window object has row_off, col_off, height and width; {error}"
            ) from None
    if isinstance(window, (str, bytes)) or not hasattr(window, "__len__"):
        raise TypeError(
            "a window is (row, column, height, width) or has row_off, col_off, height and width; "
            f"found {type(window).__name__}"
        )
    if len(window) != 4:
        raise TypeError(f"a window is (row, column, height, width), found {len(window)} values")
    return tuple(window)


cdef list _band_list(bands, int64_t count):
    """Return the selected bands, zero-based, in the order asked for."""
    cdef list selected
    if isinstance(bands, slice):
        for bound in (bands.start, bands.stop):
            if bound is not None and not 0 <= _integer(bound, "a band slice bound") <= count:
                raise IndexError(f"band slice bound {bound} is outside 0..{count}")
        if bands.step is not None:
            _integer(bands.step, "a band slice step")
        selected = list(range(*bands.indices(count)))
    elif isinstance(bands, (str, bytes, dict, set, frozenset)):
        raise TypeError(
            f"bands is an integer, a sequence of integers or a slice, found {type(bands).__name__}"
        )
    elif hasattr(bands, "__len__") and hasattr(bands, "__getitem__"):
        if getattr(bands, "ndim", 1) != 1:
            bands = (bands[()],)
        selected = [_integer(band, "a band") for band in bands]
    else:
        selected = [_integer(bands, "a band")]
    if not selected:
        raise ValueError(f"bands selects nothing; the image has {count} bands")
    for band in selected:
        if not 0 <= band < count:
            raise IndexError(f"band {band} is outside 0..{count - 1} (bands are zero-based)")
    return selected


@cython.final
cdef class Plan:
    """The frames that one window of one selection of bands needs.

    Parameters
    ----------
    header : BlobHeader
        Parsed header of the file.
    bands : int, sequence of int, slice or None
        Zero-based bands, order and repeats kept; None takes all.
    window : (row, column, height, width), window object or None
        In pixels; None takes the whole image. Must lie inside the image.

    Raises
    ------
    TypeError
        If a bound is a bool, a float or no integer.
    IndexError
        If a band is outside 0..B-1.
    ValueError
        If the window is empty or reaches outside the image, or no band is selected.

    Notes
    -----
    Source: specification 0.1.0, Frame index and Offset reconstruction.
    """

    def __cinit__(self, BlobHeader header not None, bands=None, window=None):
        self.slot_band = NULL
        self.slot_start = NULL
        self.destination = NULL
        self.frames = NULL
        self.header = header
        self._set_window(window)
        self._set_bands(bands)
        self._list_frames()

    def __dealloc__(self):
        free(self.slot_band)
        free(self.slot_start)
        free(self.destination)
        free(self.frames)

    cdef int _set_window(self, window) except -1:
        cdef int64_t length = self.header.image_length
        cdef int64_t width = self.header.image_width
        if window is None:
            self.row = self.column = 0
            self.height = length
            self.width = width
            return 0
        parts = _window_parts(window)
        try:
            self.row = _integer(parts[0], "a window's row")
            self.column = _integer(parts[1], "a window's column")
            self.height = _integer(parts[2], "a window's height")
            self.width = _integer(parts[3], "a window's width")
        except OverflowError:
            # Beyond 64 bits is outside every image; say so in the same words.
            self.height = -1
        if (
            self.row < 0 or self.column < 0 or self.height < 1 or self.width < 1
            or self.height > length or self.width > width
            or self.row > length - self.height or self.column > width - self.width
        ):
            raise ValueError(
                f"window (row {parts[0]}, column {parts[1]}, height {parts[2]}, width {parts[3]}) "
                f"is empty or outside the image of {length} x {width} (height x width) pixels"
            )
        return 0

    cdef int _set_bands(self, bands) except -1:
        cdef int64_t count = self.header.samples_per_pixel
        cdef int64_t position, slot
        cdef list selected, order
        if bands is None:
            self.band_count = count
            self._allocate_bands(count, count)
            for position in range(count):
                self.slot_band[position] = position
                self.slot_start[position] = position
                self.destination[position] = position
            self.slot_start[count] = count
            return 0
        selected = _band_list(bands, count)
        self.band_count = len(selected)
        order = sorted(range(len(selected)), key=selected.__getitem__)
        self._allocate_bands(len(set(selected)), self.band_count)
        slot = -1
        for position in range(self.band_count):
            band = <int64_t> selected[order[position]]
            if slot < 0 or self.slot_band[slot] != band:
                slot += 1
                self.slot_band[slot] = band
                self.slot_start[slot] = position
            self.destination[position] = <int64_t> order[position]
        self.slot_start[slot + 1] = self.band_count
        return 0

    cdef int _allocate_bands(self, int64_t slots, int64_t positions) except -1:
        self.slot_count = slots
        self.slot_band = <int64_t*> malloc(slots * sizeof(int64_t))
        self.slot_start = <int64_t*> malloc((slots + 1) * sizeof(int64_t))
        self.destination = <int64_t*> malloc(positions * sizeof(int64_t))
        if self.slot_band == NULL or self.slot_start == NULL or self.destination == NULL:
            raise MemoryError(f"{positions} bands")
        return 0

    cdef int _list_frames(self) except -1:
        cdef BlobHeader header = self.header
        cdef bint cell = header.frame_unit == layout.FRAME_UNIT_CELL
        cdef int64_t first_row = self.row // header.tile_length
        cdef int64_t last_row = (self.row + self.height - 1) // header.tile_length
        cdef int64_t first_col = self.column // header.tile_width
        cdef int64_t last_col = (self.column + self.width - 1) // header.tile_width
        cdef int64_t slots = 1 if cell else self.slot_count
        cdef int64_t bands = 1 if cell else header.samples_per_pixel
        cdef int64_t grid_row, grid_col, slot, index, position
        cdef int64_t known_index = 0
        cdef int64_t known_offset = header.base_frame_offset
        cdef Frame* frame
        self.frame_bands = header.samples_per_pixel if cell else 1
        self.frame_count = (last_row - first_row + 1) * (last_col - first_col + 1) * slots
        if self.frame_count > (<int64_t> 1 << 40):
            raise MemoryError(f"a plan of {self.frame_count} frames; read smaller windows")
        self.frames = <Frame*> malloc(self.frame_count * sizeof(Frame))
        if self.frames == NULL:
            raise MemoryError(f"a plan of {self.frame_count} frames; read smaller windows")
        position = 0
        with nogil:
            for grid_row in range(first_row, last_row + 1):
                for grid_col in range(first_col, last_col + 1):
                    for slot in range(slots):
                        index = (grid_row * header.tiles_across + grid_col) * bands
                        if not cell:
                            index += self.slot_band[slot]
                        frame = &self.frames[position]
                        frame.index = index
                        frame.offset = header.c_offset_from(index, known_index, known_offset)
                        frame.size = header.c_byte_count(index)
                        frame.grid_row = <uint32_t> grid_row
                        frame.grid_col = <uint32_t> grid_col
                        frame.slot = <uint32_t> slot
                        known_index = index
                        known_offset = frame.offset
                        position += 1
        return 0

    cdef Rect rect(self, const Frame* frame) noexcept nogil:
        cdef Rect rect
        cdef int64_t top = <int64_t> frame.grid_row * self.header.tile_length
        cdef int64_t left = <int64_t> frame.grid_col * self.header.tile_width
        cdef int64_t bottom = min(top + self.header.tile_length, <int64_t> self.header.image_length)
        cdef int64_t right = min(left + self.header.tile_width, <int64_t> self.header.image_width)
        cdef int64_t first_row = max(top, self.row)
        cdef int64_t first_col = max(left, self.column)
        rect.tile_height = bottom - top
        rect.tile_width = right - left
        rect.source_row = first_row - top
        rect.source_col = first_col - left
        rect.dest_row = first_row - self.row
        rect.dest_col = first_col - self.column
        rect.height = min(bottom, self.row + self.height) - first_row
        rect.width = min(right, self.column + self.width) - first_col
        return rect

    cdef int64_t decoded_size(self, const Frame* frame) noexcept nogil:
        """Return the bytes that the frame must decode to; at most 2**52, so never overflows."""
        cdef Rect rect = self.rect(frame)
        return rect.tile_height * rect.tile_width * self.header.itemsize * self.frame_bands

    cdef str describe(self, const Frame* frame):
        cdef str place = f"frame {frame.index} (row {frame.grid_row}, col {frame.grid_col}"
        if self.header.frame_unit == layout.FRAME_UNIT_TILE:
            place += f", band {self.slot_band[frame.slot]}"
        return place + ")"

    cdef int64_t run_stop(
        self, int64_t first, int64_t stop, int64_t gap, int64_t largest
    ) noexcept nogil:
        """Return the end of the run of frames that one request fetches, from `first` on."""
        cdef int64_t start = self.frames[first].offset
        cdef int64_t end = start + self.frames[first].size
        cdef int64_t position = first + 1
        while position < stop:
            if self.frames[position].offset - end > gap:
                break
            if self.frames[position].offset + self.frames[position].size - start > largest:
                break
            end = self.frames[position].offset + self.frames[position].size
            position += 1
        return position

    @property
    def shape(self):
        """Shape (B, H, W) of the result."""
        return self.band_count, self.height, self.width

    @property
    def nbytes(self):
        """Bytes of samples of the result."""
        return self.band_count * self.height * self.width * self.header.itemsize

    def fill_frames(self, int64_t[::1] indices not None, int64_t[::1] offsets not None,
                    int64_t[::1] sizes not None):
        """Write index, file offset and size in bytes of every frame touched, in file order."""
        cdef int64_t position
        if not indices.shape[0] == offsets.shape[0] == sizes.shape[0] == self.frame_count:
            raise ValueError(f"expected room for {self.frame_count} frames")
        for position in range(self.frame_count):
            indices[position] = self.frames[position].index
            offsets[position] = self.frames[position].offset
            sizes[position] = self.frames[position].size

    def ranges(self, int64_t gap=0, int64_t largest=1 << 62):
        """Return the merged byte ranges of the read.

        Parameters
        ----------
        gap : int
            Bytes between two frames that are fetched rather than skipped.
        largest : int
            Bytes a merged range may have; a single larger frame stays whole.

        Returns
        -------
        list of (int, int, int, int)
            (start, stop, first, last): bytes start..stop of the file hold the
            plan's frames first..last, the ends exclusive.
        """
        cdef int64_t first = 0
        cdef int64_t stop
        cdef list ranges = []
        while first < self.frame_count:
            stop = self.run_stop(first, self.frame_count, gap, largest)
            ranges.append((
                self.frames[first].offset,
                self.frames[stop - 1].offset + self.frames[stop - 1].size, first, stop,
            ))
            first = stop
        return ranges
