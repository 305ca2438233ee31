"""Bit packing of frame byte counts (specification 0.1.0, Frame byte counts).

A blob stores the smallest count once and every count as its difference from
it, `bits` bits wide, starting at the least significant bit of the first byte.
A residual is at most 32 bits wide and starts inside a byte, so one unaligned
eight-byte load always holds all of it.
"""

from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset


cdef int bit_length(uint32_t value) noexcept nogil:
    cdef int length = 0
    while value:
        value >>= 1
        length += 1
    return length


cdef inline uint64_t _fast_stop(
    Py_ssize_t size, uint64_t start, uint64_t stop, int bits
) noexcept nogil:
    """Return the first index in start..stop whose eight-byte load would leave the region."""
    cdef uint64_t last
    if size < 8:
        return start
    # index * bits >> 3 <= size - 8 holds up to this index.
    last = ((<uint64_t> (size - 7)) * 8 - 1) // <uint64_t> bits + 1
    if last > stop:
        return stop
    return start if last < start else last


cdef uint64_t residual_sum(
    const uint8_t* packed, Py_ssize_t size, uint64_t start, uint64_t stop, int bits
) noexcept nogil:
    cdef uint64_t mask, word, index, fast, lo
    cdef uint64_t total = 0
    if bits == 0 or start >= stop:
        return 0
    mask = (<uint64_t> 1 << bits) - 1
    fast = _fast_stop(size, start, stop, bits)
    lo = start * <uint64_t> bits
    for _ in range(start, fast):
        memcpy(&word, packed + (lo >> 3), 8)
        total += (word >> (lo & 7)) & mask
        lo += <uint64_t> bits
    for index in range(fast, stop):
        total += residual_at(packed, size, index, bits)
    return total


cdef Scan residual_scan(
    const uint8_t* packed, Py_ssize_t size, uint64_t start, uint64_t stop, int bits
) noexcept nogil:
    cdef Scan scan
    cdef uint64_t mask, word, value, index, fast, lo
    cdef uint64_t total = 0
    cdef uint64_t seen = 0
    cdef uint64_t smallest = 0xFFFFFFFF
    scan.total = 0
    scan.largest = 0
    scan.has_zero = True
    if bits == 0 or start >= stop:
        return scan
    mask = (<uint64_t> 1 << bits) - 1
    fast = _fast_stop(size, start, stop, bits)
    lo = start * <uint64_t> bits
    for _ in range(start, fast):
        memcpy(&word, packed + (lo >> 3), 8)
        value = (word >> (lo & 7)) & mask
        total += value
        seen |= value
        smallest = value if value < smallest else smallest
        lo += <uint64_t> bits
    for index in range(fast, stop):
        value = residual_at(packed, size, index, bits)
        total += value
        seen |= value
        smallest = value if value < smallest else smallest
    scan.total = total
    scan.largest = <uint32_t> seen
    scan.has_zero = smallest == 0
    return scan


def unpack(
    const uint8_t[::1] packed not None, uint32_t count_min, int bits, uint32_t[::1] out not None
):
    """Decode the first ``len(out)`` byte counts of a packed region.

    Parameters
    ----------
    packed : buffer of uint8, shape (n_bytes,)
        The packed residuals, ``ceil(len(out) * bits / 8)`` bytes or more.
    count_min : int
        Smallest byte count.
    bits : int
        Width of a residual, 0 to 32.
    out : buffer of uint32, shape (N,), C-contiguous
        Receives the byte counts.

    Raises
    ------
    ValueError
        If the region is too short for ``len(out)`` residuals, or bits is not in 0..32.

    Notes
    -----
    Releases the GIL; reads no byte outside `packed`.
    Source: specification 0.1.0, Decoding.
    """
    cdef Py_ssize_t n = out.shape[0]
    cdef Py_ssize_t size = packed.shape[0]
    cdef Py_ssize_t i
    cdef const uint8_t* data
    if not 0 <= bits <= 32:
        raise ValueError(f"bits must be 0 to 32, found {bits}")
    if bits and size < (n * bits + 7) // 8:
        raise ValueError(
            f"{n} residuals of {bits} bits need {(n * bits + 7) // 8} bytes, found {size}"
        )
    if n == 0:
        return
    if bits == 0:
        for i in range(n):
            out[i] = count_min
        return
    data = &packed[0]
    with nogil:
        for i in range(n):
            out[i] = count_min + residual_at(data, size, i, bits)


def pack(const uint32_t[::1] counts not None):
    """Encode byte counts canonically.

    Parameters
    ----------
    counts : buffer of uint32, shape (N,), C-contiguous
        Byte count of every frame in frame-index order; N is at least 1.

    Returns
    -------
    count_min : int
        Smallest byte count.
    count_bits : int
        Minimum width that holds the largest residual.
    packed : bytes
        ``ceil(N * count_bits / 8)`` bytes; unused bits are zero.

    Raises
    ------
    ValueError
        If there is no count, or a count is zero.

    Notes
    -----
    Source: specification 0.1.0, Encoding and Packing.
    """
    cdef Py_ssize_t n = counts.shape[0]
    cdef Py_ssize_t i, size, start
    cdef uint32_t smallest, largest
    cdef uint64_t word, lo
    cdef int bits
    cdef uint8_t* data
    if n == 0:
        raise ValueError("a file has at least one frame, found no byte count")
    smallest = counts[0]
    largest = counts[0]
    for i in range(n):
        smallest = min(smallest, counts[i])
        largest = max(largest, counts[i])
    if smallest == 0:
        raise ValueError("every frame byte count must be greater than zero, found 0")
    bits = bit_length(largest - smallest)
    size = (n * bits + 7) // 8
    packed = PyBytes_FromStringAndSize(NULL, size)
    data = <uint8_t*> PyBytes_AsString(packed)
    memset(data, 0, size)
    with nogil:
        for i in range(n if bits else 0):
            lo = <uint64_t> i * <uint64_t> bits
            start = <Py_ssize_t> (lo >> 3)
            word = load_word(data, size, start)
            word |= (<uint64_t> (counts[i] - smallest)) << (lo & 7)
            memcpy(data + start, &word, min(<Py_ssize_t> 8, size - start))
    return smallest, bits, packed
