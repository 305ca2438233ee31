meta:
  id: rumi_header
  title: rumi header blob
  license: GPL-3.0-only
  ks-version: '0.11'
  endian: le
  bit-endian: le
doc: |
  The header blob of a rumi file: everything needed to locate any frame of the
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
doc-ref: rumi specification 0.1.0, Header blob
seq:
  - id: magic
    -orig-id: magic
    type: u4
    valid: 0x45564f4c
    doc: Always 4C 4F 56 45 on the wire. A reader rejects any other value.
    doc-ref: rumi specification 0.1.0, Header fields, magic
  - id: version
    -orig-id: version
    type: u2
    valid: 1
    doc: Version of the binary format. A reader of version 1 rejects any other value.
    doc-ref: rumi specification 0.1.0, Header fields, version
  - id: image_width
    -orig-id: image_width
    type: u4
    # Zero is excluded because count_min, the smallest byte count, is not
    # defined for an image without frames. The same holds for image_length.
    valid:
      min: 1
    doc: Width of the raster in pixels. Matches ImageWidth in the IFD.
    doc-ref: rumi specification 0.1.0, Header fields, image_width and image_length
  - id: image_length
    -orig-id: image_length
    type: u4
    valid:
      min: 1
    doc: Height of the raster in pixels. Matches ImageLength in the IFD.
    doc-ref: rumi specification 0.1.0, Header fields, image_width and image_length
  - id: tile_width
    -orig-id: tile_width
    type: u2
    valid:
      min: 1
    doc: |
      Nominal tile width in pixels. Matches TileWidth in the IFD. Edge tiles are
      cut to the image bounds and are never padded.
    doc-ref: rumi specification 0.1.0, Header fields, tile_width and tile_length
  - id: tile_length
    -orig-id: tile_length
    type: u2
    valid:
      min: 1
    doc: |
      Nominal tile height in pixels. Matches TileLength in the IFD. Edge tiles
      are cut to the image bounds and are never padded.
    doc-ref: rumi specification 0.1.0, Header fields, tile_width and tile_length
  - id: samples_per_pixel
    -orig-id: samples_per_pixel
    type: u2
    valid:
      min: 1
    doc: The band count B. Matches SamplesPerPixel in the IFD.
    doc-ref: rumi specification 0.1.0, Header fields, samples_per_pixel
  - id: bits_per_sample
    -orig-id: bits_per_sample
    type: u1
    valid:
      any-of: [1, 2, 4, 6, 8, 16, 32, 64, 128]
    doc: |
      Width of one sample in bits; for complex formats the combined width of the
      real and imaginary components.
    doc-ref: rumi specification 0.1.0, Header fields, bits_per_sample and sample_format
  - id: sample_format
    -orig-id: sample_format
    type: u1
    enum: sample_format
    # Not every known format goes with every known width. Reading the pair here
    # makes the parser refuse an unlisted pair at once and not on first use.
    valid:
      expr: sample_encoding.to_i / 256 == _.to_i
    -rumi-accepted: a listed pair with bits_per_sample
    doc: The sample type.
    doc-ref: rumi specification 0.1.0, Header fields, bits_per_sample and sample_format
  - id: frame_unit
    -orig-id: frame_unit
    type: u1
    enum: frame_unit
    valid:
      in-enum: true
    doc: What one frame contains. Together with the image shape it determines N.
    doc-ref: rumi specification 0.1.0, Header fields, frame_unit
  - id: count_min
    -orig-id: count_min
    type: u4
    valid:
      min: 1
    doc: The smallest frame byte count. Every count is greater than zero.
    doc-ref: rumi specification 0.1.0, Header fields, count_min and count_bits
  - id: count_bits
    -orig-id: count_bits
    type: u1
    valid:
      max: 32
    doc: |
      Number of bits of each residual. 0 means that every frame is count_min
      bytes long and no packed data follows.
    doc-ref: rumi specification 0.1.0, Header fields, count_min and count_bits
  - id: packed_residuals
    -orig-id: frame_byte_counts
    size: len_packed
    # A runtime library that cannot count so far may read less than was asked for.
    # The blob ends with the packed region, and the bits that fill up its last
    # byte are zero; both are needed for one content to have one blob.
    valid:
      expr: packed_residuals.length == len_packed and _io.eof and unused_bits == 0
    -rumi-accepted: exactly these bytes, unused bits zero
    doc: |
      residual[i] = byte count of frame i - count_min, in frame-index order,
      count_bits bits each, starting from the least significant bit of the first
      byte, without padding or alignment between them.
    doc-ref: rumi specification 0.1.0, Frame byte counts, Packing
