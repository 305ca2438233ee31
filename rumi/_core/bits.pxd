"""Inline kernels over the packed residuals; shared by header and plan."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef struct Scan:
    uint64_t total       # sum of the residuals
    uint32_t largest     # bitwise or of the residuals: same bit length as the maximum
    bint has_zero        # whether count_min is attained


cdef inline uint64_t load_word(
    const uint8_t* packed, Py_ssize_t size, Py_ssize_t start
) noexcept nogil:
    """Read eight little-endian bytes at start; bytes past the end count as zero."""
    cdef uint64_t word = 0
    if start + 8 <= size:
        memcpy(&word, packed + start, 8)
    elif start < size:
        memcpy(&word, packed + start, size - start)
    return word


cdef inline uint32_t residual_at(
    const uint8_t* packed, Py_ssize_t size, uint64_t index, int bits
) noexcept nogil:
    """Return residual index, the `bits` bits at bit index * bits."""
    cdef uint64_t lo = index * bits
    cdef uint64_t word = load_word(packed, size, <Py_ssize_t> (lo >> 3))
    return <uint32_t> ((word >> (lo & 7)) & ((<uint64_t> 1 << bits) - 1))


cdef uint64_t residual_sum(
    const uint8_t* packed, Py_ssize_t size, uint64_t start, uint64_t stop, int bits
) noexcept nogil

cdef Scan residual_scan(
    const uint8_t* packed, Py_ssize_t size, uint64_t start, uint64_t stop, int bits
) noexcept nogil

cdef int bit_length(uint32_t value) noexcept nogil
