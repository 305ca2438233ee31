# Generated from formats/rumi_header.ksy by formats/generate.mjs. Do not edit.
# ruff: noqa
# type: ignore

import kaitaistruct
from kaitaistruct import KaitaiStruct, KaitaiStream, BytesIO
from enum import IntEnum


if getattr(kaitaistruct, 'API_VERSION', (0, 9)) < (0, 11):
    raise Exception("Incompatible Kaitai Struct Python API: 0.11 or later is required, but you have %s" % (kaitaistruct.__version__))

class RumiHeader(KaitaiStruct):
    """The header blob of a rumi file: everything needed to locate any frame of the
    file without opening or parsing it. A fixed header of 28 bytes is followed by
    the byte count of every frame, packed at the minimum required bit width.

    The packed residuals are one raw span, never an array of elements: a file of
    90,000 frames would otherwise cost 90,000 objects before the first frame is
    found. `byte_count` and `frame_offset` decode single frames from that span;
    they take the frame index as their parameter, so an application instantiates
    them itself, with the `rumi_header` object as root. They are the definition
    that fast implementations are tested against.

    Casts to `u8` carry no meaning in the format. They make the compiler choose
    64-bit arithmetic in languages whose integers have a fixed width. The masks
    `& 0xff` are for languages in which the elements of a byte array have a sign,
    and remainders are written as differences because not every runtime library
    computes them in 64 bits.

    .. seealso::
       rumi specification 0.1.0, Header blob
    """

    class FrameUnit(IntEnum):
        tile = 0
        cell = 1

    class SampleEncoding(IntEnum):
        binary = 257
        uint2 = 258
        uint4 = 260
        uint8 = 264
        uint16 = 272
        uint32 = 288
        uint64 = 320
        int2 = 514
        int4 = 516
        int8 = 520
        int16 = 528
        int32 = 544
        int64 = 576
        float16 = 784
        float32 = 800
        float64 = 832
        complex_int16 = 1312
        complex_int32 = 1344
        complex_float16 = 1568
        complex_float32 = 1600
        complex_float64 = 1664
        float8_e4m3fn = 25608
        float8_e5m2 = 25864
        bfloat16 = 26128
        float8_e8m0 = 26376
        float6_e2m3 = 26630
        float6_e3m2 = 26886
        float4_e2m1 = 27140

    class SampleFormat(IntEnum):
        unsigned_integer = 1
        signed_integer = 2
        floating_point = 3
        complex_signed_integer = 5
        complex_floating_point = 6
        float8_e4m3fn = 100
        float8_e5m2 = 101
        bfloat16 = 102
        float8_e8m0 = 103
        float6_e2m3 = 104
        float6_e3m2 = 105
        float4_e2m1 = 106
    def __init__(self, _io, _parent=None, _root=None):
        super(RumiHeader, self).__init__(_io)
        self._parent = _parent
        self._root = _root or self
        self._read()

    def _read(self):
        self.magic = self._io.read_u4le()
        if not self.magic == 1163284300:
            raise kaitaistruct.ValidationNotEqualError(1163284300, self.magic, self._io, u"/seq/0")
        self.version = self._io.read_u2le()
        if not self.version == 1:
            raise kaitaistruct.ValidationNotEqualError(1, self.version, self._io, u"/seq/1")
        self.image_width = self._io.read_u4le()
        if not self.image_width >= 1:
            raise kaitaistruct.ValidationLessThanError(1, self.image_width, self._io, u"/seq/2")
        self.image_length = self._io.read_u4le()
        if not self.image_length >= 1:
            raise kaitaistruct.ValidationLessThanError(1, self.image_length, self._io, u"/seq/3")
        self.tile_width = self._io.read_u2le()
        if not self.tile_width >= 1:
            raise kaitaistruct.ValidationLessThanError(1, self.tile_width, self._io, u"/seq/4")
        self.tile_length = self._io.read_u2le()
        if not self.tile_length >= 1:
            raise kaitaistruct.ValidationLessThanError(1, self.tile_length, self._io, u"/seq/5")
        self.samples_per_pixel = self._io.read_u2le()
        if not self.samples_per_pixel >= 1:
            raise kaitaistruct.ValidationLessThanError(1, self.samples_per_pixel, self._io, u"/seq/6")
        self.bits_per_sample = self._io.read_u1()
        if not  ((self.bits_per_sample == 1) or (self.bits_per_sample == 2) or (self.bits_per_sample == 4) or (self.bits_per_sample == 6) or (self.bits_per_sample == 8) or (self.bits_per_sample == 16) or (self.bits_per_sample == 32) or (self.bits_per_sample == 64) or (self.bits_per_sample == 128)) :
            raise kaitaistruct.ValidationNotAnyOfError(self.bits_per_sample, self._io, u"/seq/7")
        self.sample_format = KaitaiStream.resolve_enum(RumiHeader.SampleFormat, self._io.read_u1())
        _ = self.sample_format
        if not int(self.sample_encoding) // 256 == int(_):
            raise kaitaistruct.ValidationExprError(self.sample_format, self._io, u"/seq/8")
        self.frame_unit = KaitaiStream.resolve_enum(RumiHeader.FrameUnit, self._io.read_u1())
        if not isinstance(self.frame_unit, RumiHeader.FrameUnit):
            raise kaitaistruct.ValidationNotInEnumError(self.frame_unit, self._io, u"/seq/9")
        self.count_min = self._io.read_u4le()
        if not self.count_min >= 1:
            raise kaitaistruct.ValidationLessThanError(1, self.count_min, self._io, u"/seq/10")
        self.count_bits = self._io.read_u1()
        if not self.count_bits <= 32:
            raise kaitaistruct.ValidationGreaterThanError(32, self.count_bits, self._io, u"/seq/11")
        self.packed_residuals = self._io.read_bytes(self.len_packed)
        _ = self.packed_residuals
        if not  ((len(self.packed_residuals) == self.len_packed) and (self._io.is_eof()) and (self.unused_bits == 0)) :
            raise kaitaistruct.ValidationExprError(self.packed_residuals, self._io, u"/seq/12")


    def _fetch_instances(self):
        pass
        _ = self.grid
        if hasattr(self, '_m_grid'):
            pass
            self._m_grid._fetch_instances()

        _ = self.placement
        if hasattr(self, '_m_placement'):
            pass
            self._m_placement._fetch_instances()

        _ = self.sample_encoding
        if hasattr(self, '_m_sample_encoding'):
            pass


    class ByteCount(KaitaiStruct):
        """Byte count of one frame, independent of every other frame.

        .. seealso::
           rumi specification 0.1.0, Frame byte counts, Decoding
        """
        def __init__(self, index, _io, _parent=None, _root=None):
            super(RumiHeader.ByteCount, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self.index = index
            self._read()

        def _read(self):
            pass


        def _fetch_instances(self):
            pass
            _ = self.residual
            if hasattr(self, '_m_residual'):
                pass
                self._m_residual._fetch_instances()


        @property
        def residual(self):
            """Byte count less count_min."""
            if hasattr(self, '_m_residual'):
                return self._m_residual

            self._m_residual = RumiHeader.Residual(self.index, self._io, self, self._root)
            return getattr(self, '_m_residual', None)

        @property
        def value(self):
            """Compressed size of the frame in bytes."""
            if hasattr(self, '_m_value'):
                return self._m_value

            self._m_value = (self._root.count_min + self.residual.value)
            return getattr(self, '_m_value', None)


    class FrameLayout(KaitaiStruct):
        """The frame unit for a reader that holds the IFD only, derived from the
        entry count of TileOffsets. With a single band the two layouts are
        identical and read as tile.

        .. seealso::
           rumi specification 0.1.0, Deriving the frame unit
        """
        def __init__(self, num_positions, samples_per_pixel, count, _io, _parent=None, _root=None):
            super(RumiHeader.FrameLayout, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self.num_positions = num_positions
            self.samples_per_pixel = samples_per_pixel
            self.count = count
            self._read()

        def _read(self):
            pass


        def _fetch_instances(self):
            pass

        @property
        def frame_unit(self):
            """Meaningful only if is_valid is true."""
            if hasattr(self, '_m_frame_unit'):
                return self._m_frame_unit

            self._m_frame_unit = (RumiHeader.FrameUnit.tile if self.is_tile else RumiHeader.FrameUnit.cell)
            return getattr(self, '_m_frame_unit', None)

        @property
        def is_tile(self):
            """True if there is a frame for every band at every grid position."""
            if hasattr(self, '_m_is_tile'):
                return self._m_is_tile

            self._m_is_tile = self.count == self.num_positions * self.samples_per_pixel
            return getattr(self, '_m_is_tile', None)

        @property
        def is_valid(self):
            """False for a file that a reader rejects because its count matches neither value."""
            if hasattr(self, '_m_is_valid'):
                return self._m_is_valid

            self._m_is_valid =  ((self.is_tile) or (self.count == self.num_positions))
            return getattr(self, '_m_is_valid', None)


    class FrameOffset(KaitaiStruct):
        """Offset of one frame in the file.

        .. seealso::
           rumi specification 0.1.0, Offset reconstruction
        """
        def __init__(self, index, _io, _parent=None, _root=None):
            super(RumiHeader.FrameOffset, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self.index = index
            self._read()

        def _read(self):
            pass


        def _fetch_instances(self):
            pass
            _ = self.preceding
            if hasattr(self, '_m_preceding'):
                pass
                self._m_preceding._fetch_instances()


        @property
        def preceding(self):
            """The residuals of all frames before this one. Not computed where all are 0."""
            if hasattr(self, '_m_preceding'):
                return self._m_preceding

            if self._root.count_bits > 0:
                pass
                self._m_preceding = RumiHeader.ResidualSum(0, self.index, self._io, self, self._root)

            return getattr(self, '_m_preceding', None)

        @property
        def value(self):
            """Offset of the first byte of the frame."""
            if hasattr(self, '_m_value'):
                return self._m_value

            self._m_value = ((self._root.base_frame_offset + self.index * self._root.count_min) + (self.preceding.value if self._root.count_bits > 0 else 0))
            return getattr(self, '_m_value', None)


    class Grid(KaitaiStruct):
        """The grid of tiles that covers an image, traversed in row-major order. For
        the positive sizes of an image, ceil(a / b) is (a - 1) / b + 1, which
        cannot exceed the width of the fields.

        .. seealso::
           rumi specification 0.1.0, Frame index
        """
        def __init__(self, image_width, image_length, tile_width, tile_length, _io, _parent=None, _root=None):
            super(RumiHeader.Grid, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self.image_width = image_width
            self.image_length = image_length
            self.tile_width = tile_width
            self.tile_length = tile_length
            self._read()

        def _read(self):
            pass


        def _fetch_instances(self):
            pass

        @property
        def num_positions(self):
            """Number of grid positions."""
            if hasattr(self, '_m_num_positions'):
                return self._m_num_positions

            self._m_num_positions = (self.tiles_across * self.tiles_down)
            return getattr(self, '_m_num_positions', None)

        @property
        def tiles_across(self):
            """ceil(image_width / tile_width)."""
            if hasattr(self, '_m_tiles_across'):
                return self._m_tiles_across

            self._m_tiles_across = ((self.image_width - 1) // self.tile_width + 1)
            return getattr(self, '_m_tiles_across', None)

        @property
        def tiles_down(self):
            """ceil(image_length / tile_length)."""
            if hasattr(self, '_m_tiles_down'):
                return self._m_tiles_down

            self._m_tiles_down = ((self.image_length - 1) // self.tile_length + 1)
            return getattr(self, '_m_tiles_down', None)


    class Placement(KaitaiStruct):
        """Placement of everything that precedes the frames. The IFD has a fixed
        place and size, and only values larger than 8 bytes contribute to the
        external area, so band count and frame count determine where frames start.

        .. seealso::
           rumi specification 0.1.0, Placement; Deriving base_frame_offset
        """
        def __init__(self, samples_per_pixel, frame_count, _io, _parent=None, _root=None):
            super(RumiHeader.Placement, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self.samples_per_pixel = samples_per_pixel
            self.frame_count = frame_count
            self._read()

        def _read(self):
            pass


        def _fetch_instances(self):
            pass

        @property
        def base_frame_offset(self):
            """Offset of frame 0, immediately after the last external value."""
            if hasattr(self, '_m_base_frame_offset'):
                return self._m_base_frame_offset

            self._m_base_frame_offset = (self.ofs_external + self.len_external)
            return getattr(self, '_m_base_frame_offset', None)

        @property
        def len_bits_per_sample(self):
            """External bytes of BitsPerSample, and of SampleFormat as well."""
            if hasattr(self, '_m_len_bits_per_sample'):
                return self._m_len_bits_per_sample

            self._m_len_bits_per_sample = (self.samples_per_pixel * 2 if self.samples_per_pixel * 2 > self.len_inline else 0)
            return getattr(self, '_m_len_bits_per_sample', None)

        @property
        def len_external(self):
            """Bytes of all external values."""
            if hasattr(self, '_m_len_external'):
                return self._m_len_external

            self._m_len_external = ((((self.len_bits_per_sample + self.len_tile_offsets) + self.len_tile_byte_counts) + self.len_bits_per_sample) + self.len_georeferencing)
            return getattr(self, '_m_len_external', None)

        @property
        def len_geo_key_directory(self):
            """Bytes of GeoKeyDirectoryTag, 16 shorts."""
            if hasattr(self, '_m_len_geo_key_directory'):
                return self._m_len_geo_key_directory

            self._m_len_geo_key_directory = 32
            return getattr(self, '_m_len_geo_key_directory', None)

        @property
        def len_georeferencing(self):
            """The two georeferencing tags never change their size."""
            if hasattr(self, '_m_len_georeferencing'):
                return self._m_len_georeferencing

            self._m_len_georeferencing = self.len_model_transformation + self.len_geo_key_directory
            return getattr(self, '_m_len_georeferencing', None)

        @property
        def len_ifd(self):
            """Entry count, 11 entries of 20 bytes and the zero offset of the next IFD."""
            if hasattr(self, '_m_len_ifd'):
                return self._m_len_ifd

            self._m_len_ifd = 236
            return getattr(self, '_m_len_ifd', None)

        @property
        def len_inline(self):
            """Values of at most this many bytes are stored inside their IFD entry."""
            if hasattr(self, '_m_len_inline'):
                return self._m_len_inline

            self._m_len_inline = 8
            return getattr(self, '_m_len_inline', None)

        @property
        def len_model_transformation(self):
            """Bytes of ModelTransformationTag, 16 doubles."""
            if hasattr(self, '_m_len_model_transformation'):
                return self._m_len_model_transformation

            self._m_len_model_transformation = 128
            return getattr(self, '_m_len_model_transformation', None)

        @property
        def len_tile_byte_counts(self):
            """External bytes of TileByteCounts."""
            if hasattr(self, '_m_len_tile_byte_counts'):
                return self._m_len_tile_byte_counts

            self._m_len_tile_byte_counts = (self.frame_count * 4 if self.frame_count * 4 > self.len_inline else 0)
            return getattr(self, '_m_len_tile_byte_counts', None)

        @property
        def len_tile_offsets(self):
            """External bytes of TileOffsets."""
            if hasattr(self, '_m_len_tile_offsets'):
                return self._m_len_tile_offsets

            self._m_len_tile_offsets = (self.frame_count * 8 if self.frame_count * 8 > self.len_inline else 0)
            return getattr(self, '_m_len_tile_offsets', None)

        @property
        def ofs_external(self):
            """The first external value follows the IFD immediately."""
            if hasattr(self, '_m_ofs_external'):
                return self._m_ofs_external

            self._m_ofs_external = self.ofs_ifd + self.len_ifd
            return getattr(self, '_m_ofs_external', None)

        @property
        def ofs_ifd(self):
            """The IFD follows the BigTIFF header immediately."""
            if hasattr(self, '_m_ofs_ifd'):
                return self._m_ofs_ifd

            self._m_ofs_ifd = 16
            return getattr(self, '_m_ofs_ifd', None)


    class Residual(KaitaiStruct):
        """Residual of one frame. It occupies at most five bytes of the packed span
        and only those are touched.

        .. seealso::
           rumi specification 0.1.0, Frame byte counts, Decoding
        """
        def __init__(self, index, _io, _parent=None, _root=None):
            super(RumiHeader.Residual, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self.index = index
            self._read()

        def _read(self):
            pass


        def _fetch_instances(self):
            pass

        @property
        def first_bit(self):
            """Position of the residual in the packed span, in bits."""
            if hasattr(self, '_m_first_bit'):
                return self._m_first_bit

            self._m_first_bit = (self.index * self._root.count_bits)
            return getattr(self, '_m_first_bit', None)

        @property
        def first_byte(self):
            """The byte that holds its first bit."""
            if hasattr(self, '_m_first_byte'):
                return self._m_first_byte

            self._m_first_byte = (self.first_bit // 8)
            return getattr(self, '_m_first_byte', None)

        @property
        def len_span(self):
            """Bytes from the one that holds the first bit to the one that holds the last."""
            if hasattr(self, '_m_len_span'):
                return self._m_len_span

            self._m_len_span = ((self.shift + self._root.count_bits) + 7) // 8
            return getattr(self, '_m_len_span', None)

        @property
        def shift(self):
            """Bits of that byte that belong to preceding residuals."""
            if hasattr(self, '_m_shift'):
                return self._m_shift

            self._m_shift = (self.first_bit - self.first_byte * 8)
            return getattr(self, '_m_shift', None)

        @property
        def shifted(self):
            """These bytes without the bits of preceding residuals."""
            if hasattr(self, '_m_shifted'):
                return self._m_shifted

            self._m_shifted = (self.span // (1 << self.shift))
            return getattr(self, '_m_shifted', None)

        @property
        def span(self):
            """These bytes as one little-endian number."""
            if hasattr(self, '_m_span'):
                return self._m_span

            self._m_span = ((((((KaitaiStream.byte_array_index(self._root.packed_residuals, self.first_byte) if self._root.count_bits > 0 else 0) & 255) + ((KaitaiStream.byte_array_index(self._root.packed_residuals, self.first_byte + 1) if self.len_span > 1 else 0) & 255) * 256) + ((KaitaiStream.byte_array_index(self._root.packed_residuals, self.first_byte + 2) if self.len_span > 2 else 0) & 255) * 65536) + ((KaitaiStream.byte_array_index(self._root.packed_residuals, self.first_byte + 3) if self.len_span > 3 else 0) & 255) * 16777216) + ((KaitaiStream.byte_array_index(self._root.packed_residuals, self.first_byte + 4) if self.len_span > 4 else 0) & 255) * 4294967296)
            return getattr(self, '_m_span', None)

        @property
        def value(self):
            """The residual, which is the low count_bits bits of `shifted`."""
            if hasattr(self, '_m_value'):
                return self._m_value

            self._m_value = (self.shifted - (self.shifted // self._root.residual_limit) * self._root.residual_limit)
            return getattr(self, '_m_value', None)


    class ResidualSum(KaitaiStruct):
        """Sum of `count` residuals starting at `first`. Halving the run keeps the
        depth of the recursion at log2(count).

        .. seealso::
           rumi specification 0.1.0, Offset reconstruction
        """
        def __init__(self, first, count, _io, _parent=None, _root=None):
            super(RumiHeader.ResidualSum, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self.first = first
            self.count = count
            self._read()

        def _read(self):
            pass


        def _fetch_instances(self):
            pass
            _ = self.left
            if hasattr(self, '_m_left'):
                pass
                self._m_left._fetch_instances()

            _ = self.only
            if hasattr(self, '_m_only'):
                pass
                self._m_only._fetch_instances()

            _ = self.right
            if hasattr(self, '_m_right'):
                pass
                self._m_right._fetch_instances()


        @property
        def left(self):
            """The first half of a longer run."""
            if hasattr(self, '_m_left'):
                return self._m_left

            if self.count > 1:
                pass
                self._m_left = RumiHeader.ResidualSum(self.first, self.count // 2, self._io, self, self._root)

            return getattr(self, '_m_left', None)

        @property
        def only(self):
            """The residual of a run of one."""
            if hasattr(self, '_m_only'):
                return self._m_only

            if self.count == 1:
                pass
                self._m_only = RumiHeader.Residual(self.first, self._io, self, self._root)

            return getattr(self, '_m_only', None)

        @property
        def right(self):
            """The second half of a longer run."""
            if hasattr(self, '_m_right'):
                return self._m_right

            if self.count > 1:
                pass
                self._m_right = RumiHeader.ResidualSum(self.first + self.count // 2, self.count - self.count // 2, self._io, self, self._root)

            return getattr(self, '_m_right', None)

        @property
        def value(self):
            """The sum; 0 for an empty run."""
            if hasattr(self, '_m_value'):
                return self._m_value

            self._m_value = (self.left.value + self.right.value if self.count > 1 else (self.only.value if self.count == 1 else 0))
            return getattr(self, '_m_value', None)


    class SampleType(KaitaiStruct):
        """The pair (sample_format, bits_per_sample) for a reader that holds the IFD
        only. A pair that is not listed gives no member of the enumeration; the
        reader rejects it.

        .. seealso::
           rumi specification 0.1.0, Sample encodings
        """
        def __init__(self, bits_per_sample, format_code, _io, _parent=None, _root=None):
            super(RumiHeader.SampleType, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self.bits_per_sample = bits_per_sample
            self.format_code = format_code
            self._read()

        def _read(self):
            pass


        def _fetch_instances(self):
            pass

        @property
        def sample_encoding(self):
            """sample_format << 8 | bits_per_sample."""
            if hasattr(self, '_m_sample_encoding'):
                return self._m_sample_encoding

            self._m_sample_encoding = KaitaiStream.resolve_enum(RumiHeader.SampleEncoding, (self.format_code * 256 + self.bits_per_sample))
            return getattr(self, '_m_sample_encoding', None)

        @property
        def sample_format(self):
            """The sample type."""
            if hasattr(self, '_m_sample_format'):
                return self._m_sample_format

            self._m_sample_format = KaitaiStream.resolve_enum(RumiHeader.SampleFormat, self.format_code)
            return getattr(self, '_m_sample_format', None)


    @property
    def base_frame_offset(self):
        """Offset of frame 0 in the file.

        .. seealso::
           rumi specification 0.1.0, Deriving base_frame_offset
        """
        if hasattr(self, '_m_base_frame_offset'):
            return self._m_base_frame_offset

        self._m_base_frame_offset = self.placement.base_frame_offset
        return getattr(self, '_m_base_frame_offset', None)

    @property
    def frame_count(self):
        """The frame count N.

        .. seealso::
           rumi specification 0.1.0, Frame index
        """
        if hasattr(self, '_m_frame_count'):
            return self._m_frame_count

        self._m_frame_count = (self.grid.num_positions * (self.samples_per_pixel if self.frame_unit == RumiHeader.FrameUnit.tile else 1))
        return getattr(self, '_m_frame_count', None)

    @property
    def grid(self):
        """The tile grid laid over the image.

        .. seealso::
           rumi specification 0.1.0, Frame index
        """
        if hasattr(self, '_m_grid'):
            return self._m_grid

        self._m_grid = RumiHeader.Grid(self.image_width, self.image_length, self.tile_width, self.tile_length, self._io, self, self._root)
        return getattr(self, '_m_grid', None)

    @property
    def len_external(self):
        """Bytes of the file between the end of the IFD and the first frame.

        .. seealso::
           rumi specification 0.1.0, Deriving base_frame_offset
        """
        if hasattr(self, '_m_len_external'):
            return self._m_len_external

        self._m_len_external = self.placement.len_external
        return getattr(self, '_m_len_external', None)

    @property
    def len_packed(self):
        """Bytes of the packed residuals, ceil(N * count_bits / 8).

        .. seealso::
           rumi specification 0.1.0, Header blob
        """
        if hasattr(self, '_m_len_packed'):
            return self._m_len_packed

        self._m_len_packed = ((self.frame_count * self.count_bits + 7) // 8)
        return getattr(self, '_m_len_packed', None)

    @property
    def num_unused_bits(self):
        """Number of high bits in the last packed byte that belong to no residual.

        .. seealso::
           rumi specification 0.1.0, Frame byte counts, Packing
        """
        if hasattr(self, '_m_num_unused_bits'):
            return self._m_num_unused_bits

        self._m_num_unused_bits = (len(self.packed_residuals) * 8 - self.frame_count * self.count_bits)
        return getattr(self, '_m_num_unused_bits', None)

    @property
    def placement(self):
        """Where the file keeps its values and where its frames start.

        .. seealso::
           rumi specification 0.1.0, Placement
        """
        if hasattr(self, '_m_placement'):
            return self._m_placement

        self._m_placement = RumiHeader.Placement(self.samples_per_pixel, self.frame_count, self._io, self, self._root)
        return getattr(self, '_m_placement', None)

    @property
    def residual_limit(self):
        """2 to the power of count_bits, one more than the largest residual. It is a
        product of two shifts because several languages shift in 32 bits.
        """
        if hasattr(self, '_m_residual_limit'):
            return self._m_residual_limit

        self._m_residual_limit = ((1 << self.count_bits // 2) * (1 << self.count_bits - self.count_bits // 2))
        return getattr(self, '_m_residual_limit', None)

    @property
    def sample_encoding(self):
        """bits_per_sample and sample_format read together as one little-endian
        number, sample_format << 8 | bits_per_sample. Only listed pairs are valid.

        .. seealso::
           rumi specification 0.1.0, Sample encodings
        """
        if hasattr(self, '_m_sample_encoding'):
            return self._m_sample_encoding

        _pos = self._io.pos()
        self._io.seek(20)
        self._m_sample_encoding = KaitaiStream.resolve_enum(RumiHeader.SampleEncoding, self._io.read_u2le())
        if not isinstance(self._m_sample_encoding, RumiHeader.SampleEncoding):
            raise kaitaistruct.ValidationNotInEnumError(self._m_sample_encoding, self._io, u"/instances/sample_encoding")
        self._io.seek(_pos)
        return getattr(self, '_m_sample_encoding', None)

    @property
    def tiles_across(self):
        """Number of grid columns.

        .. seealso::
           rumi specification 0.1.0, Frame index
        """
        if hasattr(self, '_m_tiles_across'):
            return self._m_tiles_across

        self._m_tiles_across = self.grid.tiles_across
        return getattr(self, '_m_tiles_across', None)

    @property
    def tiles_down(self):
        """Number of grid rows.

        .. seealso::
           rumi specification 0.1.0, Frame index
        """
        if hasattr(self, '_m_tiles_down'):
            return self._m_tiles_down

        self._m_tiles_down = self.grid.tiles_down
        return getattr(self, '_m_tiles_down', None)

    @property
    def unused_bits(self):
        """The unused bits of the last packed byte, which are zero in every valid blob.

        .. seealso::
           rumi specification 0.1.0, Frame byte counts, Packing
        """
        if hasattr(self, '_m_unused_bits'):
            return self._m_unused_bits

        self._m_unused_bits = (0 if self.num_unused_bits == 0 else (KaitaiStream.byte_array_index(self.packed_residuals, len(self.packed_residuals) - 1) & 255) >> (8 - self.num_unused_bits))
        return getattr(self, '_m_unused_bits', None)