instances:
  sample_encoding:
    pos: 20
    type: u2
    enum: sample_encoding
    valid:
      in-enum: true
    doc: |
      bits_per_sample and sample_format read together as one little-endian
      number, sample_format << 8 | bits_per_sample. Only listed pairs are valid.
    doc-ref: rumi specification 0.1.0, Sample encodings
  grid:
    type: grid(image_width, image_length, tile_width, tile_length)
    doc: The tile grid laid over the image.
    doc-ref: rumi specification 0.1.0, Frame index
  tiles_across:
    value: grid.tiles_across
    doc: Number of grid columns.
    doc-ref: rumi specification 0.1.0, Frame index
  tiles_down:
    value: grid.tiles_down
    doc: Number of grid rows.
    doc-ref: rumi specification 0.1.0, Frame index
  frame_count:
    value: '(grid.num_positions * (frame_unit == frame_unit::tile ? samples_per_pixel : 1)).as<u8>'
    doc: The frame count N.
    doc-ref: rumi specification 0.1.0, Frame index
  placement:
    type: placement(samples_per_pixel, frame_count)
    doc: Where the file keeps its values and where its frames start.
    doc-ref: rumi specification 0.1.0, Placement
  len_external:
    -orig-id: external
    value: placement.len_external
    doc: Bytes of the file between the end of the IFD and the first frame.
    doc-ref: rumi specification 0.1.0, Deriving base_frame_offset
  base_frame_offset:
    -orig-id: base_frame_offset
    value: placement.base_frame_offset
    doc: Offset of frame 0 in the file.
    doc-ref: rumi specification 0.1.0, Deriving base_frame_offset
  residual_limit:
    value: '((1 << (count_bits / 2)).as<u8> * (1 << (count_bits - count_bits / 2))).as<u8>'
    doc: |
      2 to the power of count_bits, one more than the largest residual. It is a
      product of two shifts because several languages shift in 32 bits.
  len_packed:
    value: ((frame_count * count_bits + 7) / 8).as<u8>
    doc: Bytes of the packed residuals, ceil(N * count_bits / 8).
    doc-ref: rumi specification 0.1.0, Header blob
  num_unused_bits:
    value: '(packed_residuals.length.as<u8> * 8 - frame_count * count_bits).as<u8>'
    doc: Number of high bits in the last packed byte that belong to no residual.
    doc-ref: rumi specification 0.1.0, Frame byte counts, Packing
  unused_bits:
    value: 'num_unused_bits == 0 ? 0 : (packed_residuals[packed_residuals.length - 1] & 0xff) >> (8 - num_unused_bits).as<u1>'
    doc: The unused bits of the last packed byte, which are zero in every valid blob.
    doc-ref: rumi specification 0.1.0, Frame byte counts, Packing
