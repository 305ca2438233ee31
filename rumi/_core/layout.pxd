# Generated from formats/*.ksy by formats/generate.mjs. Do not edit.
"""Constants of the format for the compiled core."""

# Header blob
cdef enum:
    HEADER_SIZE = 28
    MAGIC = 0x45564F4C
    VERSION = 1
    MAX_COUNT_BITS = 32
    OFFSET_MAGIC = 0
    OFFSET_VERSION = 4
    OFFSET_IMAGE_WIDTH = 6
    OFFSET_IMAGE_LENGTH = 10
    OFFSET_TILE_WIDTH = 14
    OFFSET_TILE_LENGTH = 16
    OFFSET_SAMPLES_PER_PIXEL = 18
    OFFSET_BITS_PER_SAMPLE = 20
    OFFSET_SAMPLE_FORMAT = 21
    OFFSET_FRAME_UNIT = 22
    OFFSET_COUNT_MIN = 23
    OFFSET_COUNT_BITS = 27
    FRAME_UNIT_TILE = 0
    FRAME_UNIT_CELL = 1

# Placement in the file
cdef enum:
    IFD_OFFSET = 16
    IFD_SIZE = 236
    EXTERNAL_OFFSET = 252
    GEOREFERENCING_SIZE = 160
    INLINE_SIZE = 8

cdef inline int encoding_itemsize(int sample_format, int bits_per_sample) noexcept nogil:
    """Bytes of one sample in memory, or 0 if the pair is not a listed one."""
    cdef int pair
    # Both are single bytes in the header; wider values would overlap in the pair.
    if (sample_format | bits_per_sample) & ~0xFF:
        return 0
    pair = (sample_format << 8) | bits_per_sample
    if pair in (
        (1 << 8) | 1,  # binary
        (1 << 8) | 2,  # uint2
        (1 << 8) | 4,  # uint4
        (1 << 8) | 8,  # uint8
        (2 << 8) | 2,  # int2
        (2 << 8) | 4,  # int4
        (2 << 8) | 8,  # int8
        (100 << 8) | 8,  # float8_e4m3fn
        (101 << 8) | 8,  # float8_e5m2
        (103 << 8) | 8,  # float8_e8m0
        (104 << 8) | 6,  # float6_e2m3
        (105 << 8) | 6,  # float6_e3m2
        (106 << 8) | 4,  # float4_e2m1
    ):
        return 1
    elif pair in (
        (1 << 8) | 16,  # uint16
        (2 << 8) | 16,  # int16
        (3 << 8) | 16,  # float16
        (102 << 8) | 16,  # bfloat16
    ):
        return 2
    elif pair in (
        (1 << 8) | 32,  # uint32
        (2 << 8) | 32,  # int32
        (3 << 8) | 32,  # float32
        (5 << 8) | 32,  # complex_int16
        (6 << 8) | 32,  # complex_float16
    ):
        return 4
    elif pair in (
        (1 << 8) | 64,  # uint64
        (2 << 8) | 64,  # int64
        (3 << 8) | 64,  # float64
        (5 << 8) | 64,  # complex_int32
        (6 << 8) | 64,  # complex_float32
    ):
        return 8
    elif pair in (
        (6 << 8) | 128,  # complex_float64
    ):
        return 16
    return 0
