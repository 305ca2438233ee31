meta:
  id: rumi_file
  title: rumi raster file
  file-extension: rumi
  xref:
    mime: image/tiff
  license: GPL-3.0-only
  ks-version: '0.11'
  imports:
    - rumi_header
  endian: le
doc: |
  A rumi file is a little-endian BigTIFF with exactly one IFD of exactly 11
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
doc-ref: rumi specification 0.1.0, File profile
seq:
  - id: byte_order
    contents: II
    doc: Little-endian byte order.
    doc-ref: rumi specification 0.1.0, File profile
  - id: version
    type: u2
    valid: 43
    doc: The file is BigTIFF.
    doc-ref: rumi specification 0.1.0, File profile
  - id: len_offset
    type: u2
    valid: 8
    doc: Size of an offset in bytes, fixed by BigTIFF.
    doc-ref: rumi specification 0.1.0, File profile
  - id: reserved
    type: u2
    valid: 0
    doc: Fixed by BigTIFF.
    doc-ref: rumi specification 0.1.0, File profile
  - id: ofs_ifd
    type: u8
    valid: 16
    doc: The IFD follows the BigTIFF header immediately.
    doc-ref: rumi specification 0.1.0, Placement
  - id: ifd
    type: ifd
    doc: The only IFD.
    doc-ref: rumi specification 0.1.0, Fixed IFD
instances:
  image_width:
    value: ifd.image_width.first_value
    doc: Width of the raster in pixels.
  image_length:
    value: ifd.image_length.first_value
    doc: Height of the raster in pixels.
  samples_per_pixel:
    value: ifd.samples_per_pixel.first_value
    doc: The band count B.
  tile_width:
    value: ifd.tile_width.first_value
    doc: Nominal tile width in pixels.
  tile_length:
    value: ifd.tile_length.first_value
    doc: Nominal tile height in pixels.
  bits_per_sample:
    value: ifd.bits_per_sample.first_value
    doc: Bits per sample of the first band; see is_single_encoding.
    doc-ref: rumi specification 0.1.0, Sample encodings
  sample_type:
    type: rumi_header::sample_type(bits_per_sample, ifd.sample_format.first_value)
    doc: |
      Sample format and width of the first band, which are those of every band
      if is_single_encoding is true. A reader rejects a pair that is no member of
      the enumeration of sample encodings.
    doc-ref: rumi specification 0.1.0, Sample encodings
  sample_format:
    value: sample_type.sample_format.to_i
    doc: Sample format of the first band, as a number; see sample_type.
    doc-ref: rumi specification 0.1.0, Sample encodings
  sample_encoding:
    value: sample_type.sample_encoding.to_i
    doc: |
      The pair of the first band as the number sample_format << 8 |
      bits_per_sample; see sample_type.
    doc-ref: rumi specification 0.1.0, Sample encodings
  is_single_encoding:
    value: ifd.bits_per_sample.is_uniform and ifd.sample_format.is_uniform
    doc: True if all bands have the same pair, as they must.
    doc-ref: rumi specification 0.1.0, Sample encodings
  tiles_across:
    value: ifd.grid.tiles_across
    doc: Number of grid columns.
    doc-ref: rumi specification 0.1.0, Frame index
  tiles_down:
    value: ifd.grid.tiles_down
    doc: Number of grid rows.
    doc-ref: rumi specification 0.1.0, Frame index
  frame_count:
    value: ifd.tile_offsets.count
    doc: The frame count N.
    doc-ref: rumi specification 0.1.0, Frame index
  frame_unit:
    value: ifd.frame_layout.frame_unit.to_i
    doc: |
      What one frame contains, as a number, derived from the entry count of
      TileOffsets. The IFD has already checked that it is one of the two
      possible counts. The member of the enumeration is in ifd.frame_layout.
    doc-ref: rumi specification 0.1.0, Deriving the frame unit
  placement:
    type: rumi_header::placement(samples_per_pixel, frame_count)
    doc: Where values and frames belong, computed from the image shape alone.
    doc-ref: rumi specification 0.1.0, Placement
  base_frame_offset:
    value: placement.base_frame_offset
    doc: Offset of frame 0.
    doc-ref: rumi specification 0.1.0, Deriving base_frame_offset
  first_tile_offset:
    io: 'ifd.tile_offsets.is_inline ? ifd.tile_offsets.value_or_offset._io : _io'
    pos: ifd.tile_offsets.pos_value
    type: u8
    valid: base_frame_offset
    doc: First entry of TileOffsets, which matches base_frame_offset.
    doc-ref: rumi specification 0.1.0, Deriving base_frame_offset
  model_transformation:
    pos: ifd.model_transformation.pos_value
    size: ifd.model_transformation.len_value
    type: model_transformation
    doc: The matrix from pixel to model space.
    doc-ref: rumi specification 0.1.0, Georeferencing, ModelTransformationTag
  geo_key_directory:
    pos: ifd.geo_key_directory.pos_value
    size: ifd.geo_key_directory.len_value
    type: geo_key_directory
    doc: CRS and raster type.
    doc-ref: rumi specification 0.1.0, Georeferencing, GeoKeyDirectoryTag
  is_georeferencing_consistent:
    value: geo_key_directory.has_crs or model_transformation.is_undefined
    doc: True unless a file without CRS has another matrix than the one for undefined georeferencing.
    doc-ref: rumi specification 0.1.0, Georeferencing, Undefined georeferencing
  frame_data:
    pos: base_frame_offset
    size-eos: true
    doc: |
      The file from frame 0 on. Frames follow each other immediately and in
      frame-index order.
    doc-ref: rumi specification 0.1.0, Frames