types:
  grid:
    doc: |
      The grid of tiles that covers an image, traversed in row-major order. For
      the positive sizes of an image, ceil(a / b) is (a - 1) / b + 1, which
      cannot exceed the width of the fields.
    doc-ref: rumi specification 0.1.0, Frame index
    # Parameters are u8 throughout because values of entries are, and not every
    # language narrows an integer by itself.
    params:
      - id: image_width
        type: u8
      - id: image_length
        type: u8
      - id: tile_width
        type: u8
      - id: tile_length
        type: u8
    instances:
      tiles_across:
        -orig-id: tiles_across
        value: ((image_width - 1) / tile_width + 1).as<u8>
        doc: ceil(image_width / tile_width)
      tiles_down:
        -orig-id: tiles_down
        value: ((image_length - 1) / tile_length + 1).as<u8>
        doc: ceil(image_length / tile_length)
      num_positions:
        -orig-id: g
        value: (tiles_across * tiles_down).as<u8>
        doc: Number of grid positions.
  placement:
    doc: |
      Placement of everything that precedes the frames. The IFD has a fixed
      place and size, and only values larger than 8 bytes contribute to the
      external area, so band count and frame count determine where frames start.
    doc-ref: rumi specification 0.1.0, Placement; Deriving base_frame_offset
    params:
      - id: samples_per_pixel
        -orig-id: B
        type: u8
      - id: frame_count
        -orig-id: N
        type: u8
    instances:
      ofs_ifd:
        value: 16
        doc: The IFD follows the BigTIFF header immediately.
      len_ifd:
        value: 236
        doc: Entry count, 11 entries of 20 bytes and the zero offset of the next IFD.
      len_inline:
        value: 8
        doc: Values of at most this many bytes are stored inside their IFD entry.
      ofs_external:
        value: ofs_ifd + len_ifd
        doc: The first external value follows the IFD immediately.
      len_bits_per_sample:
        value: 'samples_per_pixel * 2 > len_inline ? samples_per_pixel * 2 : 0'
        doc: External bytes of BitsPerSample, and of SampleFormat as well.
      len_tile_offsets:
        value: '(frame_count * 8 > len_inline ? frame_count * 8 : 0).as<u8>'
        doc: External bytes of TileOffsets.
      len_tile_byte_counts:
        value: '(frame_count * 4 > len_inline ? frame_count * 4 : 0).as<u8>'
        doc: External bytes of TileByteCounts.
      len_model_transformation:
        value: 128
        doc: Bytes of ModelTransformationTag, 16 doubles.
      len_geo_key_directory:
        value: 32
        doc: Bytes of GeoKeyDirectoryTag, 16 shorts.
      len_georeferencing:
        value: len_model_transformation + len_geo_key_directory
        doc: The two georeferencing tags never change their size.
      len_external:
        -orig-id: external
        value: '(len_bits_per_sample + len_tile_offsets + len_tile_byte_counts + len_bits_per_sample + len_georeferencing).as<u8>'
        doc: Bytes of all external values.
      base_frame_offset:
        -orig-id: base_frame_offset
        value: (ofs_external + len_external).as<u8>
        doc: Offset of frame 0, immediately after the last external value.
  sample_type:
    doc: |
      The pair (sample_format, bits_per_sample) for a reader that holds the IFD
      only. A pair that is not listed gives no member of the enumeration; the
      reader rejects it.
    doc-ref: rumi specification 0.1.0, Sample encodings
    params:
      - id: bits_per_sample
        type: u8
      - id: format_code
        type: u8
    instances:
      sample_format:
        value: format_code
        enum: sample_format
        doc: The sample type.
      sample_encoding:
        value: (format_code * 256 + bits_per_sample).as<u8>
        enum: sample_encoding
        doc: sample_format << 8 | bits_per_sample
  frame_layout:
    doc: |
      The frame unit for a reader that holds the IFD only, derived from the
      entry count of TileOffsets. With a single band the two layouts are
      identical and read as tile.
    doc-ref: rumi specification 0.1.0, Deriving the frame unit
    params:
      - id: num_positions
        -orig-id: g
        type: u8
      - id: samples_per_pixel
        -orig-id: B
        type: u8
      - id: count
        type: u8
    instances:
      is_tile:
        value: count == num_positions * samples_per_pixel
        doc: True if there is a frame for every band at every grid position.
      is_valid:
        value: is_tile or count == num_positions
        doc: False for a file that a reader rejects because its count matches neither value.
      frame_unit:
        value: 'is_tile ? frame_unit::tile : frame_unit::cell'
        doc: Meaningful only if is_valid is true.
  residual:
    doc: |
      Residual of one frame. It occupies at most five bytes of the packed span
      and only those are touched.
    doc-ref: rumi specification 0.1.0, Frame byte counts, Decoding
    params:
      - id: index
        type: u8
    instances:
      first_bit:
        -orig-id: lo
        value: (index * _root.count_bits).as<u8>
        doc: Position of the residual in the packed span, in bits.
      first_byte:
        value: (first_bit / 8).as<u8>
        doc: The byte that holds its first bit.
      shift:
        value: (first_bit - first_byte * 8).as<u1>
        doc: Bits of that byte that belong to preceding residuals.
      len_span:
        value: (shift + _root.count_bits + 7) / 8
        doc: Bytes from the one that holds the first bit to the one that holds the last.
      span:
        value: >-
          (((_root.count_bits > 0 ? _root.packed_residuals[first_byte] : 0) & 0xff).as<u8>
          + ((len_span > 1 ? _root.packed_residuals[first_byte + 1] : 0) & 0xff).as<u8> * 0x100
          + ((len_span > 2 ? _root.packed_residuals[first_byte + 2] : 0) & 0xff).as<u8> * 0x10000
          + ((len_span > 3 ? _root.packed_residuals[first_byte + 3] : 0) & 0xff).as<u8> * 0x1000000
          + ((len_span > 4 ? _root.packed_residuals[first_byte + 4] : 0) & 0xff).as<u8> * 0x100000000).as<u8>
        doc: These bytes as one little-endian number.
      shifted:
        value: (span / (1 << shift)).as<u8>
        doc: These bytes without the bits of preceding residuals.
      value:
        value: (shifted - shifted / _root.residual_limit * _root.residual_limit).as<u8>
        doc: The residual, which is the low count_bits bits of `shifted`.
  residual_sum:
    doc: |
      Sum of `count` residuals starting at `first`. Halving the run keeps the
      depth of the recursion at log2(count).
    doc-ref: rumi specification 0.1.0, Offset reconstruction
    params:
      - id: first
        type: u8
      - id: count
        type: u8
    instances:
      only:
        type: residual(first)
        if: count == 1
        doc: The residual of a run of one.
      left:
        type: residual_sum(first, count / 2)
        if: count > 1
        doc: The first half of a longer run.
      right:
        type: residual_sum(first + count / 2, count - count / 2)
        if: count > 1
        doc: The second half of a longer run.
      value:
        value: '(count > 1 ? left.value + right.value : (count == 1 ? only.value : 0)).as<u8>'
        doc: The sum; 0 for an empty run.
  byte_count:
    doc: Byte count of one frame, independent of every other frame.
    doc-ref: rumi specification 0.1.0, Frame byte counts, Decoding
    params:
      - id: index
        -orig-id: i
        type: u8
    instances:
      residual:
        type: residual(index)
        doc: Byte count less count_min.
      value:
        -orig-id: c[i]
        value: (_root.count_min + residual.value).as<u8>
        doc: Compressed size of the frame in bytes.
  frame_offset:
    doc: Offset of one frame in the file.
    doc-ref: rumi specification 0.1.0, Offset reconstruction
    params:
      - id: index
        -orig-id: k
        type: u8
    instances:
      preceding:
        type: residual_sum(0, index)
        if: _root.count_bits > 0
        doc: The residuals of all frames before this one. Not computed where all are 0.
      value:
        -orig-id: offset[k]
        value: '(_root.base_frame_offset + index * _root.count_min + (_root.count_bits > 0 ? preceding.value : 0)).as<u8>'
        doc: Offset of the first byte of the frame.
