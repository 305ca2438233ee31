# Generated from formats/rumi_file.ksy by formats/generate.mjs. Do not edit.
# ruff: noqa
# type: ignore

import kaitaistruct
from kaitaistruct import KaitaiStruct, KaitaiStream, BytesIO
from . import rumi_header
from enum import IntEnum


if getattr(kaitaistruct, 'API_VERSION', (0, 9)) < (0, 11):
    raise Exception("Incompatible Kaitai Struct Python API: 0.11 or later is required, but you have %s" % (kaitaistruct.__version__))

class RumiFile(KaitaiStruct):
    """A rumi file is a little-endian BigTIFF with exactly one IFD of exactly 11
    tags, the values that do not fit into it, and a contiguous run of compressed
    frames. Every part has one possible place.

    Parsing touches the BigTIFF header and the IFD only, so a stream that holds
    the first 252 bytes of a file is enough. Everything outside them is a lazy
    instance. Arrays are raw spans (`value_raw`), never read element by element.

    What relates single elements of TileOffsets and TileByteCounts to each other
    (no count is zero, offsets are the prefix sum of the counts) is left to the
    application, which has the two spans. The same holds for the rule that the
    pair of sample format and bits per sample is a listed one.

    Enumerations of rumi_header are reached through its types, since one
    specification cannot name the enumerations of another.

    .. seealso::
       rumi specification 0.1.0, File profile
    """

    class FieldType(IntEnum):
        short = 3
        long = 4
        double = 12
        long8 = 16

    class GeoKey(IntEnum):
        gt_model_type = 1024
        gt_raster_type = 1025
        geographic_type = 2048
        projected_cs_type = 3072

    class ModelType(IntEnum):
        undefined = 0
        projected = 1
        geographic = 2

    class RasterType(IntEnum):
        pixel_is_area = 1
        pixel_is_point = 2

    class Tag(IntEnum):
        image_width = 256
        image_length = 257
        bits_per_sample = 258
        samples_per_pixel = 277
        tile_width = 322
        tile_length = 323
        tile_offsets = 324
        tile_byte_counts = 325
        sample_format = 339
        model_transformation = 34264
        geo_key_directory = 34735
    def __init__(self, _io, _parent=None, _root=None):
        super(RumiFile, self).__init__(_io)
        self._parent = _parent
        self._root = _root or self
        self._read()

    def _read(self):
        self.byte_order = self._io.read_bytes(2)
        if not self.byte_order == b"\x49\x49":
            raise kaitaistruct.ValidationNotEqualError(b"\x49\x49", self.byte_order, self._io, u"/seq/0")
        self.version = self._io.read_u2le()
        if not self.version == 43:
            raise kaitaistruct.ValidationNotEqualError(43, self.version, self._io, u"/seq/1")
        self.len_offset = self._io.read_u2le()
        if not self.len_offset == 8:
            raise kaitaistruct.ValidationNotEqualError(8, self.len_offset, self._io, u"/seq/2")
        self.reserved = self._io.read_u2le()
        if not self.reserved == 0:
            raise kaitaistruct.ValidationNotEqualError(0, self.reserved, self._io, u"/seq/3")
        self.ofs_ifd = self._io.read_u8le()
        if not self.ofs_ifd == 16:
            raise kaitaistruct.ValidationNotEqualError(16, self.ofs_ifd, self._io, u"/seq/4")
        self.ifd = RumiFile.Ifd(self._io, self, self._root)


    def _fetch_instances(self):
        pass
        self.ifd._fetch_instances()
        _ = self.first_tile_offset
        if hasattr(self, '_m_first_tile_offset'):
            pass

        _ = self.frame_data
        if hasattr(self, '_m_frame_data'):
            pass

        _ = self.geo_key_directory
        if hasattr(self, '_m_geo_key_directory'):
            pass
            self._m_geo_key_directory._fetch_instances()

        _ = self.model_transformation
        if hasattr(self, '_m_model_transformation'):
            pass
            self._m_model_transformation._fetch_instances()

        _ = self.placement
        if hasattr(self, '_m_placement'):
            pass
            self._m_placement._fetch_instances()

        _ = self.sample_type
        if hasattr(self, '_m_sample_type'):
            pass
            self._m_sample_type._fetch_instances()


    class Entry(KaitaiStruct):
        """One IFD entry. Its parameters are what the profile prescribes for it;
        `ofs_external` is the one place where its value may be if it is larger
        than the entry can hold.

        .. seealso::
           rumi specification 0.1.0, Fixed IFD; Placement
        """
        def __init__(self, expected_tag, expected_type, min_count, max_count, ofs_external, _io, _parent=None, _root=None):
            super(RumiFile.Entry, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self.expected_tag = expected_tag
            self.expected_type = expected_type
            self.min_count = min_count
            self.max_count = max_count
            self.ofs_external = ofs_external
            self._read()

        def _read(self):
            self.tag = KaitaiStream.resolve_enum(RumiFile.Tag, self._io.read_u2le())
            if not self.tag == self.expected_tag:
                raise kaitaistruct.ValidationNotEqualError(self.expected_tag, self.tag, self._io, u"/types/entry/seq/0")
            self.field_type = KaitaiStream.resolve_enum(RumiFile.FieldType, self._io.read_u2le())
            if not self.field_type == self.expected_type:
                raise kaitaistruct.ValidationNotEqualError(self.expected_type, self.field_type, self._io, u"/types/entry/seq/1")
            self.count = self._io.read_u8le()
            if not self.count >= self.min_count:
                raise kaitaistruct.ValidationLessThanError(self.min_count, self.count, self._io, u"/types/entry/seq/2")
            if not self.count <= self.max_count:
                raise kaitaistruct.ValidationGreaterThanError(self.max_count, self.count, self._io, u"/types/entry/seq/2")
            self._raw_value_or_offset = self._io.read_bytes(8)
            _io__raw_value_or_offset = KaitaiStream(BytesIO(self._raw_value_or_offset))
            self.value_or_offset = RumiFile.ValueOrOffset(_io__raw_value_or_offset, self, self._root)


        def _fetch_instances(self):
            pass
            self.value_or_offset._fetch_instances()
            _ = self.all_but_first
            if hasattr(self, '_m_all_but_first'):
                pass

            _ = self.all_but_last
            if hasattr(self, '_m_all_but_last'):
                pass

            _ = self.first_long
            if hasattr(self, '_m_first_long'):
                pass

            _ = self.first_long8
            if hasattr(self, '_m_first_long8'):
                pass

            _ = self.first_short
            if hasattr(self, '_m_first_short'):
                pass

            _ = self.value_raw
            if hasattr(self, '_m_value_raw'):
                pass


        @property
        def all_but_first(self):
            """Every value but the first, as stored."""
            if hasattr(self, '_m_all_but_first'):
                return self._m_all_but_first

            io = (self.value_or_offset._io if self.is_inline else self._root._io)
            _pos = io.pos()
            io.seek(self.pos_value + self.width)
            self._m_all_but_first = io.read_bytes(self.len_value - self.width)
            io.seek(_pos)
            return getattr(self, '_m_all_but_first', None)

        @property
        def all_but_last(self):
            """Every value but the last, as stored."""
            if hasattr(self, '_m_all_but_last'):
                return self._m_all_but_last

            io = (self.value_or_offset._io if self.is_inline else self._root._io)
            _pos = io.pos()
            io.seek(self.pos_value)
            self._m_all_but_last = io.read_bytes(self.len_value - self.width)
            io.seek(_pos)
            return getattr(self, '_m_all_but_last', None)

        @property
        def first_long(self):
            """The first value of an entry of longs."""
            if hasattr(self, '_m_first_long'):
                return self._m_first_long

            if self.field_type == RumiFile.FieldType.long:
                pass
                io = (self.value_or_offset._io if self.is_inline else self._root._io)
                _pos = io.pos()
                io.seek(self.pos_value)
                self._m_first_long = io.read_u4le()
                io.seek(_pos)

            return getattr(self, '_m_first_long', None)

        @property
        def first_long8(self):
            """The first value of an entry of 64-bit longs."""
            if hasattr(self, '_m_first_long8'):
                return self._m_first_long8

            if self.field_type == RumiFile.FieldType.long8:
                pass
                io = (self.value_or_offset._io if self.is_inline else self._root._io)
                _pos = io.pos()
                io.seek(self.pos_value)
                self._m_first_long8 = io.read_u8le()
                io.seek(_pos)

            return getattr(self, '_m_first_long8', None)

        @property
        def first_short(self):
            """The first value of an entry of shorts."""
            if hasattr(self, '_m_first_short'):
                return self._m_first_short

            if self.field_type == RumiFile.FieldType.short:
                pass
                io = (self.value_or_offset._io if self.is_inline else self._root._io)
                _pos = io.pos()
                io.seek(self.pos_value)
                self._m_first_short = io.read_u2le()
                io.seek(_pos)

            return getattr(self, '_m_first_short', None)

        @property
        def first_value(self):
            """The first value; the only one where the count is 1. 0 for doubles."""
            if hasattr(self, '_m_first_value'):
                return self._m_first_value

            self._m_first_value = (self.first_short if self.field_type == RumiFile.FieldType.short else (self.first_long if self.field_type == RumiFile.FieldType.long else (self.first_long8 if self.field_type == RumiFile.FieldType.long8 else 0)))
            return getattr(self, '_m_first_value', None)

        @property
        def is_inline(self):
            """Values of 8 bytes or less are stored directly inside their IFD entry.

            .. seealso::
               rumi specification 0.1.0, Placement
            """
            if hasattr(self, '_m_is_inline'):
                return self._m_is_inline

            self._m_is_inline = self.len_value <= 8
            return getattr(self, '_m_is_inline', None)

        @property
        def is_uniform(self):
            """True if all values are equal, which is so if each equals its successor."""
            if hasattr(self, '_m_is_uniform'):
                return self._m_is_uniform

            self._m_is_uniform = self.all_but_last == self.all_but_first
            return getattr(self, '_m_is_uniform', None)

        @property
        def len_value(self):
            """Bytes of all values."""
            if hasattr(self, '_m_len_value'):
                return self._m_len_value

            self._m_len_value = (self.count * self.width)
            return getattr(self, '_m_len_value', None)

        @property
        def ofs_next(self):
            """The place of the next external value, if there is one."""
            if hasattr(self, '_m_ofs_next'):
                return self._m_ofs_next

            self._m_ofs_next = (self.ofs_external if self.is_inline else self.ofs_external + self.len_value)
            return getattr(self, '_m_ofs_next', None)

        @property
        def pos_value(self):
            """Where the value starts, in the entry's value field or in the file."""
            if hasattr(self, '_m_pos_value'):
                return self._m_pos_value

            self._m_pos_value = (0 if self.is_inline else self.value_or_offset.offset)
            return getattr(self, '_m_pos_value', None)

        @property
        def value_raw(self):
            """The values as they are stored."""
            if hasattr(self, '_m_value_raw'):
                return self._m_value_raw

            io = (self.value_or_offset._io if self.is_inline else self._root._io)
            _pos = io.pos()
            io.seek(self.pos_value)
            self._m_value_raw = io.read_bytes(self.len_value)
            io.seek(_pos)
            return getattr(self, '_m_value_raw', None)

        @property
        def width(self):
            """Bytes of one value."""
            if hasattr(self, '_m_width'):
                return self._m_width

            self._m_width = (2 if self.field_type == RumiFile.FieldType.short else (4 if self.field_type == RumiFile.FieldType.long else 8))
            return getattr(self, '_m_width', None)


    class GeoKeyDirectory(KaitaiStruct):
        """A header of four shorts and three keys of four shorts. A CRS is
        represented only by its EPSG code. Depends on nothing outside its own 32
        bytes.

        .. seealso::
           rumi specification 0.1.0, Georeferencing, GeoKeyDirectoryTag
        """
        def __init__(self, _io, _parent=None, _root=None):
            super(RumiFile.GeoKeyDirectory, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.key_directory_version = self._io.read_u2le()
            if not self.key_directory_version == 1:
                raise kaitaistruct.ValidationNotEqualError(1, self.key_directory_version, self._io, u"/types/geo_key_directory/seq/0")
            self.key_revision = self._io.read_u2le()
            if not self.key_revision == 1:
                raise kaitaistruct.ValidationNotEqualError(1, self.key_revision, self._io, u"/types/geo_key_directory/seq/1")
            self.minor_revision = self._io.read_u2le()
            if not  ((self.minor_revision == 0) or (self.minor_revision == 1)) :
                raise kaitaistruct.ValidationNotAnyOfError(self.minor_revision, self._io, u"/types/geo_key_directory/seq/2")
            self.number_of_keys = self._io.read_u2le()
            if not self.number_of_keys == 3:
                raise kaitaistruct.ValidationNotEqualError(3, self.number_of_keys, self._io, u"/types/geo_key_directory/seq/3")
            self.model_type_key = RumiFile.Key(RumiFile.GeoKey.gt_model_type, self._io, self, self._root)
            self.model_type = KaitaiStream.resolve_enum(RumiFile.ModelType, self._io.read_u2le())
            if not isinstance(self.model_type, RumiFile.ModelType):
                raise kaitaistruct.ValidationNotInEnumError(self.model_type, self._io, u"/types/geo_key_directory/seq/5")
            self.raster_type_key = RumiFile.Key(RumiFile.GeoKey.gt_raster_type, self._io, self, self._root)
            self.raster_type = KaitaiStream.resolve_enum(RumiFile.RasterType, self._io.read_u2le())
            if not isinstance(self.raster_type, RumiFile.RasterType):
                raise kaitaistruct.ValidationNotInEnumError(self.raster_type, self._io, u"/types/geo_key_directory/seq/7")
            self.crs_key = RumiFile.Key((RumiFile.GeoKey.projected_cs_type if self.model_type == RumiFile.ModelType.projected else RumiFile.GeoKey.geographic_type), self._io, self, self._root)
            self.epsg = self._io.read_u2le()
            if not self.epsg >= (self.min_epsg if self.has_crs else 0):
                raise kaitaistruct.ValidationLessThanError((self.min_epsg if self.has_crs else 0), self.epsg, self._io, u"/types/geo_key_directory/seq/9")
            if not self.epsg <= (self.max_epsg if self.has_crs else 0):
                raise kaitaistruct.ValidationGreaterThanError((self.max_epsg if self.has_crs else 0), self.epsg, self._io, u"/types/geo_key_directory/seq/9")


        def _fetch_instances(self):
            pass
            self.model_type_key._fetch_instances()
            self.raster_type_key._fetch_instances()
            self.crs_key._fetch_instances()

        @property
        def has_crs(self):
            """False for undefined georeferencing.

            .. seealso::
               rumi specification 0.1.0, Georeferencing, Undefined georeferencing
            """
            if hasattr(self, '_m_has_crs'):
                return self._m_has_crs

            self._m_has_crs = self.model_type != RumiFile.ModelType.undefined
            return getattr(self, '_m_has_crs', None)

        @property
        def max_epsg(self):
            """The largest EPSG code a file may carry."""
            if hasattr(self, '_m_max_epsg'):
                return self._m_max_epsg

            self._m_max_epsg = 32766
            return getattr(self, '_m_max_epsg', None)

        @property
        def min_epsg(self):
            """The smallest EPSG code a file may carry."""
            if hasattr(self, '_m_min_epsg'):
                return self._m_min_epsg

            self._m_min_epsg = 1024
            return getattr(self, '_m_min_epsg', None)


    class Ifd(KaitaiStruct):
        """The 11 tags every rumi file carries, in rising tag order. Each entry hands
        the place of the next external value to its successor, which is how the
        rule "immediately after the IFD, in rising tag order, no gaps" is checked.

        .. seealso::
           rumi specification 0.1.0, Fixed IFD
        """
        def __init__(self, _io, _parent=None, _root=None):
            super(RumiFile.Ifd, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.num_entries = self._io.read_u8le()
            if not self.num_entries == 11:
                raise kaitaistruct.ValidationNotEqualError(11, self.num_entries, self._io, u"/types/ifd/seq/0")
            self.image_width = RumiFile.Entry(RumiFile.Tag.image_width, RumiFile.FieldType.long, 1, 1, self._root.ofs_ifd + 236, self._io, self, self._root)
            self.image_length = RumiFile.Entry(RumiFile.Tag.image_length, RumiFile.FieldType.long, 1, 1, self.image_width.ofs_next, self._io, self, self._root)
            self.bits_per_sample = RumiFile.Entry(RumiFile.Tag.bits_per_sample, RumiFile.FieldType.short, 1, 65535, self.image_length.ofs_next, self._io, self, self._root)
            self.samples_per_pixel = RumiFile.Entry(RumiFile.Tag.samples_per_pixel, RumiFile.FieldType.short, 1, 1, self.bits_per_sample.ofs_next, self._io, self, self._root)
            self.check_band_count = self._io.read_bytes(0)
            _ = self.check_band_count
            if not self.samples_per_pixel.first_value == self.bits_per_sample.count:
                raise kaitaistruct.ValidationExprError(self.check_band_count, self._io, u"/types/ifd/seq/5")
            self.tile_width = RumiFile.Entry(RumiFile.Tag.tile_width, RumiFile.FieldType.short, 1, 1, self.samples_per_pixel.ofs_next, self._io, self, self._root)
            self.tile_length = RumiFile.Entry(RumiFile.Tag.tile_length, RumiFile.FieldType.short, 1, 1, self.tile_width.ofs_next, self._io, self, self._root)
            self.check_shape = self._io.read_bytes(0)
            _ = self.check_shape
            if not  ((self.image_width.first_value > 0) and (self.image_length.first_value > 0) and (self.tile_width.first_value > 0) and (self.tile_length.first_value > 0)) :
                raise kaitaistruct.ValidationExprError(self.check_shape, self._io, u"/types/ifd/seq/8")
            self.tile_offsets = RumiFile.Entry(RumiFile.Tag.tile_offsets, RumiFile.FieldType.long8, self.grid.num_positions, self.grid.num_positions * self.samples_per_pixel.first_value, self.tile_length.ofs_next, self._io, self, self._root)
            self.check_frame_count = self._io.read_bytes(0)
            _ = self.check_frame_count
            if not self.frame_layout.is_valid:
                raise kaitaistruct.ValidationExprError(self.check_frame_count, self._io, u"/types/ifd/seq/10")
            self.tile_byte_counts = RumiFile.Entry(RumiFile.Tag.tile_byte_counts, RumiFile.FieldType.long, self.tile_offsets.count, self.tile_offsets.count, self.tile_offsets.ofs_next, self._io, self, self._root)
            self.sample_format = RumiFile.Entry(RumiFile.Tag.sample_format, RumiFile.FieldType.short, self.bits_per_sample.count, self.bits_per_sample.count, self.tile_byte_counts.ofs_next, self._io, self, self._root)
            self.model_transformation = RumiFile.Entry(RumiFile.Tag.model_transformation, RumiFile.FieldType.double, 16, 16, self.sample_format.ofs_next, self._io, self, self._root)
            self.geo_key_directory = RumiFile.Entry(RumiFile.Tag.geo_key_directory, RumiFile.FieldType.short, 16, 16, self.model_transformation.ofs_next, self._io, self, self._root)
            self.ofs_next_ifd = self._io.read_u8le()
            if not self.ofs_next_ifd == 0:
                raise kaitaistruct.ValidationNotEqualError(0, self.ofs_next_ifd, self._io, u"/types/ifd/seq/15")


        def _fetch_instances(self):
            pass
            self.image_width._fetch_instances()
            self.image_length._fetch_instances()
            self.bits_per_sample._fetch_instances()
            self.samples_per_pixel._fetch_instances()
            self.tile_width._fetch_instances()
            self.tile_length._fetch_instances()
            self.tile_offsets._fetch_instances()
            self.tile_byte_counts._fetch_instances()
            self.sample_format._fetch_instances()
            self.model_transformation._fetch_instances()
            self.geo_key_directory._fetch_instances()
            _ = self.frame_layout
            if hasattr(self, '_m_frame_layout'):
                pass
                self._m_frame_layout._fetch_instances()

            _ = self.grid
            if hasattr(self, '_m_grid'):
                pass
                self._m_grid._fetch_instances()


        @property
        def frame_layout(self):
            """What one frame contains.

            .. seealso::
               rumi specification 0.1.0, Deriving the frame unit
            """
            if hasattr(self, '_m_frame_layout'):
                return self._m_frame_layout

            self._m_frame_layout = rumi_header.RumiHeader.FrameLayout(self.grid.num_positions, self.samples_per_pixel.first_value, self.tile_offsets.count, self._io)
            return getattr(self, '_m_frame_layout', None)

        @property
        def grid(self):
            """The tile grid laid over the image.

            .. seealso::
               rumi specification 0.1.0, Frame index
            """
            if hasattr(self, '_m_grid'):
                return self._m_grid

            self._m_grid = rumi_header.RumiHeader.Grid(self.image_width.first_value, self.image_length.first_value, self.tile_width.first_value, self.tile_length.first_value, self._io)
            return getattr(self, '_m_grid', None)


    class Key(KaitaiStruct):
        """The first three of the four shorts of a GeoKey; the value follows.

        .. seealso::
           rumi specification 0.1.0, Georeferencing, GeoKeyDirectoryTag
        """
        def __init__(self, expected_id, _io, _parent=None, _root=None):
            super(RumiFile.Key, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self.expected_id = expected_id
            self._read()

        def _read(self):
            self.key_id = KaitaiStream.resolve_enum(RumiFile.GeoKey, self._io.read_u2le())
            if not self.key_id == self.expected_id:
                raise kaitaistruct.ValidationNotEqualError(self.expected_id, self.key_id, self._io, u"/types/key/seq/0")
            self.tiff_tag_location = self._io.read_u2le()
            if not self.tiff_tag_location == 0:
                raise kaitaistruct.ValidationNotEqualError(0, self.tiff_tag_location, self._io, u"/types/key/seq/1")
            self.count = self._io.read_u2le()
            if not self.count == 1:
                raise kaitaistruct.ValidationNotEqualError(1, self.count, self._io, u"/types/key/seq/2")


        def _fetch_instances(self):
            pass


    class ModelTransformation(KaitaiStruct):
        """The full affine transformation from pixel to model space, in row-major
        order. Depends on nothing outside its own 128 bytes.

        .. seealso::
           rumi specification 0.1.0, Georeferencing, ModelTransformationTag
        """
        def __init__(self, _io, _parent=None, _root=None):
            super(RumiFile.ModelTransformation, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.x_res = self._io.read_f8le()
            self.row_rot = self._io.read_f8le()
            self.zero_0_2 = self._io.read_f8le()
            if not self.zero_0_2 == 0:
                raise kaitaistruct.ValidationNotEqualError(0, self.zero_0_2, self._io, u"/types/model_transformation/seq/2")
            self.x_origin = self._io.read_f8le()
            self.col_rot = self._io.read_f8le()
            self.y_res = self._io.read_f8le()
            self.zero_1_2 = self._io.read_f8le()
            if not self.zero_1_2 == 0:
                raise kaitaistruct.ValidationNotEqualError(0, self.zero_1_2, self._io, u"/types/model_transformation/seq/6")
            self.y_origin = self._io.read_f8le()
            self.zero_2_0 = self._io.read_f8le()
            if not self.zero_2_0 == 0:
                raise kaitaistruct.ValidationNotEqualError(0, self.zero_2_0, self._io, u"/types/model_transformation/seq/8")
            self.zero_2_1 = self._io.read_f8le()
            if not self.zero_2_1 == 0:
                raise kaitaistruct.ValidationNotEqualError(0, self.zero_2_1, self._io, u"/types/model_transformation/seq/9")
            self.zero_2_2 = self._io.read_f8le()
            if not self.zero_2_2 == 0:
                raise kaitaistruct.ValidationNotEqualError(0, self.zero_2_2, self._io, u"/types/model_transformation/seq/10")
            self.zero_2_3 = self._io.read_f8le()
            if not self.zero_2_3 == 0:
                raise kaitaistruct.ValidationNotEqualError(0, self.zero_2_3, self._io, u"/types/model_transformation/seq/11")
            self.zero_3_0 = self._io.read_f8le()
            if not self.zero_3_0 == 0:
                raise kaitaistruct.ValidationNotEqualError(0, self.zero_3_0, self._io, u"/types/model_transformation/seq/12")
            self.zero_3_1 = self._io.read_f8le()
            if not self.zero_3_1 == 0:
                raise kaitaistruct.ValidationNotEqualError(0, self.zero_3_1, self._io, u"/types/model_transformation/seq/13")
            self.zero_3_2 = self._io.read_f8le()
            if not self.zero_3_2 == 0:
                raise kaitaistruct.ValidationNotEqualError(0, self.zero_3_2, self._io, u"/types/model_transformation/seq/14")
            self.one_3_3 = self._io.read_f8le()
            if not self.one_3_3 == 1:
                raise kaitaistruct.ValidationNotEqualError(1, self.one_3_3, self._io, u"/types/model_transformation/seq/15")


        def _fetch_instances(self):
            pass

        @property
        def is_undefined(self):
            """True for the matrix that files without georeferencing carry.

            .. seealso::
               rumi specification 0.1.0, Georeferencing, Undefined georeferencing
            """
            if hasattr(self, '_m_is_undefined'):
                return self._m_is_undefined

            self._m_is_undefined =  ((self.x_res == 1.0) and (self.row_rot == 0.0) and (self.x_origin == 0.0) and (self.col_rot == 0.0) and (self.y_res == 1.0) and (self.y_origin == 0.0))
            return getattr(self, '_m_is_undefined', None)


    class ValueOrOffset(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(RumiFile.ValueOrOffset, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.offset = self._io.read_u8le()
            _ = self.offset
            if not  ((self._parent.is_inline) or (_ == self._parent.ofs_external)) :
                raise kaitaistruct.ValidationExprError(self.offset, self._io, u"/types/value_or_offset/seq/0")


        def _fetch_instances(self):
            pass


    @property
    def base_frame_offset(self):
        """Offset of frame 0.

        .. seealso::
           rumi specification 0.1.0, Deriving base_frame_offset
        """
        if hasattr(self, '_m_base_frame_offset'):
            return self._m_base_frame_offset

        self._m_base_frame_offset = self.placement.base_frame_offset
        return getattr(self, '_m_base_frame_offset', None)

    @property
    def bits_per_sample(self):
        """Bits per sample of the first band; see is_single_encoding.

        .. seealso::
           rumi specification 0.1.0, Sample encodings
        """
        if hasattr(self, '_m_bits_per_sample'):
            return self._m_bits_per_sample

        self._m_bits_per_sample = self.ifd.bits_per_sample.first_value
        return getattr(self, '_m_bits_per_sample', None)

    @property
    def first_tile_offset(self):
        """First entry of TileOffsets, which matches base_frame_offset.

        .. seealso::
           rumi specification 0.1.0, Deriving base_frame_offset
        """
        if hasattr(self, '_m_first_tile_offset'):
            return self._m_first_tile_offset

        io = (self.ifd.tile_offsets.value_or_offset._io if self.ifd.tile_offsets.is_inline else self._io)
        _pos = io.pos()
        io.seek(self.ifd.tile_offsets.pos_value)
        self._m_first_tile_offset = io.read_u8le()
        if not self._m_first_tile_offset == self.base_frame_offset:
            raise kaitaistruct.ValidationNotEqualError(self.base_frame_offset, self._m_first_tile_offset, self._io, u"/instances/first_tile_offset")
        io.seek(_pos)
        return getattr(self, '_m_first_tile_offset', None)

    @property
    def frame_count(self):
        """The frame count N.

        .. seealso::
           rumi specification 0.1.0, Frame index
        """
        if hasattr(self, '_m_frame_count'):
            return self._m_frame_count

        self._m_frame_count = self.ifd.tile_offsets.count
        return getattr(self, '_m_frame_count', None)

    @property
    def frame_data(self):
        """The file from frame 0 on. Frames follow each other immediately and in
        frame-index order.

        .. seealso::
           rumi specification 0.1.0, Frames
        """
        if hasattr(self, '_m_frame_data'):
            return self._m_frame_data

        _pos = self._io.pos()
        self._io.seek(self.base_frame_offset)
        self._m_frame_data = self._io.read_bytes_full()
        self._io.seek(_pos)
        return getattr(self, '_m_frame_data', None)

    @property
    def frame_unit(self):
        """What one frame contains, as a number, derived from the entry count of
        TileOffsets. The IFD has already checked that it is one of the two
        possible counts. The member of the enumeration is in ifd.frame_layout.

        .. seealso::
           rumi specification 0.1.0, Deriving the frame unit
        """
        if hasattr(self, '_m_frame_unit'):
            return self._m_frame_unit

        self._m_frame_unit = int(self.ifd.frame_layout.frame_unit)
        return getattr(self, '_m_frame_unit', None)

    @property
    def geo_key_directory(self):
        """CRS and raster type.

        .. seealso::
           rumi specification 0.1.0, Georeferencing, GeoKeyDirectoryTag
        """
        if hasattr(self, '_m_geo_key_directory'):
            return self._m_geo_key_directory

        _pos = self._io.pos()
        self._io.seek(self.ifd.geo_key_directory.pos_value)
        self._raw__m_geo_key_directory = self._io.read_bytes(self.ifd.geo_key_directory.len_value)
        _io__raw__m_geo_key_directory = KaitaiStream(BytesIO(self._raw__m_geo_key_directory))
        self._m_geo_key_directory = RumiFile.GeoKeyDirectory(_io__raw__m_geo_key_directory, self, self._root)
        self._io.seek(_pos)
        return getattr(self, '_m_geo_key_directory', None)

    @property
    def image_length(self):
        """Height of the raster in pixels."""
        if hasattr(self, '_m_image_length'):
            return self._m_image_length

        self._m_image_length = self.ifd.image_length.first_value
        return getattr(self, '_m_image_length', None)

    @property
    def image_width(self):
        """Width of the raster in pixels."""
        if hasattr(self, '_m_image_width'):
            return self._m_image_width

        self._m_image_width = self.ifd.image_width.first_value
        return getattr(self, '_m_image_width', None)

    @property
    def is_georeferencing_consistent(self):
        """True unless a file without CRS has another matrix than the one for undefined georeferencing.

        .. seealso::
           rumi specification 0.1.0, Georeferencing, Undefined georeferencing
        """
        if hasattr(self, '_m_is_georeferencing_consistent'):
            return self._m_is_georeferencing_consistent

        self._m_is_georeferencing_consistent =  ((self.geo_key_directory.has_crs) or (self.model_transformation.is_undefined))
        return getattr(self, '_m_is_georeferencing_consistent', None)

    @property
    def is_single_encoding(self):
        """True if all bands have the same pair, as they must.

        .. seealso::
           rumi specification 0.1.0, Sample encodings
        """
        if hasattr(self, '_m_is_single_encoding'):
            return self._m_is_single_encoding

        self._m_is_single_encoding =  ((self.ifd.bits_per_sample.is_uniform) and (self.ifd.sample_format.is_uniform))
        return getattr(self, '_m_is_single_encoding', None)

    @property
    def model_transformation(self):
        """The matrix from pixel to model space.

        .. seealso::
           rumi specification 0.1.0, Georeferencing, ModelTransformationTag
        """
        if hasattr(self, '_m_model_transformation'):
            return self._m_model_transformation

        _pos = self._io.pos()
        self._io.seek(self.ifd.model_transformation.pos_value)
        self._raw__m_model_transformation = self._io.read_bytes(self.ifd.model_transformation.len_value)
        _io__raw__m_model_transformation = KaitaiStream(BytesIO(self._raw__m_model_transformation))
        self._m_model_transformation = RumiFile.ModelTransformation(_io__raw__m_model_transformation, self, self._root)
        self._io.seek(_pos)
        return getattr(self, '_m_model_transformation', None)

    @property
    def placement(self):
        """Where values and frames belong, computed from the image shape alone.

        .. seealso::
           rumi specification 0.1.0, Placement
        """
        if hasattr(self, '_m_placement'):
            return self._m_placement

        self._m_placement = rumi_header.RumiHeader.Placement(self.samples_per_pixel, self.frame_count, self._io)
        return getattr(self, '_m_placement', None)

    @property
    def sample_encoding(self):
        """The pair of the first band as the number sample_format << 8 |
        bits_per_sample; see sample_type.

        .. seealso::
           rumi specification 0.1.0, Sample encodings
        """
        if hasattr(self, '_m_sample_encoding'):
            return self._m_sample_encoding

        self._m_sample_encoding = int(self.sample_type.sample_encoding)
        return getattr(self, '_m_sample_encoding', None)

    @property
    def sample_format(self):
        """Sample format of the first band, as a number; see sample_type.

        .. seealso::
           rumi specification 0.1.0, Sample encodings
        """
        if hasattr(self, '_m_sample_format'):
            return self._m_sample_format

        self._m_sample_format = int(self.sample_type.sample_format)
        return getattr(self, '_m_sample_format', None)

    @property
    def sample_type(self):
        """Sample format and width of the first band, which are those of every band
        if is_single_encoding is true. A reader rejects a pair that is no member of
        the enumeration of sample encodings.

        .. seealso::
           rumi specification 0.1.0, Sample encodings
        """
        if hasattr(self, '_m_sample_type'):
            return self._m_sample_type

        self._m_sample_type = rumi_header.RumiHeader.SampleType(self.bits_per_sample, self.ifd.sample_format.first_value, self._io)
        return getattr(self, '_m_sample_type', None)

    @property
    def samples_per_pixel(self):
        """The band count B."""
        if hasattr(self, '_m_samples_per_pixel'):
            return self._m_samples_per_pixel

        self._m_samples_per_pixel = self.ifd.samples_per_pixel.first_value
        return getattr(self, '_m_samples_per_pixel', None)

    @property
    def tile_length(self):
        """Nominal tile height in pixels."""
        if hasattr(self, '_m_tile_length'):
            return self._m_tile_length

        self._m_tile_length = self.ifd.tile_length.first_value
        return getattr(self, '_m_tile_length', None)

    @property
    def tile_width(self):
        """Nominal tile width in pixels."""
        if hasattr(self, '_m_tile_width'):
            return self._m_tile_width

        self._m_tile_width = self.ifd.tile_width.first_value
        return getattr(self, '_m_tile_width', None)

    @property
    def tiles_across(self):
        """Number of grid columns.

        .. seealso::
           rumi specification 0.1.0, Frame index
        """
        if hasattr(self, '_m_tiles_across'):
            return self._m_tiles_across

        self._m_tiles_across = self.ifd.grid.tiles_across
        return getattr(self, '_m_tiles_across', None)

    @property
    def tiles_down(self):
        """Number of grid rows.

        .. seealso::
           rumi specification 0.1.0, Frame index
        """
        if hasattr(self, '_m_tiles_down'):
            return self._m_tiles_down

        self._m_tiles_down = self.ifd.grid.tiles_down
        return getattr(self, '_m_tiles_down', None)