types:
  ifd:
    doc: |
      The 11 tags every rumi file carries, in rising tag order. Each entry hands
      the place of the next external value to its successor, which is how the
      rule "immediately after the IFD, in rising tag order, no gaps" is checked.
    doc-ref: rumi specification 0.1.0, Fixed IFD
    seq:
      - id: num_entries
        type: u8
        valid: 11
        doc: A reader rejects any file with additional tags.
      - id: image_width
        -orig-id: ImageWidth
        type: entry(tag::image_width, field_type::long, 1, 1, _root.ofs_ifd + sizeof<ifd>)
      - id: image_length
        -orig-id: ImageLength
        type: entry(tag::image_length, field_type::long, 1, 1, image_width.ofs_next)
      - id: bits_per_sample
        -orig-id: BitsPerSample
        type: entry(tag::bits_per_sample, field_type::short, 1, 65535, image_length.ofs_next)
      - id: samples_per_pixel
        -orig-id: SamplesPerPixel
        type: entry(tag::samples_per_pixel, field_type::short, 1, 1, bits_per_sample.ofs_next)
      - id: check_band_count
        size: 0
        valid:
          expr: samples_per_pixel.first_value == bits_per_sample.count
        doc: Not a field. BitsPerSample precedes the band count it has to agree with.
      - id: tile_width
        -orig-id: TileWidth
        type: entry(tag::tile_width, field_type::short, 1, 1, samples_per_pixel.ofs_next)
      - id: tile_length
        -orig-id: TileLength
        type: entry(tag::tile_length, field_type::short, 1, 1, tile_width.ofs_next)
      - id: check_shape
        size: 0
        valid:
          expr: >-
            image_width.first_value > 0 and image_length.first_value > 0
            and tile_width.first_value > 0 and tile_length.first_value > 0
        doc: Not a field. Image and tile sizes are greater than zero.
      - id: tile_offsets
        -orig-id: TileOffsets
        type: entry(tag::tile_offsets, field_type::long8, grid.num_positions, grid.num_positions * samples_per_pixel.first_value, tile_length.ofs_next)
      - id: check_frame_count
        size: 0
        valid:
          expr: frame_layout.is_valid
        doc: Not a field. A reader rejects a file whose entry count fits no frame unit.
        doc-ref: rumi specification 0.1.0, Deriving the frame unit
      - id: tile_byte_counts
        -orig-id: TileByteCounts
        type: entry(tag::tile_byte_counts, field_type::long, tile_offsets.count, tile_offsets.count, tile_offsets.ofs_next)
      - id: sample_format
        -orig-id: SampleFormat
        type: entry(tag::sample_format, field_type::short, bits_per_sample.count, bits_per_sample.count, tile_byte_counts.ofs_next)
      - id: model_transformation
        -orig-id: ModelTransformationTag
        type: entry(tag::model_transformation, field_type::double, 16, 16, sample_format.ofs_next)
      - id: geo_key_directory
        -orig-id: GeoKeyDirectoryTag
        type: entry(tag::geo_key_directory, field_type::short, 16, 16, model_transformation.ofs_next)
      - id: ofs_next_ifd
        type: u8
        valid: 0
        doc: The file has exactly one IFD.
        doc-ref: rumi specification 0.1.0, File profile; Placement
    instances:
      grid:
        type: rumi_header::grid(image_width.first_value, image_length.first_value, tile_width.first_value, tile_length.first_value)
        doc: The tile grid laid over the image.
        doc-ref: rumi specification 0.1.0, Frame index
      frame_layout:
        type: rumi_header::frame_layout(grid.num_positions, samples_per_pixel.first_value, tile_offsets.count)
        doc: What one frame contains.
        doc-ref: rumi specification 0.1.0, Deriving the frame unit
  entry:
    doc: |
      One IFD entry. Its parameters are what the profile prescribes for it;
      `ofs_external` is the one place where its value may be if it is larger
      than the entry can hold.
    doc-ref: rumi specification 0.1.0, Fixed IFD; Placement
    params:
      - id: expected_tag
        type: u2
        enum: tag
      - id: expected_type
        type: u2
        enum: field_type
      - id: min_count
        type: u8
      - id: max_count
        type: u8
      - id: ofs_external
        type: u8
    seq:
      - id: tag
        type: u2
        enum: tag
        valid: expected_tag
        doc: What the value means.
      - id: field_type
        type: u2
        enum: field_type
        valid: expected_type
        doc: Type of every value of the entry.
      - id: count
        type: u8
        valid:
          min: min_count
          max: max_count
        doc: Number of values, not of bytes.
      - id: value_or_offset
        size: 8
        type: value_or_offset
        doc: The value itself if it fits, else its offset in the file.
    instances:
      width:
        value: 'field_type == field_type::short ? 2 : (field_type == field_type::long ? 4 : 8)'
        doc: Bytes of one value.
      len_value:
        value: (count * width).as<u8>
        doc: Bytes of all values.
      is_inline:
        value: len_value <= sizeof<value_or_offset>
        doc: Values of 8 bytes or less are stored directly inside their IFD entry.
        doc-ref: rumi specification 0.1.0, Placement
      ofs_next:
        value: '(is_inline ? ofs_external : ofs_external + len_value).as<u8>'
        doc: The place of the next external value, if there is one.
      pos_value:
        value: '(is_inline ? 0 : value_or_offset.offset).as<u8>'
        doc: Where the value starts, in the entry's value field or in the file.
      value_raw:
        io: 'is_inline ? value_or_offset._io : _root._io'
        pos: pos_value
        size: len_value
        doc: The values as they are stored.
      # One instance a type, because the common type of a switch is too narrow in
      # some languages.
      first_short:
        io: 'is_inline ? value_or_offset._io : _root._io'
        pos: pos_value
        type: u2
        if: field_type == field_type::short
        doc: The first value of an entry of shorts.
      first_long:
        io: 'is_inline ? value_or_offset._io : _root._io'
        pos: pos_value
        type: u4
        if: field_type == field_type::long
        doc: The first value of an entry of longs.
      first_long8:
        io: 'is_inline ? value_or_offset._io : _root._io'
        pos: pos_value
        type: u8
        if: field_type == field_type::long8
        doc: The first value of an entry of 64-bit longs.
      first_value:
        value: '(field_type == field_type::short ? first_short : (field_type == field_type::long ? first_long : (field_type == field_type::long8 ? first_long8 : 0))).as<u8>'
        doc: The first value; the only one where the count is 1. 0 for doubles.
      all_but_last:
        io: 'is_inline ? value_or_offset._io : _root._io'
        pos: pos_value
        size: len_value - width
        doc: Every value but the last, as stored.
      all_but_first:
        io: 'is_inline ? value_or_offset._io : _root._io'
        pos: pos_value + width
        size: len_value - width
        doc: Every value but the first, as stored.
      is_uniform:
        value: all_but_last == all_but_first
        doc: True if all values are equal, which is so if each equals its successor.
  value_or_offset:
    seq:
      - id: offset
        type: u8
        valid:
          expr: _parent.is_inline or _ == _parent.ofs_external
        doc: Meaningful only if the value is not stored inline.
        doc-ref: rumi specification 0.1.0, Placement
  model_transformation:
    doc: |
      The full affine transformation from pixel to model space, in row-major
      order. Depends on nothing outside its own 128 bytes.
    doc-ref: rumi specification 0.1.0, Georeferencing, ModelTransformationTag
    seq:
      - id: x_res
        type: f8
      - id: row_rot
        type: f8
      - id: zero_0_2
        type: f8
        valid: 0.0
      - id: x_origin
        type: f8
      - id: col_rot
        type: f8
      - id: y_res
        type: f8
      - id: zero_1_2
        type: f8
        valid: 0.0
      - id: y_origin
        type: f8
      - id: zero_2_0
        type: f8
        valid: 0.0
      - id: zero_2_1
        type: f8
        valid: 0.0
      - id: zero_2_2
        type: f8
        valid: 0.0
        doc: The Z scale is 0, since the model space of a raster is flat.
      - id: zero_2_3
        type: f8
        valid: 0.0
      - id: zero_3_0
        type: f8
        valid: 0.0
      - id: zero_3_1
        type: f8
        valid: 0.0
      - id: zero_3_2
        type: f8
        valid: 0.0
      - id: one_3_3
        type: f8
        valid: 1.0
    instances:
      is_undefined:
        value: >-
          x_res == 1.0 and row_rot == 0.0 and x_origin == 0.0
          and col_rot == 0.0 and y_res == 1.0 and y_origin == 0.0
        doc: True for the matrix that files without georeferencing carry.
        doc-ref: rumi specification 0.1.0, Georeferencing, Undefined georeferencing
  geo_key_directory:
    doc: |
      A header of four shorts and three keys of four shorts. A CRS is
      represented only by its EPSG code. Depends on nothing outside its own 32
      bytes.
    doc-ref: rumi specification 0.1.0, Georeferencing, GeoKeyDirectoryTag
    seq:
      - id: key_directory_version
        -orig-id: KeyDirectoryVersion
        type: u2
        valid: 1
      - id: key_revision
        -orig-id: KeyRevision
        type: u2
        valid: 1
      - id: minor_revision
        -orig-id: MinorRevision
        type: u2
        # The first one is what a writer writes. GeoTIFF 1.0 has 0 and GeoTIFF
        # 1.1 has 1, and the keys of the profile mean the same in both.
        valid:
          any-of: [0, 1]
      - id: number_of_keys
        -orig-id: NumberOfKeys
        type: u2
        valid: 3
      - id: model_type_key
        -orig-id: GTModelTypeGeoKey
        type: key(geo_key::gt_model_type)
        doc: Kind of the CRS.
      - id: model_type
        type: u2
        enum: model_type
        valid:
          in-enum: true
        doc: 0 means that the file has no CRS and its matrix no meaning.
      - id: raster_type_key
        -orig-id: GTRasterTypeGeoKey
        type: key(geo_key::gt_raster_type)
        doc: What a pixel represents.
      - id: raster_type
        type: u2
        enum: raster_type
        valid:
          in-enum: true
        doc: Recorded with and without a CRS.
      - id: crs_key
        type: 'key(model_type == model_type::projected ? geo_key::projected_cs_type : geo_key::geographic_type)'
        doc: A geographic CRS uses key 2048, as does a file without CRS, and a projected CRS uses key 3072.
      - id: epsg
        type: u2
        valid:
          min: 'has_crs ? min_epsg : 0'
          max: 'has_crs ? max_epsg : 0'
        -rumi-accepted: min_epsg to max_epsg, or 0 without CRS
        doc: EPSG code of the CRS, or 0 where there is none.
    instances:
      has_crs:
        value: model_type != model_type::undefined
        doc: False for undefined georeferencing.
        doc-ref: rumi specification 0.1.0, Georeferencing, Undefined georeferencing
      min_epsg:
        value: 1024
        doc: The smallest EPSG code a file may carry.
      max_epsg:
        value: 32766
        doc: The largest EPSG code a file may carry.
  key:
    doc: The first three of the four shorts of a GeoKey; the value follows.
    doc-ref: rumi specification 0.1.0, Georeferencing, GeoKeyDirectoryTag
    params:
      - id: expected_id
        type: u2
        enum: geo_key
    seq:
      - id: key_id
        -orig-id: KeyID
        type: u2
        enum: geo_key
        valid: expected_id
      - id: tiff_tag_location
        -orig-id: TIFFTagLocation
        type: u2
        valid: 0
        doc: 0 says that the value is the last of the four shorts.
      - id: count
        -orig-id: Count
        type: u2
        valid: 1
