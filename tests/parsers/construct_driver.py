"""What the generated parser for construct makes of the conformance vectors, as JSON.

usage: python construct_driver.py BLOBS.json FILES.json, run beside the generated parser.
"""

import json
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

import construct
import rumi_file
import rumi_header

FIELDS = (
    "magic",
    "version",
    "image_width",
    "image_length",
    "tile_width",
    "tile_length",
    "samples_per_pixel",
    "bits_per_sample",
    "sample_format",
    "frame_unit",
    "count_min",
    "count_bits",
)


def blob(vector):
    header = rumi_header.rumi_header.parse(bytes.fromhex(vector["hex"]))

    def of_frame(kind, index):
        return kind(lambda this: index).parse(b"", _root=header).value

    return {
        "fields": {name: int(header[name]) for name in FIELDS},
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
                "byte_count": of_frame(rumi_header.rumi_header__byte_count, frame["index"]),
                "offset": of_frame(rumi_header.rumi_header__frame_offset, frame["index"]),
            }
            for frame in vector.get("frames", [])
        ],
    }


def file(vector):
    parsed = rumi_file.rumi_file.parse(bytes.fromhex(vector["hex"]))
    encoding = parsed.sample_type.sample_encoding
    if not parsed.is_single_encoding:
        raise construct.CheckError("is_single_encoding")
    if not isinstance(encoding, rumi_header.rumi_header__sample_encoding_enum):
        raise construct.CheckError("sample_encoding")
    if not parsed.is_georeferencing_consistent:
        raise construct.CheckError("is_georeferencing_consistent")
    count, keys = parsed.frame_count, parsed.geo_key_directory
    offsets = struct.unpack(f"<{count}Q", parsed.ifd.tile_offsets.value_raw)
    counts = struct.unpack(f"<{count}I", parsed.ifd.tile_byte_counts.value_raw)
    return {
        "fields": {name: int(parsed[name]) for name in FIELDS[2:10]},
        "derived": {
            "encoding": encoding.name,
            "tiles_across": parsed.tiles_across,
            "tiles_down": parsed.tiles_down,
            "frame_count": count,
            "external": parsed.placement.len_external,
            "base_frame_offset": parsed.first_tile_offset,
            "file_size": parsed.first_tile_offset + len(parsed.frame_data),
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


def attempt(parse, vector):
    try:
        return parse(vector)
    except construct.ConstructError as error:
        return {"refused": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    results = []
    for path, parse in zip(sys.argv[1:], (blob, file), strict=True):
        vectors = json.loads(Path(path).read_text())["vectors"]
        results.append({vector["name"]: attempt(parse, vector) for vector in vectors})
    json.dump(results, sys.stdout)
