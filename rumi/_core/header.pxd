"""The parsed header blob as C data, for the planner and the decoder."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef class BlobHeader:
    cdef bytes _blob
    cdef const uint8_t* _packed
    cdef Py_ssize_t _packed_size
    cdef readonly uint16_t version
    cdef readonly uint32_t image_width
    cdef readonly uint32_t image_length
    cdef readonly uint16_t tile_width
    cdef readonly uint16_t tile_length
    cdef readonly uint16_t samples_per_pixel
    cdef readonly uint8_t bits_per_sample
    cdef readonly uint8_t sample_format
    cdef readonly uint8_t frame_unit
    cdef readonly uint32_t count_min
    cdef readonly uint8_t count_bits
    cdef readonly int64_t tiles_across
    cdef readonly int64_t tiles_down
    cdef readonly int64_t frame_count
    cdef readonly int64_t base_frame_offset
    cdef readonly int64_t file_size
    cdef readonly int itemsize
    cdef uint64_t* _checkpoints

    cpdef bint same_encoding(self, BlobHeader other)
    cdef int _parse(self) except -1
    cdef int _check_fields(self) except -1
    cdef int _derive_geometry(self) except -1
    cdef int _check_sizes(self) except -1
    cdef uint64_t _scan(self) except? 0
    cdef int _check_largest(self) except -1
    cdef int64_t _index(self, index) except -1
    cdef uint32_t c_byte_count(self, int64_t index) noexcept nogil
    cdef int64_t c_offset(self, int64_t index) noexcept nogil
    cdef int64_t c_offset_from(
        self, int64_t index, int64_t known_index, int64_t known_offset
    ) noexcept nogil


cdef int64_t base_offset(int64_t frame_count, int64_t bands) noexcept nogil
