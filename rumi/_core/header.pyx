"""The header blob: parse with every check, locate any frame.

Parsing is one pass over the packed residuals that checks that the encoding is
canonical and leaves a running sum every CHECKPOINT_STRIDE frames, so that an
offset costs at most that many additions afterwards. Nothing else of size N is
built, and a blob with count_bits 0 costs the same for one frame and for
billions.
"""

from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from rumi._core cimport layout
from rumi._core.bits cimport Scan, bit_length, residual_at, residual_scan, residual_sum

from rumi._generated.constants import CLAUSES as _CLAUSES
from rumi.errors import HeaderError, TruncatedError

cdef enum:
    CHECKPOINT_SHIFT = 9
    CHECKPOINT_STRIDE = 1 << CHECKPOINT_SHIFT
    # A frame takes 12 bytes of index and one of data at the least, so more
    # frames than this cannot lie in a file of less than 2**63 bytes.
    MAX_FRAME_SHIFT = 59


cdef int64_t base_offset(int64_t frame_count, int64_t bands) noexcept nogil:
    """Return where frame data starts (specification 0.1.0, Deriving base_frame_offset)."""
    cdef int64_t external = layout.GEOREFERENCING_SIZE
    if 2 * bands > layout.INLINE_SIZE:
        external += 2 * (2 * bands)
    if 8 * frame_count > layout.INLINE_SIZE:
        external += 8 * frame_count
    if 4 * frame_count > layout.INLINE_SIZE:
        external += 4 * frame_count
    return layout.EXTERNAL_OFFSET + external


cdef str _hex(int64_t value):
    return f"0x{value:X}"


cdef object _field_error(str field, int offset, str expected, str found):
    # Of a pair of fields, both are in one clause.
    clause = _CLAUSES[field.split(", ")[0]]
    return HeaderError(
        f"header blob: {field} (byte {offset}): expected {expected}, found {found} ({clause})"
    )