enums:
  tag:
    256:
      id: image_width
      -orig-id: ImageWidth
      doc: Width of the raster in pixels.
      -rumi-count: 1
    257:
      id: image_length
      -orig-id: ImageLength
      doc: Height of the raster in pixels.
      -rumi-count: 1
    258:
      id: bits_per_sample
      -orig-id: BitsPerSample
      doc: Width of a sample in bits, the same for every band.
      -rumi-count: B
    277:
      id: samples_per_pixel
      -orig-id: SamplesPerPixel
      doc: The band count B.
      -rumi-count: 1
    322:
      id: tile_width
      -orig-id: TileWidth
      doc: Nominal tile width in pixels.
      -rumi-count: 1
    323:
      id: tile_length
      -orig-id: TileLength
      doc: Nominal tile height in pixels.
      -rumi-count: 1
    324:
      id: tile_offsets
      -orig-id: TileOffsets
      doc: Offset of every frame in frame-index order.
      -rumi-count: N
    325:
      id: tile_byte_counts
      -orig-id: TileByteCounts
      doc: Compressed size of every frame in frame-index order.
      -rumi-count: N
    339:
      id: sample_format
      -orig-id: SampleFormat
      doc: Type of a sample, the same for every band.
      -rumi-count: B
    34264:
      id: model_transformation
      -orig-id: ModelTransformationTag
      doc: The 4 x 4 matrix from pixel to model space.
      -rumi-count: 16
    34735:
      id: geo_key_directory
      -orig-id: GeoKeyDirectoryTag
      doc: CRS and raster type.
      -rumi-count: 16
  field_type:
    3:
      id: short
      -orig-id: SHORT
      doc: 16-bit unsigned integer
    4:
      id: long
      -orig-id: LONG
      doc: 32-bit unsigned integer
    12:
      id: double
      -orig-id: DOUBLE
      doc: IEEE 64-bit floating point
    16:
      id: long8
      -orig-id: LONG8
      doc: 64-bit unsigned integer
  geo_key:
    1024:
      id: gt_model_type
      -orig-id: GTModelTypeGeoKey
      doc: Kind of the CRS.
    1025:
      id: gt_raster_type
      -orig-id: GTRasterTypeGeoKey
      doc: Whether pixels represent areas or points.
    2048:
      id: geographic_type
      -orig-id: GeographicTypeGeoKey
      doc: EPSG code of a geographic CRS.
    3072:
      id: projected_cs_type
      -orig-id: ProjectedCSTypeGeoKey
      doc: EPSG code of a projected CRS.
  model_type:
    0:
      id: undefined
      doc: No CRS.
    1:
      id: projected
      doc: Projected CRS.
    2:
      id: geographic
      doc: Geographic CRS.
  raster_type:
    1:
      id: pixel_is_area
      -orig-id: PixelIsArea
      doc: Pixels represent areas.
    2:
      id: pixel_is_point
      -orig-id: PixelIsPoint
      doc: Pixels represent points.
