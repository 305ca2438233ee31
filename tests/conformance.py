"""Which tests stand for which sentence of the specification, 0.1.0.

`tests/test_conformance.py` compares this table with the specification's text, so
that no MUST is left out, and with the tests, so that none of them is a name only.

A name in `tests` is that of a test module without ``test_``, two colons, and that of
a test without ``test_``. One in `clauses` is a clause of `rumi.validate`, each of
which has a file in `tests/test_validation.py` that breaks it and only it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A sentence, the heading it stands under, and what holds it to account."""

    section: str
    sentence: str
    tests: tuple[str, ...]
    clauses: tuple[str, ...] = ()


# Says what the words mean, and demands nothing.
DEFINITION = (
    "The words MUST, MUST NOT, SHOULD, and MAY in this document carry the RFC 2119 meaning."
)

# Every sentence with MUST or MUST NOT, in the order of the text.
MUST = (
    Row(
        "Frames",
        "All frames in a rumi file MUST use the same pinned OpenZL frame format version.",
        ("conformance::frames_have_the_pinned_version_and_stand_alone",),
        ("frame.version",),
    ),
    Row(
        "Frames",
        "Everything required to decode a frame MUST be contained in the frame itself.",
        (
            "conformance::frames_have_the_pinned_version_and_stand_alone",
            "golden::each_frame_is_one_tile",
        ),
        ("frame.magic", "frame.decodes"),
    ),
    Row(
        "Deriving the frame unit",
        "A reader MUST reject a file whose count matches neither value.",
        ("container::a_count_that_is_neither_unit",),
        ("file.frame-unit",),
    ),
    Row(
        "Rejected orders",
        "Band-interleaved layout breaks that property and MUST be rejected.",
        ("container::band_interleaved_order",),
        ("file.frame-order",),
    ),
    Row(
        "Sample encodings",
        "A reader MUST reject any pair not listed above.",
        (
            "header::every_pair_that_is_not_listed_is_refused",
            "container::a_pair_that_is_not_listed",
            "encodings::every_pair_that_is_not_listed",
        ),
        ("file.encoding", "blob.encoding"),
    ),
    Row(
        "Sample encodings",
        "All bands in a file MUST use the same pair.",
        (
            "container::one_band_of_another_encoding",
            "container::two_bands_of_different_encodings",
            "geotiff::c14_mixed_depths_and_formats_name_the_band",
        ),
        ("file.same-encoding",),
    ),
    Row(
        "Fixed IFD",
        "A writer MUST NOT add any other tag.",
        (
            "container::build_prefix_and_index_agree_with_the_oracle",
            "second_readers::tifffile_sees_our_index",
        ),
        ("file.tags",),
    ),
    Row(
        "Fixed IFD",
        "Readers that parse the IFD to rebuild a header blob or validate a file MUST reject any "
        "file containing additional tags.",
        ("container::an_extra_tag", "container::a_tag_in_the_place_of_another"),
        ("file.tags", "file.no-overviews-masks", "file.tiled"),
    ),
    Row(
        "Placement",
        "Larger values MUST be stored immediately after the IFD, in rising tag order and with no "
        "gaps between them.",
        (
            "container::an_outside_value_elsewhere",
            "container::an_outside_value_of_five_bands_elsewhere",
            "container::gaps_between_outside_values",
            "container::outside_values_in_another_order",
            "container::every_border_between_inline_and_outside",
        ),
        ("file.placement", "file.tag-order"),
    ),
    Row(
        "Placement",
        "A writer MUST NOT add padding, alignment, reserved space, or any other bytes before it.",
        (
            "container::bytes_before_the_frame_data",
            "container::build_prefix_and_index_agree_with_the_oracle",
        ),
        ("file.base-frame-offset",),
    ),
    Row(
        "Deriving base_frame_offset",
        "The result MUST match the first entry of TileOffsets.",
        (
            "container::bytes_before_the_frame_data",
            "container::every_border_between_inline_and_outside",
            "header::base_offset_at_the_border_of_inline_bands",
            "header::base_offset_at_the_border_of_inline_frames",
        ),
        ("file.base-frame-offset",),
    ),
    Row(
        "Georeferencing",
        "ModelPixelScaleTag (33550), ModelTiepointTag (33922), GeoDoubleParamsTag (34736), and "
        "GeoAsciiParamsTag (34737) MUST NOT appear.",
        ("container::an_extra_tag", "container::a_tag_in_the_place_of_another"),
        ("file.georef-tags",),
    ),
    Row(
        "GeoKeyDirectoryTag",
        "This MUST agree with GTModelTypeGeoKey.",
        ("container::a_key_of_the_other_kind_of_crs", "georef::decode_refuses_keys"),
        ("file.crs-key", "file.model-type", "file.keys"),
    ),
    Row(
        "GeoKeyDirectoryTag",
        "The EPSG code MUST be defined by the EPSG registry and MUST fall between 1024 and 32766.",
        (
            "georef::codes_out_of_range",
            "georef::refused_kinds",
            "container::a_code_outside_the_registry",
        ),
        ("file.epsg-range", "file.epsg-registry"),
    ),
    Row(
        "Undefined georeferencing",
        "A reader MUST interpret GTModelTypeGeoKey equal to 0 as no CRS and MUST NOT interpret the "
        "transformation matrix as valid georeferencing.",
        (
            "image::an_image_without_georeferencing",
            "georef::decode_without_crs_allows_one_matrix",
            "xarray::without_georeferencing_there_are_no_spatial_coordinates",
            "geotiff_export::without_georeferencing",
        ),
        ("file.undefined",),
    ),
    Row(
        "Which codes are geographic",
        "A writer MUST determine the CRS type from the EPSG registry or a PROJ database and MUST "
        "NOT infer it from the code itself.",
        (
            "georef::kind_as_gdal_sees_it",
            "write::a_geographic_crs_is_looked_up",
            "second_readers::gdal_sees_our_georeferencing",
        ),
        ("file.epsg-registry", "file.epsg-kind"),
    ),
    Row(
        "Header blob",
        "The blob size MUST be exactly 28 + ceil(N * count_bits / 8) bytes and MUST contain no "
        "padding.",
        (
            "header::every_shorter_blob_is_truncated",
            "header::bytes_after_the_blob_are_refused",
            "header::build_is_canonical",
        ),
        ("blob.size",),
    ),
    Row(
        "magic",
        "A reader MUST reject any other value.",
        ("header::a_wrong_field_is_named_with_its_place", "conformance::one_magic_and_one_version"),
        ("blob.magic",),
    ),
    Row(
        "version",
        "A reader that implements version 1 MUST reject any other value.",
        ("header::a_wrong_field_is_named_with_its_place", "conformance::one_magic_and_one_version"),
        ("blob.version",),
    ),
    Row(
        "tile_width and tile_length",
        "Both values MUST be greater than zero.",
        ("header::a_wrong_field_is_named_with_its_place", "container::a_side_of_zero"),
        ("blob.tile-size", "file.tile-size"),
    ),
    Row(
        "tile_width and tile_length",
        "A reader MUST derive their actual dimensions from the image shape and the grid position, "
        "and MUST NOT trust a decoded length.",
        (
            "read::the_size_of_an_edge_frame_is_derived_not_trusted",
            "read::a_frame_of_another_size",
            "read::a_frame_that_claims_to_be_large",
            "read::bands_and_pixels_cannot_stand_for_each_other",
        ),
        ("frame.declared-size",),
    ),
    Row(
        "samples_per_pixel",
        "This matches SamplesPerPixel in the IFD and MUST be at least 1.",
        ("header::a_wrong_field_is_named_with_its_place",),
        ("blob.bands", "file.bands", "match.bands"),
    ),
    Row(
        "bits_per_sample and sample_format",
        "A reader MUST reject any pair not listed there.",
        ("header::every_pair_that_is_not_listed_is_refused",),
        ("blob.encoding", "match.encoding"),
    ),
    Row(
        "frame_unit",
        "A reader MUST reject any other value.",
        ("header::a_wrong_field_is_named_with_its_place",),
        ("blob.frame-unit",),
    ),
    Row(
        "count_min and count_bits",
        "count_bits is the number of bits used to encode each residual and MUST be between 0 and "
        "32.",
        ("header::a_wrong_field_is_named_with_its_place", "header::every_width"),
        ("blob.count-bits", "blob.counts-width"),
    ),
    Row(
        "Frame byte counts",
        "Every count MUST be greater than zero.",
        (
            "container::a_frame_of_no_bytes",
            "container::a_single_frame_of_no_bytes",
            "header::build_refuses_a_count_that_is_no_count",
        ),
        ("blob.counts-positive", "file.not-sparse"),
    ),
    Row(
        "Encoding",
        "A writer MUST use exactly these values.",
        ("header::build_is_canonical", "bits::every_width_packs_as_the_big_integer"),
    ),
    Row(
        "Encoding",
        "count_min MUST be the smallest count and count_bits MUST be the minimum width required to "
        "represent the largest residual.",
        (
            "header::build_is_canonical",
            "header::count_min_that_no_frame_has_is_refused",
            "header::count_bits_wider_than_needed_is_refused",
        ),
        ("blob.canonical-min", "blob.canonical-bits"),
    ),
    Row(
        "Packing",
        "Unused bits in the final byte MUST be zero.",
        ("header::every_set_unused_bit_is_refused", "bits::unused_bits_are_zero"),
        ("blob.spare-bits",),
    ),
    Row(
        "Offset reconstruction",
        "Offsets MUST be compared in frame-index order and MUST NOT be sorted first.",
        (
            "container::band_interleaved_order",
            "container::two_frames_that_changed_places",
            "container::frames_in_reverse_order",
        ),
        ("file.frame-order", "match.offsets"),
    ),
)