cdef class BlobHeader:
    """A header blob, parsed and checked.

    Parameters
    ----------
    blob : bytes-like
        28 bytes and the packed frame sizes, exactly.

    Raises
    ------
    TruncatedError
        If the blob is shorter than its own fields demand.
    HeaderError
        If a field breaks the specification, bytes follow the packed sizes, or
        the encoding of the sizes is not canonical.
    TypeError
        If `blob` is not bytes-like.

    Notes
    -----
    Immutable. Keeps one copy of the blob.
    Source: specification 0.1.0, Header blob.
    """

    def __cinit__(self, blob):
        self._checkpoints = NULL
        if isinstance(blob, BlobHeader):
            self._blob = (<BlobHeader> blob)._blob
        elif type(blob) is bytes:
            self._blob = <bytes> blob
        elif isinstance(blob, (str, int, list, tuple)):
            raise TypeError(f"a header blob is bytes-like, found {type(blob).__name__}")
        else:
            self._blob = bytes(memoryview(blob))
        self._parse()

    def __dealloc__(self):
        free(self._checkpoints)

    cdef int _parse(self) except -1:
        cdef Py_ssize_t size = len(self._blob)
        cdef const uint8_t* data = <const uint8_t*> PyBytes_AsString(self._blob)
        cdef uint32_t magic
        if size < layout.HEADER_SIZE:
            raise TruncatedError(
                f"header blob: expected at least {layout.HEADER_SIZE} bytes, found {size} "
                "(Header blob)"
            )
        memcpy(&magic, data + layout.OFFSET_MAGIC, 4)
        memcpy(&self.version, data + layout.OFFSET_VERSION, 2)
        memcpy(&self.image_width, data + layout.OFFSET_IMAGE_WIDTH, 4)
        memcpy(&self.image_length, data + layout.OFFSET_IMAGE_LENGTH, 4)
        memcpy(&self.tile_width, data + layout.OFFSET_TILE_WIDTH, 2)
        memcpy(&self.tile_length, data + layout.OFFSET_TILE_LENGTH, 2)
        memcpy(&self.samples_per_pixel, data + layout.OFFSET_SAMPLES_PER_PIXEL, 2)
        self.bits_per_sample = data[layout.OFFSET_BITS_PER_SAMPLE]
        self.sample_format = data[layout.OFFSET_SAMPLE_FORMAT]
        self.frame_unit = data[layout.OFFSET_FRAME_UNIT]
        memcpy(&self.count_min, data + layout.OFFSET_COUNT_MIN, 4)
        self.count_bits = data[layout.OFFSET_COUNT_BITS]
        self._packed = data + layout.HEADER_SIZE
        self._packed_size = size - layout.HEADER_SIZE
        if magic != layout.MAGIC:
            raise _field_error("magic", layout.OFFSET_MAGIC, _hex(layout.MAGIC), _hex(magic))
        self._check_fields()
        self._derive_geometry()
        self._check_sizes()
        return 0

    cdef int _check_fields(self) except -1:
        if self.version != layout.VERSION:
            raise _field_error(
                "version", layout.OFFSET_VERSION, str(layout.VERSION), str(self.version)
            )
        if self.image_width == 0:
            raise _field_error("image_width", layout.OFFSET_IMAGE_WIDTH, "at least 1", "0")
        if self.image_length == 0:
            raise _field_error("image_length", layout.OFFSET_IMAGE_LENGTH, "at least 1", "0")
        if self.tile_width == 0:
            raise _field_error("tile_width", layout.OFFSET_TILE_WIDTH, "at least 1", "0")
        if self.tile_length == 0:
            raise _field_error("tile_length", layout.OFFSET_TILE_LENGTH, "at least 1", "0")
        if self.samples_per_pixel == 0:
            raise _field_error(
                "samples_per_pixel", layout.OFFSET_SAMPLES_PER_PIXEL, "at least 1", "0"
            )
        self.itemsize = layout.encoding_itemsize(self.sample_format, self.bits_per_sample)
        if self.itemsize == 0:
            raise _field_error(
                "bits_per_sample, sample_format", layout.OFFSET_BITS_PER_SAMPLE,
                "a listed pair (Sample encodings)",
                f"({self.bits_per_sample}, {self.sample_format})",
            )
        if self.frame_unit > layout.FRAME_UNIT_CELL:
            raise _field_error(
                "frame_unit", layout.OFFSET_FRAME_UNIT, "0 (tile) or 1 (cell)", str(self.frame_unit)
            )
        if self.count_min == 0:
            raise _field_error("count_min", layout.OFFSET_COUNT_MIN, "at least 1", "0")
        if self.count_bits > layout.MAX_COUNT_BITS:
            raise _field_error(
                "count_bits", layout.OFFSET_COUNT_BITS,
                f"0 to {layout.MAX_COUNT_BITS}", str(self.count_bits),
            )
        return 0

    cdef int _derive_geometry(self) except -1:
        cdef uint64_t grid
        cdef uint64_t bands = self.samples_per_pixel
        self.tiles_across = (
            <int64_t> self.image_width + self.tile_width - 1
        ) // self.tile_width
        self.tiles_down = (
            <int64_t> self.image_length + self.tile_length - 1
        ) // self.tile_length
        if self.frame_unit == layout.FRAME_UNIT_CELL:
            bands = 1
        # Both factors are below 2**32 + 1, so the product fits 64 bits unsigned.
        grid = <uint64_t> self.tiles_across * <uint64_t> self.tiles_down
        if grid > (<uint64_t> 1 << MAX_FRAME_SHIFT) // bands:
            raise HeaderError(
                f"header blob: {self.tiles_across} x {self.tiles_down} grid positions with "
                f"{self.samples_per_pixel} bands describe a file of more than 2**63 bytes "
                "(Header blob)"
            )
        self.frame_count = <int64_t> (grid * bands)
        self.base_frame_offset = base_offset(self.frame_count, self.samples_per_pixel)
        return 0

    cdef int _check_sizes(self) except -1:
        """Check the packed region, leave checkpoints and the size of the file."""
        cdef int64_t n = self.frame_count
        cdef int bits = self.count_bits
        cdef int64_t available = INT64_MAX - self.base_frame_offset
        cdef uint64_t total = 0
        # N * bits fits 64 bits unsigned: N <= 2**59 and bits <= 32 could reach
        # 2**64, so compare by division where the region is short.
        if bits and n > (<int64_t> self._packed_size * 8) // bits:
            raise TruncatedError(
                f"header blob: {n} residuals of {bits} bits (count_bits, byte "
                f"{layout.OFFSET_COUNT_BITS}) need {layout.HEADER_SIZE + (int(n) * bits + 7) // 8} "
                f"bytes, found {layout.HEADER_SIZE + self._packed_size} (Header blob)"
            )
        if self._packed_size != (n * bits + 7) // 8:
            raise HeaderError(
                f"header blob: expected exactly {layout.HEADER_SIZE + (n * bits + 7) // 8} bytes "
                f"for {n} frames at count_bits {bits}, found "
                f"{layout.HEADER_SIZE + self._packed_size} (Header blob)"
            )
        if n > available // self.count_min:
            raise HeaderError(
                f"header blob: {n} frames of at least {self.count_min} bytes describe a file of "
                "more than 2**63 bytes"
            )
        if bits:
            total = self._scan()
        if total > <uint64_t> (available - n * <int64_t> self.count_min):
            raise HeaderError("header blob: frame byte counts add up to more than 2**63 bytes")
        self.file_size = self.base_frame_offset + n * <int64_t> self.count_min + <int64_t> total
        return 0

    cdef uint64_t _scan(self) except? 0:
        cdef int64_t n = self.frame_count
        cdef int bits = self.count_bits
        cdef Py_ssize_t size = self._packed_size
        cdef int64_t blocks = (n + CHECKPOINT_STRIDE - 1) >> CHECKPOINT_SHIFT
        cdef int64_t block, stop
        cdef uint64_t total = 0
        cdef uint32_t seen = 0
        cdef bint has_zero = False
        cdef int spare = <int> (size * 8 - n * bits)
        cdef Scan scan
        if blocks > 1:
            self._checkpoints = <uint64_t*> malloc(blocks * sizeof(uint64_t))
            if self._checkpoints == NULL:
                raise MemoryError(f"{blocks} checkpoints for {n} frames")
        with nogil:
            for block in range(blocks):
                if blocks > 1:
                    self._checkpoints[block] = total
                stop = min(n, (block + 1) << CHECKPOINT_SHIFT)
                scan = residual_scan(
                    self._packed, size, <uint64_t> (block << CHECKPOINT_SHIFT), stop, bits
                )
                total += scan.total
                seen |= scan.largest
                has_zero = has_zero or scan.has_zero
        if spare and self._packed[size - 1] >> (8 - spare):
            raise HeaderError(
                f"header blob: unused bits (byte {layout.HEADER_SIZE + size - 1}): expected the "
                f"upper {spare} to be zero, found {_hex(self._packed[size - 1])} "
                "(Frame byte counts, Packing)"
            )
        if not has_zero:
            raise HeaderError(
                f"header blob: count_min (byte {layout.OFFSET_COUNT_MIN}): expected the smallest "
                f"byte count, found {self.count_min}, which no frame has "
                "(Frame byte counts, Encoding)"
            )
        if bit_length(seen) != bits:
            raise HeaderError(
                f"header blob: count_bits (byte {layout.OFFSET_COUNT_BITS}): expected "
                f"{bit_length(seen)}, the width of the largest residual, found {bits} "
                "(Frame byte counts, Encoding)"
            )
        if <uint64_t> self.count_min + <uint64_t> seen > 0xFFFFFFFF:
            self._check_largest()
        return total

    cdef int _check_largest(self) except -1:
        """Refuse a count that TileByteCounts, a LONG, cannot hold."""
        cdef int64_t index
        cdef uint64_t count
        for index in range(self.frame_count):
            count = <uint64_t> self.count_min + residual_at(
                self._packed, self._packed_size, index, self.count_bits
            )
            if count > 0xFFFFFFFF:
                raise HeaderError(
                    f"header blob: byte count of frame {index}: expected at most {0xFFFFFFFF}, "
                    f"found {count} (Fixed IFD)"
                )
        return 0

    cdef uint32_t c_byte_count(self, int64_t index) noexcept nogil:
        return self.count_min + residual_at(
            self._packed, self._packed_size, <uint64_t> index, self.count_bits
        )

    cdef int64_t c_offset(self, int64_t index) noexcept nogil:
        cdef int64_t block = index >> CHECKPOINT_SHIFT
        cdef int64_t start = 0
        cdef uint64_t total = 0
        if self._checkpoints != NULL:
            # The end of the last frame may fall on a block that does not exist.
            if block << CHECKPOINT_SHIFT >= self.frame_count:
                block -= 1
            start = block << CHECKPOINT_SHIFT
            total = self._checkpoints[block]
        total += residual_sum(self._packed, self._packed_size, start, index, self.count_bits)
        return self.base_frame_offset + index * <int64_t> self.count_min + <int64_t> total

    cdef int64_t c_offset_from(
        self, int64_t index, int64_t known_index, int64_t known_offset
    ) noexcept nogil:
        """Return offset of frame index, given that of an earlier frame."""
        if index - known_index > CHECKPOINT_STRIDE:
            return self.c_offset(index)
        return (
            known_offset
            + (index - known_index) * <int64_t> self.count_min
            + <int64_t> residual_sum(
                self._packed, self._packed_size, known_index, index, self.count_bits
            )
        )

    cdef int64_t _index(self, index) except -1:
        cdef object value
        if isinstance(index, bool):
            raise TypeError("a frame index is an integer, found bool")
        try:
            value = index.__index__()
        except AttributeError:
            raise TypeError(
                f"a frame index is an integer, found {type(index).__name__}"
            ) from None
        if not 0 <= value < self.frame_count:
            raise IndexError(f"frame {value} is outside 0..{self.frame_count - 1}")
        return value

    cpdef bint same_encoding(self, BlobHeader other):
        """Whether two headers have the same sample encoding."""
        return (
            self.sample_format == other.sample_format
            and self.bits_per_sample == other.bits_per_sample
        )

    @property
    def frame_bytes(self):
        """Decoded size in bytes of a frame that no edge cuts; at most 2**52."""
        cdef int64_t height = min(self.tile_length, self.image_length)
        cdef int64_t width = min(self.tile_width, self.image_width)
        cdef bint cell = self.frame_unit == layout.FRAME_UNIT_CELL
        return height * width * self.itemsize * (self.samples_per_pixel if cell else 1)

    def byte_count(self, index):
        """Return the compressed size of frame `index` in bytes (Decoding)."""
        return self.c_byte_count(self._index(index))

    def offset(self, index):
        """Return the file offset of frame `index` in bytes (Offset reconstruction)."""
        return self.c_offset(self._index(index))

    def fill_byte_counts(self, uint32_t[::1] out not None):
        """Write the N compressed sizes in bytes, in frame-index order, into `out`."""
        cdef int64_t index
        if out.shape[0] != self.frame_count:
            raise ValueError(f"expected room for {self.frame_count} frames, found {out.shape[0]}")
        with nogil:
            for index in range(self.frame_count):
                out[index] = self.c_byte_count(index)

    def fill_offsets(self, uint64_t[::1] out not None):
        """Write the N file offsets in bytes, in frame-index order, into `out`."""
        cdef int64_t index
        cdef int64_t offset = self.base_frame_offset
        if out.shape[0] != self.frame_count:
            raise ValueError(f"expected room for {self.frame_count} frames, found {out.shape[0]}")
        with nogil:
            for index in range(self.frame_count):
                out[index] = <uint64_t> offset
                offset += self.c_byte_count(index)

    def __bytes__(self):
        return self._blob

    def __len__(self):
        return len(self._blob)

    def __eq__(self, other):
        if not isinstance(other, BlobHeader):
            return NotImplemented
        return self._blob == (<BlobHeader> other)._blob

    def __hash__(self):
        return hash(self._blob)

    def __reduce__(self):
        return type(self), (self._blob,)


