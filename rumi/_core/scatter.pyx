"""Scattering decoded samples into a destination of any strides."""

cimport cython
from cpython.buffer cimport (
    PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from libc.stdint cimport int64_t, uint8_t, uintptr_t
from libc.string cimport memcpy

from rumi._core.plan cimport Frame, Plan, Rect


cdef inline void _copy_elements(
    char* dst, Py_ssize_t dst_step, const char* src, int64_t count, int itemsize
) noexcept nogil:
    """Copy one row of samples to evenly spaced places."""
    cdef int64_t i
    if itemsize == 1:
        for i in range(count):
            dst[i * dst_step] = src[i]
    elif itemsize == 2:
        for i in range(count):
            memcpy(dst + i * dst_step, src + 2 * i, 2)
    elif itemsize == 4:
        for i in range(count):
            memcpy(dst + i * dst_step, src + 4 * i, 4)
    elif itemsize == 8:
        for i in range(count):
            memcpy(dst + i * dst_step, src + 8 * i, 8)
    else:
        for i in range(count):
            memcpy(dst + i * dst_step, src + 16 * i, 16)


cdef void _copy_rect(
    const Sink* sink, int64_t band, const Rect* rect, const char* plane
) noexcept nogil:
    """Copy the overlap of one tile plane with the window into band `band`."""
    cdef int itemsize = sink.itemsize
    cdef int64_t step = rect.tile_width * itemsize
    cdef int64_t row_bytes = rect.width * itemsize
    cdef const char* src = plane + rect.source_row * step + rect.source_col * itemsize
    cdef char* dst = (
        sink.data + band * sink.band + rect.dest_row * sink.row + rect.dest_col * sink.col
    )
    cdef int64_t row
    if sink.col == itemsize and row_bytes == step and sink.row == row_bytes:
        memcpy(dst, src, rect.height * row_bytes)
    elif sink.col == itemsize:
        for row in range(rect.height):
            memcpy(dst + row * sink.row, src + row * step, row_bytes)
    else:
        for row in range(rect.height):
            _copy_elements(dst + row * sink.row, sink.col, src + row * step, rect.width, itemsize)


cdef void scatter(
    Plan plan, const Frame* frame, const Rect* rect, const char* samples, const Sink* sink
) noexcept nogil:
    """Copy one decoded frame to every place of the destination that shows it."""
    cdef int64_t plane = rect.tile_height * rect.tile_width * sink.itemsize
    cdef int64_t slot = frame.slot
    cdef int64_t stop = slot + 1
    cdef int64_t position
    cdef const char* src
    if plan.frame_bands > 1:
        slot = 0
        stop = plan.slot_count
    while slot < stop:
        src = samples
        if plan.frame_bands > 1:
            src = samples + plan.slot_band[slot] * plane
        for position in range(plan.slot_start[slot], plan.slot_start[slot + 1]):
            _copy_rect(sink, plan.destination[position], rect, src)
        slot += 1


cdef char* place_for(
    Plan plan, const Frame* frame, const Rect* rect, const Sink* sink
) noexcept nogil:
    """Return where a frame can be decoded in place, or NULL where it must be copied."""
    cdef int64_t row_bytes = rect.tile_width * sink.itemsize
    cdef int64_t slot
    cdef char* dst
    if rect.height != rect.tile_height or rect.width != rect.tile_width:
        return NULL
    if sink.col != sink.itemsize or sink.row != row_bytes:
        return NULL
    if plan.frame_bands > 1:
        if plan.slot_count != plan.frame_bands or plan.band_count != plan.frame_bands:
            return NULL
        if sink.band != row_bytes * rect.tile_height:
            return NULL
        for slot in range(plan.slot_count):
            if plan.destination[slot] != slot:
                return NULL
        slot = 0
    else:
        slot = frame.slot
        if plan.slot_start[slot + 1] - plan.slot_start[slot] != 1:
            return NULL
    dst = (
        sink.data + plan.destination[plan.slot_start[slot]] * sink.band
        + rect.dest_row * sink.row + rect.dest_col * sink.col
    )
    return dst if <uintptr_t> dst % 8 == 0 else NULL


cdef bint too_wide(const char* samples, int64_t size, int bits) noexcept nogil:
    """Whether a sample of fewer than 8 bits has bits above its width."""
    cdef uint8_t seen = 0
    cdef int64_t i
    for i in range(size):
        seen |= <uint8_t> samples[i]
    return seen >> bits != 0


@cython.final
@cython.no_gc
cdef class Target:
    """Writable memory of shape (B, H, W) or (N, B, H, W), any strides.

    Parameters
    ----------
    array : writable buffer with 3 or 4 dimensions
        Destination; its item size must be `itemsize`.
    itemsize : int
        Bytes per sample.

    Raises
    ------
    ValueError
        If the buffer is read-only or has another number of dimensions or item size.
    """

    def __cinit__(self, array, int itemsize):
        self._held = False
        # Without a format NumPy exports every dtype, those of other packages too.
        PyObject_GetBuffer(array, &self._view, PyBUF_STRIDES | PyBUF_WRITABLE)
        self._held = True
        if self._view.ndim not in (3, 4) or self._view.itemsize != itemsize:
            raise ValueError(
                f"expected 3 or 4 dimensions of {itemsize}-byte samples, found "
                f"{self._view.ndim} of {self._view.itemsize}"
            )

    def __dealloc__(self):
        if self._held:
            PyBuffer_Release(&self._view)

    cdef int sink(self, Plan plan, int64_t item, Sink* sink) except -1:
        """Point `sink` at item `item`, whose shape must be the plan's."""
        cdef int lead = self._view.ndim - 3
        cdef Py_ssize_t* shape = self._view.shape + lead
        cdef Py_ssize_t* strides = self._view.strides + lead
        if (
            shape[0] != plan.band_count or shape[1] != plan.height or shape[2] != plan.width
            or self._view.itemsize != plan.header.itemsize
            or item < 0 or item >= (self._view.shape[0] if lead else 1)
        ):
            raise ValueError(
                f"expected room for {plan.shape} samples of {plan.header.itemsize} bytes, found "
                f"{(shape[0], shape[1], shape[2])} of {self._view.itemsize}"
            )
        sink.data = <char*> self._view.buf
        if lead:
            sink.data += item * self._view.strides[0]
        sink.band = strides[0]
        sink.row = strides[1]
        sink.col = strides[2]
        sink.itemsize = <int> self._view.itemsize
        return 0
