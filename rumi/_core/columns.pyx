"""Header blobs in bulk: one flat buffer and offsets in, one record of fields a blob out.

What `rumi._core.header.BlobHeader` checks of one blob is checked of each, without
an object, an error text or an allocation for any: a catalog of a million rows
is parsed in one call, and the few that are refused get their text from
`BlobHeader` afterwards.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from rumi._core cimport layout
from rumi._core.bits cimport Scan, bit_length, residual_at, residual_scan
from rumi._core.header cimport base_offset

cdef enum:
    # More frames than this cannot lie in a file of less than 2**63 bytes.
    MAX_FRAME_SHIFT = 59

# Widest first, so that every field of an array of records is aligned.
cdef packed struct Record:
    int64_t file_size
    int64_t base_frame_offset
    int64_t frame_count
    uint32_t image_width
    uint32_t image_length
    uint32_t count_min
    uint16_t tile_width
    uint16_t tile_length
    uint16_t samples_per_pixel
    uint8_t bits_per_sample
    uint8_t sample_format
    uint8_t frame_unit
    uint8_t count_bits
    uint8_t itemsize
    uint8_t valid

# What `out` of `parse_headers` is made of, as NumPy spells a structured dtype.
RECORD = (
    ("file_size", "<i8"),
    ("base_frame_offset", "<i8"),
    ("frame_count", "<i8"),
    ("image_width", "<u4"),
    ("image_length", "<u4"),
    ("count_min", "<u4"),
    ("tile_width", "<u2"),
    ("tile_length", "<u2"),
    ("samples_per_pixel", "<u2"),
    ("bits_per_sample", "|u1"),
    ("sample_format", "|u1"),
    ("frame_unit", "|u1"),
    ("count_bits", "|u1"),
    ("itemsize", "|u1"),
    ("valid", "|u1"),
)


cdef bint read_fields(const uint8_t* blob, Py_ssize_t size, Record* out) noexcept nogil:
    """Copy the fixed fields; whether each has an allowed value."""
    cdef uint32_t magic
    cdef uint16_t version
    if size < layout.HEADER_SIZE:
        return False
    memcpy(&magic, blob + layout.OFFSET_MAGIC, 4)
    memcpy(&version, blob + layout.OFFSET_VERSION, 2)
    memcpy(&out.image_width, blob + layout.OFFSET_IMAGE_WIDTH, 4)
    memcpy(&out.image_length, blob + layout.OFFSET_IMAGE_LENGTH, 4)
    memcpy(&out.tile_width, blob + layout.OFFSET_TILE_WIDTH, 2)
    memcpy(&out.tile_length, blob + layout.OFFSET_TILE_LENGTH, 2)
    memcpy(&out.samples_per_pixel, blob + layout.OFFSET_SAMPLES_PER_PIXEL, 2)
    out.bits_per_sample = blob[layout.OFFSET_BITS_PER_SAMPLE]
    out.sample_format = blob[layout.OFFSET_SAMPLE_FORMAT]
    out.frame_unit = blob[layout.OFFSET_FRAME_UNIT]
    memcpy(&out.count_min, blob + layout.OFFSET_COUNT_MIN, 4)
    out.count_bits = blob[layout.OFFSET_COUNT_BITS]
    out.itemsize = <uint8_t> layout.encoding_itemsize(out.sample_format, out.bits_per_sample)
    return (
        magic == layout.MAGIC
        and version == layout.VERSION
        and out.image_width > 0
        and out.image_length > 0
        and out.tile_width > 0
        and out.tile_length > 0
        and out.samples_per_pixel > 0
        and out.itemsize > 0
        and out.frame_unit <= layout.FRAME_UNIT_CELL
        and out.count_min > 0
        and out.count_bits <= layout.MAX_COUNT_BITS
    )


cdef bint derive_geometry(Record* out) noexcept nogil:
    """Count the frames; whether there can be so many."""
    cdef uint64_t across = (<uint64_t> out.image_width + out.tile_width - 1) // out.tile_width
    cdef uint64_t down = (<uint64_t> out.image_length + out.tile_length - 1) // out.tile_length
    cdef uint64_t bands = 1 if out.frame_unit == layout.FRAME_UNIT_CELL else out.samples_per_pixel
    # Both factors are below 2**32 + 1, so the product fits 64 bits unsigned.
    if across * down > (<uint64_t> 1 << MAX_FRAME_SHIFT) // bands:
        return False
    out.frame_count = <int64_t> (across * down * bands)
    out.base_frame_offset = base_offset(out.frame_count, out.samples_per_pixel)
    return True


cdef bint sum_sizes(const uint8_t* packed, Py_ssize_t size, Record* out) noexcept nogil:
    """Find where the last frame ends; whether the sizes are packed canonically."""
    cdef int64_t n = out.frame_count
    cdef int bits = out.count_bits
    cdef int64_t available = INT64_MAX - out.base_frame_offset
    cdef int64_t index
    cdef int spare
    cdef Scan scan
    scan.total = 0
    # By division first: the product of both could pass 64 bits.
    if bits and n > (<int64_t> size * 8) // bits:
        return False
    if size != (n * bits + 7) // 8 or n > available // <int64_t> out.count_min:
        return False
    if bits:
        scan = residual_scan(packed, size, 0, <uint64_t> n, bits)
        spare = <int> (size * 8 - n * bits)
        if spare and packed[size - 1] >> (8 - spare):
            return False
        if not scan.has_zero or bit_length(scan.largest) != bits:
            return False
        # `largest` may be above every residual, so that it only tells when to look.
        if (<uint64_t> out.count_min + scan.largest) >> 32:
            for index in range(n):
                if (<uint64_t> out.count_min + residual_at(packed, size, index, bits)) >> 32:
                    return False
    if scan.total > <uint64_t> (available - n * <int64_t> out.count_min):
        return False
    out.file_size = (
        out.base_frame_offset + n * <int64_t> out.count_min + <int64_t> scan.total
    )
    return True


def parse_headers(
    const uint8_t[::1] data not None, const int64_t[::1] offsets not None, Record[::1] out not None
):
    """Parse and check header blobs that lie one after another.

    Parameters
    ----------
    data : buffer of uint8, shape (n_bytes,)
        The blobs.
    offsets : buffer of int64, shape (N + 1,)
        Where each blob starts in `data`, and where the last one ends.
    out : array of records, shape (N,), C-contiguous, dtype ``np.dtype(list(RECORD))``
        Receives the fields under the specification's names, ``frame_count``,
        ``base_frame_offset`` and ``file_size`` (bytes), ``itemsize`` (bytes of a
        sample in memory), and ``valid``: 1, or 0 with all other fields 0 for a
        blob that `BlobHeader` refuses.

    Returns
    -------
    int
        How many blobs are not valid.

    Raises
    ------
    ValueError
        If `offsets` and `out` do not go together, or an offset is before the
        one before it or outside `data`; `out` may be filled in part then.

    Notes
    -----
    Releases the GIL. One pass over the blobs, about a nanosecond a frame; the
    frames of a blob with count_bits 0 cost nothing.
    Source: specification 0.1.0, Header blob.
    """
    cdef Py_ssize_t n = out.shape[0]
    cdef Py_ssize_t row, size
    cdef Py_ssize_t refused = 0
    cdef int64_t start, stop
    cdef const uint8_t* blob
    cdef Record* record
    if offsets.shape[0] != n + 1:
        raise ValueError(f"expected {n + 1} offsets for {n} blobs, found {offsets.shape[0]}")
    with nogil:
        for row in range(n):
            start = offsets[row]
            stop = offsets[row + 1]
            if start < 0 or stop < start or stop > data.shape[0]:
                with gil:
                    raise ValueError(
                        f"blob {row}: expected bytes inside 0..{data.shape[0]}, found "
                        f"{start}..{stop}"
                    )
            size = stop - start
            record = &out[row]
            memset(record, 0, sizeof(Record))
            # A blob of no bytes may start where `data` ends.
            blob = &data[start] if size else NULL
            if (
                read_fields(blob, size, record)
                and derive_geometry(record)
                and sum_sizes(blob + layout.HEADER_SIZE, size - layout.HEADER_SIZE, record)
            ):
                record.valid = 1
            else:
                memset(record, 0, sizeof(Record))
                refused += 1
    return refused