# The list under "A file is rumi compliant when all of the following hold".
PROFILE = (
    Row("File profile", "the file is BigTIFF", ("container::foreign_files",), ("file.bigtiff",)),
    Row(
        "File profile",
        "the file uses little-endian byte order, so the TIFF header begins with II",
        ("container::foreign_files", "container::another_bigtiff_header"),
        ("file.byte-order",),
    ),
    Row(
        "File profile",
        "the file has exactly one IFD",
        ("container::a_second_ifd",),
        ("file.one-ifd",),
    ),
    Row(
        "File profile",
        "the file has no overviews",
        ("container::an_overview",),
        ("file.no-overviews-masks",),
    ),
    Row(
        "File profile",
        "the file has no masks or auxiliary IFDs",
        ("container::an_overview", "container::a_second_ifd"),
        ("file.no-overviews-masks",),
    ),
    Row(
        "File profile",
        "the image is tiled, not stripped",
        ("container::an_ordinary_bigtiff",),
        ("file.tiled",),
    ),
    Row(
        "File profile",
        "at the tile level, tiles are stored tile-interleaved",
        ("container::band_interleaved_order", "golden::each_frame_is_one_tile"),
        ("file.frame-order",),
    ),
    Row(
        "File profile",
        "the single IFD is positioned before the frame data",
        ("container::an_ifd_behind_the_frames", "container::an_ifd_elsewhere"),
        ("file.ifd-position",),
    ),
    Row(
        "File profile",
        "the IFD holds exactly the tags listed in Fixed IFD, and no others",
        (
            "container::an_extra_tag",
            "container::a_missing_tag",
            "container::a_duplicate_tag",
            "container::twelve_entries_of_which_two_are_one",
        ),
        ("file.tags", "file.types", "file.counts"),
    ),
    Row(
        "File profile",
        "out-of-line tag values are placed as defined in Fixed IFD, with no gap before the frame "
        "data",
        ("container::an_outside_value_elsewhere", "container::bytes_before_the_frame_data"),
        ("file.placement",),
    ),
    Row(
        "File profile",
        "georeferencing is encoded as defined in Georeferencing",
        ("container::wrong_keys", "container::a_wrong_matrix", "georef::known_bytes"),
        ("file.keys", "file.matrix", "file.raster-type"),
    ),
    Row(
        "File profile",
        "the (sample_format, bits_per_sample) pair is one listed in Sample encodings",
        ("container::a_pair_that_is_not_listed",),
        ("file.encoding",),
    ),
    Row(
        "File profile",
        "each frame is one self-contained OpenZL frame, every frame in the file written at one "
        "pinned OpenZL frame format version",
        ("conformance::frames_have_the_pinned_version_and_stand_alone",),
        ("frame.magic", "frame.version"),
    ),
    Row(
        "File profile",
        "TileOffsets and TileByteCounts are present, with N entries, and the entry count matches "
        "one of the two values in Deriving the frame unit",
        ("container::a_wrong_count", "container::a_count_that_is_neither_unit"),
        ("file.frame-unit", "file.counts"),
    ),
    Row(
        "File profile",
        "no frame is sparse. Every frame is present and every TileByteCounts entry is greater than "
        "zero",
        ("container::a_frame_of_no_bytes", "geotiff::c21_sparse"),
        ("file.not-sparse",),
    ),
    Row(
        "File profile",
        "the frames form one contiguous run in frame-index order, each frame immediately followed "
        "by the next, with no framing between them",
        (
            "container::a_gap_or_an_overlap_between_frames",
            "container::two_frames_in_one_place",
            "container::bytes_after_the_last_frame",
        ),
        ("file.contiguous", "file.complete"),
    ),
)

