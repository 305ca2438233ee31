"""Bytes of one file, read by position."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from rumi._core.failure cimport Failure
from rumi._core.plan cimport Plan


cdef enum:
    MAX_VECTORS = 64      # pieces that one preadv scatters into

cdef class Store:
    cdef int _fd
    cdef Py_buffer _view
    cdef bint _held
    cdef const uint8_t* _data
    cdef int64_t _base
    cdef readonly object name
    cdef readonly int64_t size
    cdef int64_t _modified_ns
    cdef uint64_t _inode

    cdef int _stat(self, path) except -1
    cdef int read_into(
        self, int64_t start, int64_t size, uint8_t* dst, Failure* failure
    ) noexcept nogil
    cdef const uint8_t* point(self, int64_t start, int64_t size) noexcept nogil
    cdef list fetch(self, Plan plan, int64_t first, int64_t stop)
    cdef int _fetch_slowly(self, Plan plan, int64_t first, list frames) except -1
