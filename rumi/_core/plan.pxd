"""What one read touches: frames in file order and the rectangles they fill."""

from libc.stdint cimport int64_t, uint32_t

from rumi._core.header cimport BlobHeader


cdef struct Frame:
    int64_t index       # frame index, which is also the physical order
    int64_t offset      # first byte in the file
    uint32_t size       # compressed bytes
    uint32_t grid_row
    uint32_t grid_col
    uint32_t slot       # which of the selected bands, ascending; 0 in a cell frame


cdef struct Rect:
    int64_t tile_height  # true height and width of the tile, cut to the image
    int64_t tile_width
    int64_t source_row   # first row and column taken from the tile
    int64_t source_col
    int64_t dest_row     # where they go in the window
    int64_t dest_col
    int64_t height       # extent of the overlap
    int64_t width


cdef class Plan:
    cdef readonly BlobHeader header
    cdef readonly int64_t row
    cdef readonly int64_t column
    cdef readonly int64_t height
    cdef readonly int64_t width
    cdef readonly int64_t band_count
    cdef readonly int64_t frame_count
    cdef readonly int64_t frame_bands
    cdef int64_t slot_count
    cdef int64_t* slot_band      # ascending distinct bands, slot_count of them
    cdef int64_t* slot_start     # where a slot's destinations begin, slot_count + 1
    cdef int64_t* destination    # output band positions, grouped by slot
    cdef Frame* frames

    cdef int _set_window(self, window) except -1
    cdef int _set_bands(self, bands) except -1
    cdef int _allocate_bands(self, int64_t slots, int64_t positions) except -1
    cdef int _list_frames(self) except -1
    cdef Rect rect(self, const Frame* frame) noexcept nogil
    cdef int64_t decoded_size(self, const Frame* frame) noexcept nogil
    cdef str describe(self, const Frame* frame)
    cdef int64_t run_stop(
        self, int64_t first, int64_t stop, int64_t gap, int64_t largest
    ) noexcept nogil