def serialise(
    uint32_t image_width, uint32_t image_length, uint16_t tile_width, uint16_t tile_length,
    uint16_t samples_per_pixel, uint8_t bits_per_sample, uint8_t sample_format,
    uint8_t frame_unit, uint32_t count_min, uint8_t count_bits, bytes packed not None,
):
    """Lay out a header blob; the caller has packed the sizes with ``bits.pack``.

    Returns
    -------
    bytes
        28 bytes and `packed`. Parse it to check it.

    Raises
    ------
    OverflowError
        If a value does not fit its field.

    Notes
    -----
    Source: specification 0.1.0, Header fields.
    """
    cdef uint32_t magic = layout.MAGIC
    cdef uint16_t version = layout.VERSION
    cdef Py_ssize_t size = len(packed)
    blob = PyBytes_FromStringAndSize(NULL, layout.HEADER_SIZE + size)
    cdef uint8_t* data = <uint8_t*> PyBytes_AsString(blob)
    memcpy(data + layout.OFFSET_MAGIC, &magic, 4)
    memcpy(data + layout.OFFSET_VERSION, &version, 2)
    memcpy(data + layout.OFFSET_IMAGE_WIDTH, &image_width, 4)
    memcpy(data + layout.OFFSET_IMAGE_LENGTH, &image_length, 4)
    memcpy(data + layout.OFFSET_TILE_WIDTH, &tile_width, 2)
    memcpy(data + layout.OFFSET_TILE_LENGTH, &tile_length, 2)
    memcpy(data + layout.OFFSET_SAMPLES_PER_PIXEL, &samples_per_pixel, 2)
    data[layout.OFFSET_BITS_PER_SAMPLE] = bits_per_sample
    data[layout.OFFSET_SAMPLE_FORMAT] = sample_format
    data[layout.OFFSET_FRAME_UNIT] = frame_unit
    memcpy(data + layout.OFFSET_COUNT_MIN, &count_min, 4)
    data[layout.OFFSET_COUNT_BITS] = count_bits
    memcpy(data + layout.HEADER_SIZE, PyBytes_AsString(packed), size)
    return blob


def frame_data_offset(frame_count, bands):
    """Return the byte where frame data starts, for N frames and B bands.

    Raises
    ------
    ValueError
        If a count is below 1, or the index of N frames passes 2**63 bytes.

    Notes
    -----
    Source: specification 0.1.0, Deriving base_frame_offset.
    """
    if not 1 <= bands <= 0xFFFF:
        raise ValueError(f"expected 1 to {0xFFFF} bands, found {bands}")
    if not 1 <= frame_count <= (<int64_t> 1 << MAX_FRAME_SHIFT):
        raise ValueError(f"expected 1 to 2**{MAX_FRAME_SHIFT} frames, found {frame_count}")
    return base_offset(frame_count, bands)
