"""What the generated Python parser makes of the conformance vectors."""

import struct

import oracle
from kaitaistruct import KaitaiStructError

from rumi._generated.rumi_file import RumiFile
from rumi._generated.rumi_header import RumiHeader

FIELDS = oracle.NAMES


class RefusedError(Exception):
    """A check of the parser, which it leaves to the application to look at, failed."""


REFUSALS = (KaitaiStructError, EOFError, RefusedError)


def blob(vector):
    header = RumiHeader.from_bytes(bytes.fromhex(vector["hex"]))

    def of_frame(kind, index):
        return kind(index, header._io, None, header).value

    return {
        "fields": {name: int(getattr(header, name)) for name in FIELDS},
        "derived": {
            "encoding": header.sample_encoding.name,
            "tiles_across": header.tiles_across,
            "tiles_down": header.tiles_down,
            "frame_count": header.frame_count,
            "external": header.len_external,
            "base_frame_offset": header.base_frame_offset,
        },
        "frames": [
            {
                "byte_count": of_frame(RumiHeader.ByteCount, frame["index"]),
                "offset": of_frame(RumiHeader.FrameOffset, frame["index"]),
            }
            for frame in vector.get("frames", [])
        ],
    }


def file(vector):
    parsed = RumiFile.from_bytes(bytes.fromhex(vector["hex"]))
    encoding = parsed.sample_type.sample_encoding
    if not parsed.is_single_encoding:
        raise RefusedError("is_single_encoding")
    if not isinstance(encoding, RumiHeader.SampleEncoding):
        raise RefusedError("sample_encoding")
    if not parsed.is_georeferencing_consistent:
        raise RefusedError("is_georeferencing_consistent")
    first, keys, count = parsed.first_tile_offset, parsed.geo_key_directory, parsed.frame_count
    _ = parsed.model_transformation  # parsed, and so checked, when it is asked for
    offsets = struct.unpack(f"<{count}Q", parsed.ifd.tile_offsets.value_raw)
    counts = struct.unpack(f"<{count}I", parsed.ifd.tile_byte_counts.value_raw)
    return {
        "fields": {name: int(getattr(parsed, name)) for name in FIELDS[2:10]},
        "derived": {
            "encoding": encoding.name,
            "tiles_across": parsed.tiles_across,
            "tiles_down": parsed.tiles_down,
            "frame_count": count,
            "external": parsed.placement.len_external,
            "base_frame_offset": first,
            "file_size": first + len(parsed.frame_data),
        },
        "frames": [
            {"byte_count": counts[frame["index"]], "offset": offsets[frame["index"]]}
            for frame in vector.get("frames", [])
        ],
        "georeferencing": {
            "model_type": int(keys.model_type),
            "raster_type": int(keys.raster_type),
            "epsg": keys.epsg,
            "model_transformation": list(
                struct.unpack("<16d", parsed.ifd.model_transformation.value_raw)
            ),
        },
    }