enums:
  sample_format:
    1:
      id: unsigned_integer
      doc: unsigned integer
    2:
      id: signed_integer
      doc: signed integer
    3:
      id: floating_point
      doc: IEEE floating point
    5:
      id: complex_signed_integer
      doc: complex signed integer
    6:
      id: complex_floating_point
      doc: complex IEEE floating point
    100:
      id: float8_e4m3fn
      doc: float8 E4M3FN
    101:
      id: float8_e5m2
      doc: float8 E5M2
    102:
      id: bfloat16
      doc: bfloat16
    103:
      id: float8_e8m0
      doc: float8 E8M0
    104:
      id: float6_e2m3
      doc: float6 E2M3
    105:
      id: float6_e3m2
      doc: float6 E3M2
    106:
      id: float4_e2m1
      doc: float4 E2M1
  frame_unit:
    0:
      id: tile
      doc: one band at one grid position
      -rumi-frame-shape: (h, w)
      -rumi-frame-count: tiles_across * tiles_down * B
    1:
      id: cell
      doc: all bands at one grid position
      -rumi-frame-shape: (B, h, w)
      -rumi-frame-count: tiles_across * tiles_down
  # Keys are sample_format << 8 | bits_per_sample.
  sample_encoding:
    0x0101:
      id: binary
      doc: 1-bit binary
      -rumi-dtype: bool
      -rumi-itemsize: 1
    0x0102:
      id: uint2
      doc: unsigned 2-bit integer
      -rumi-dtype: uint2
      -rumi-itemsize: 1
    0x0104:
      id: uint4
      doc: unsigned 4-bit integer
      -rumi-dtype: uint4
      -rumi-itemsize: 1
    0x0108:
      id: uint8
      doc: unsigned 8-bit integer
      -rumi-dtype: uint8
      -rumi-itemsize: 1
    0x0110:
      id: uint16
      doc: unsigned 16-bit integer
      -rumi-dtype: uint16
      -rumi-itemsize: 2
    0x0120:
      id: uint32
      doc: unsigned 32-bit integer
      -rumi-dtype: uint32
      -rumi-itemsize: 4
    0x0140:
      id: uint64
      doc: unsigned 64-bit integer
      -rumi-dtype: uint64
      -rumi-itemsize: 8
    0x0202:
      id: int2
      doc: signed 2-bit integer
      -rumi-dtype: int2
      -rumi-itemsize: 1
    0x0204:
      id: int4
      doc: signed 4-bit integer
      -rumi-dtype: int4
      -rumi-itemsize: 1
    0x0208:
      id: int8
      doc: signed 8-bit integer
      -rumi-dtype: int8
      -rumi-itemsize: 1
    0x0210:
      id: int16
      doc: signed 16-bit integer
      -rumi-dtype: int16
      -rumi-itemsize: 2
    0x0220:
      id: int32
      doc: signed 32-bit integer
      -rumi-dtype: int32
      -rumi-itemsize: 4
    0x0240:
      id: int64
      doc: signed 64-bit integer
      -rumi-dtype: int64
      -rumi-itemsize: 8
    0x0310:
      id: float16
      doc: IEEE 16-bit floating point
      -rumi-dtype: float16
      -rumi-itemsize: 2
    0x0320:
      id: float32
      doc: IEEE 32-bit floating point
      -rumi-dtype: float32
      -rumi-itemsize: 4
    0x0340:
      id: float64
      doc: IEEE 64-bit floating point
      -rumi-dtype: float64
      -rumi-itemsize: 8
    0x0520:
      id: complex_int16
      doc: complex signed integer, 16-bit components
      -rumi-dtype: complex_int16
      -rumi-itemsize: 4
    0x0540:
      id: complex_int32
      doc: complex signed integer, 32-bit components
      -rumi-dtype: complex_int32
      -rumi-itemsize: 8
    0x0620:
      id: complex_float16
      doc: complex IEEE floating point, 16-bit components
      -rumi-dtype: complex_float16
      -rumi-itemsize: 4
    0x0640:
      id: complex_float32
      doc: complex IEEE floating point, 32-bit components
      -rumi-dtype: complex64
      -rumi-itemsize: 8
    0x0680:
      id: complex_float64
      doc: complex IEEE floating point, 64-bit components
      -rumi-dtype: complex128
      -rumi-itemsize: 16
    0x6408:
      id: float8_e4m3fn
      doc: float8 E4M3FN
      -rumi-dtype: float8_e4m3fn
      -rumi-itemsize: 1
    0x6508:
      id: float8_e5m2
      doc: float8 E5M2
      -rumi-dtype: float8_e5m2
      -rumi-itemsize: 1
    0x6610:
      id: bfloat16
      doc: bfloat16
      -rumi-dtype: bfloat16
      -rumi-itemsize: 2
    0x6708:
      id: float8_e8m0
      doc: float8 E8M0
      -rumi-dtype: float8_e8m0fnu
      -rumi-itemsize: 1
    0x6806:
      id: float6_e2m3
      doc: float6 E2M3
      -rumi-dtype: float6_e2m3fn
      -rumi-itemsize: 1
    0x6906:
      id: float6_e3m2
      doc: float6 E3M2
      -rumi-dtype: float6_e3m2fn
      -rumi-itemsize: 1
    0x6a04:
      id: float4_e2m1
      doc: float4 E2M1
      -rumi-dtype: float4_e2m1fn
      -rumi-itemsize: 1
