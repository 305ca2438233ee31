"""Where samples go: strided destinations and the rectangles copied into them."""

from libc.stdint cimport int64_t

from rumi._core.plan cimport Frame, Plan, Rect


cdef struct Sink:
    char* data
    Py_ssize_t band       # strides in bytes
    Py_ssize_t row
    Py_ssize_t col
    int itemsize

cdef void scatter(
    Plan plan, const Frame* frame, const Rect* rect, const char* samples, const Sink* sink
) noexcept nogil
cdef char* place_for(
    Plan plan, const Frame* frame, const Rect* rect, const Sink* sink
) noexcept nogil
cdef bint too_wide(const char* samples, int64_t size, int bits) noexcept nogil


cdef class Target:
    cdef Py_buffer _view
    cdef bint _held

    cdef int sink(self, Plan plan, int64_t item, Sink* sink) except -1