# What else the text demands, without the word.
OTHER = (
    Row(
        "Fixed IFD",
        "A rumi IFD contains exactly the tags below, in rising tag order.",
        ("container::swapped_entries", "container::a_wrong_type", "container::a_wrong_count"),
        ("file.tag-order", "file.types", "file.counts"),
    ),
    Row(
        "Fixed IFD",
        "Every rumi file carries all 11 tags.",
        ("container::a_missing_tag", "image::an_image_without_georeferencing"),
        ("file.tags",),
    ),
    Row(
        "Placement",
        "The IFD starts at byte 16, immediately after the BigTIFF header.",
        ("container::an_ifd_elsewhere",),
        ("file.ifd-position",),
    ),
    Row(
        "Placement",
        "Values of 8 bytes or less are stored directly inside their IFD entry.",
        ("container::every_border_between_inline_and_outside",),
        ("file.placement",),
    ),
    Row(
        "Deriving base_frame_offset",
        "Files with the same image shape, band count, and frame_unit start their frame data at the "
        "same byte.",
        ("container::georeferencing_stands_in_its_two_tags",),
        ("file.base-frame-offset",),
    ),
    Row(
        "ModelTransformationTag",
        "The third row is zero.",
        ("container::a_wrong_matrix", "georef::decode_refuses_fixed_elements"),
        ("file.matrix",),
    ),
    Row(
        "GeoKeyDirectoryTag",
        "The directory is always 16 shorts, consisting of a four-short header followed by three "
        "four-short keys.",
        ("container::wrong_keys", "georef::decode_refuses_other_sizes"),
        ("file.keys",),
    ),
    Row(
        "Undefined georeferencing",
        "GTRasterTypeGeoKey still records whether pixels represent areas or points.",
        ("georef::known_bytes", "container::georeferencing_stands_in_its_two_tags"),
        ("file.raster-type",),
    ),
    Row(
        "Undefined georeferencing",
        "rumi accepts only EPSG codes.",
        ("georef::refused_kinds", "georef::crs_objects_that_are_not_exactly_epsg"),
        ("file.epsg-registry",),
    ),
    Row(
        "Deriving the frame unit",
        "When B is 1 the two are equal and the two layouts are identical, so either reading is "
        "correct.",
        ("container::a_single_band_is_recorded_as_tile", "read::one_band_read_with_the_other_unit"),
        ("match.frame-unit",),
    ),
    Row(
        "image_width and image_length",
        "These match ImageWidth and ImageLength in the IFD.",
        (
            "read::a_header_of_the_file_before",
            "header::a_wrong_field_is_named_with_its_place",
            "container::a_side_of_zero",
        ),
        ("match.image-size", "blob.image-size", "file.image-size"),
    ),
    Row(
        "tile_width and tile_length",
        "These match TileWidth and TileLength in the IFD.",
        ("read::a_header_of_the_file_before",),
        ("match.tile-size",),
    ),
    Row(
        "tile_width and tile_length",
        "Edge tiles are cut to the image bounds and are never padded.",
        ("write::edge_tiles_are_cut", "write::the_last_frame_of_c01_is_one_sample"),
        ("frame.declared-size",),
    ),
    Row(
        "Encoding",
        "When all counts are equal, count_bits is 0 and no packed data follows the header.",
        ("bits::equal_counts_take_no_bytes", "header::equal_counts_in_bits_are_refused"),
        ("blob.canonical-bits",),
    ),
    Row(
        "Frame byte counts",
        "The original counts are reconstructed exactly.",
        ("bits::any_counts_survive", "header::fields_and_locations_agree_with_both_oracles"),
        ("match.counts",),
    ),
    Row(
        "Offset reconstruction",
        "A file is compliant only when the reconstructed offsets match TileOffsets in the same "
        "order.",
        (
            "golden::our_offsets_are_those_of_their_index",
            "container::two_frames_that_changed_places",
        ),
        ("match.offsets",),
    ),
    Row(
        "Offset reconstruction",
        "A reader takes exactly frame_byte_counts[idx] bytes from offset[idx] and passes them to "
        "the OpenZL decoder.",
        (
            "read::no_byte_outside_the_frames_of_the_window_is_read",
            "header::every_offset_across_the_checkpoints",
        ),
        ("frame.decodes", "match.counts"),
    ),
)
