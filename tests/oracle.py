"""Slow and obvious answers to compare rumi with.

Nothing here imports rumi. Bits are handled as one big integer or as strings of
digits, offsets are found by adding up, frames by walking the grid, and files
are put together value by value.
"""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
from openzl import ext as openzl
from openzl.ext import graphs

TESTS = Path(__file__).resolve().parent
GOLDEN = TESTS / "data" / "golden"


def golden_vectors(*groups):
    """One dictionary for each golden vector of the groups, all by default."""
    vectors = json.loads((GOLDEN / "vectors.json").read_text())
    return [vector for vector in vectors if not groups or vector["group"] in groups]


# --- Sample encodings


def pair_of_fields(component):
    return np.dtype([("real", component), ("imag", component)])


# Every valid (sample_format, bits_per_sample) and how NumPy holds it.
DTYPES = {
    (1, 1): np.dtype(bool),
    (1, 2): np.dtype(ml_dtypes.uint2),
    (1, 4): np.dtype(ml_dtypes.uint4),
    (1, 8): np.dtype(np.uint8),
    (1, 16): np.dtype(np.uint16),
    (1, 32): np.dtype(np.uint32),
    (1, 64): np.dtype(np.uint64),
    (2, 2): np.dtype(ml_dtypes.int2),
    (2, 4): np.dtype(ml_dtypes.int4),
    (2, 8): np.dtype(np.int8),
    (2, 16): np.dtype(np.int16),
    (2, 32): np.dtype(np.int32),
    (2, 64): np.dtype(np.int64),
    (3, 16): np.dtype(np.float16),
    (3, 32): np.dtype(np.float32),
    (3, 64): np.dtype(np.float64),
    (5, 32): pair_of_fields(np.int16),
    (5, 64): pair_of_fields(np.int32),
    (6, 32): pair_of_fields(np.float16),
    (6, 64): np.dtype(np.complex64),
    (6, 128): np.dtype(np.complex128),
    (100, 8): np.dtype(ml_dtypes.float8_e4m3fn),
    (101, 8): np.dtype(ml_dtypes.float8_e5m2),
    (102, 16): np.dtype(ml_dtypes.bfloat16),
    (103, 8): np.dtype(ml_dtypes.float8_e8m0fnu),
    (104, 6): np.dtype(ml_dtypes.float6_e2m3fn),
    (105, 6): np.dtype(ml_dtypes.float6_e3m2fn),
    (106, 4): np.dtype(ml_dtypes.float4_e2m1fn),
}
PAIR_IDS = [f"{sample_format}-{bits}" for sample_format, bits in DTYPES]


def pair_of(dtype):
    """Find the pair of a native dtype by looking through the table."""
    return next(pair for pair, candidate in DTYPES.items() if candidate == dtype)


def raw(array):
    """The bytes of an array's samples in C order, native byte order."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).tobytes()


def same_bits(one, other):
    """Whether two arrays are equal in shape, type and every bit."""
    return one.shape == other.shape and one.dtype == other.dtype and raw(one) == raw(other)


def random_samples(pair, shape, seed=0):
    """Samples of every pattern that a pair allows, NaN payloads and the like included."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES[pair]
    data = rng.integers(0, 256, size=(*shape, dtype.itemsize), dtype=np.uint8)
    data &= np.uint8((1 << min(8, pair[1])) - 1)
    return data.view(dtype).reshape(shape)


def ramp(bands, height, width, dtype=np.int32):
    """Samples that name their own place."""
    band, row, col = np.ogrid[:bands, :height, :width]
    return (band * 1_000_000 + row * 1_000 + col).astype(dtype)


# --- Header blob

HEADER = "<IHIIHHHBBBIB"
NAMES = (
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
FIELD_OFFSETS = {
    "magic": 0,
    "version": 4,
    "image_width": 6,
    "image_length": 10,
    "tile_width": 14,
    "tile_length": 16,
    "samples_per_pixel": 18,
    "bits_per_sample": 20,
    "sample_format": 21,
    "frame_unit": 22,
    "count_min": 23,
    "count_bits": 27,
}


def fields_of(shape, tile, pair=(1, 16), unit=0, **changes):
    """The fields of an image of (bands, height, width) with (height, width) tiles."""
    fields = {
        "magic": 0x45564F4C,
        "version": 1,
        "image_width": shape[2],
        "image_length": shape[1],
        "tile_width": tile[1],
        "tile_length": tile[0],
        "samples_per_pixel": shape[0],
        "bits_per_sample": pair[1],
        "sample_format": pair[0],
        "frame_unit": unit,
        "count_min": 100,
        "count_bits": 0,
    }
    assert changes.keys() <= fields.keys()
    return fields | changes


def tiles_along(extent, tile):
    """Count the tiles along one axis by laying them down."""
    return len(range(0, extent, tile))


def frame_count(fields):
    across = tiles_along(fields["image_width"], fields["tile_width"])
    down = tiles_along(fields["image_length"], fields["tile_length"])
    return across * down * (fields["samples_per_pixel"] if fields["frame_unit"] == 0 else 1)


def base_offset(bands, count):
    """Where frame data starts, as the specification's formula is printed."""
    external = (
        (2 * bands if bands >= 5 else 0)
        + (8 * count if count >= 2 else 0)
        + (4 * count if count >= 3 else 0)
        + (2 * bands if bands >= 5 else 0)
        + 128
        + 32
    )
    return 252 + external


def offsets_of(bands, counts):
    offsets, position = [], base_offset(bands, len(counts))
    for count in counts:
        offsets.append(position)
        position += count
    return offsets


def pack(counts):
    """Encode byte counts: (count_min, count_bits, packed), by writing the bits backwards."""
    smallest, largest = min(counts), max(counts)
    width = 0 if largest == smallest else len(f"{largest - smallest:b}")
    return smallest, width, packed_bits([count - smallest for count in counts], width)


def packed_bits(residuals, width):
    """Residuals in `width` bits each, as the digits of one big integer."""
    digits = "".join(f"{residual:0{width}b}" for residual in reversed(residuals)) if width else ""
    return int(digits or "0", 2).to_bytes(-(-len(digits) // 8), "little")


def unpack(packed, smallest, width, count):
    """Decode byte counts from the digits of one big integer."""
    if width == 0:
        return [smallest] * count
    digits = f"{int.from_bytes(packed, 'little'):0{max(1, len(packed)) * 8}b}"[::-1]
    return [
        smallest + int(digits[index * width : (index + 1) * width][::-1], 2)
        for index in range(count)
    ]


def blob_of(fields, packed=b""):
    return struct.pack(HEADER, *(fields[name] for name in NAMES)) + packed


def blob_with(fields, counts):
    """The one canonical blob of an image with these byte counts."""
    smallest, width, packed = pack(counts)
    return blob_of(fields | {"count_min": smallest, "count_bits": width}, packed)


def parse(blob):
    """Fields and byte counts of a blob, unchecked."""
    fields = dict(zip(NAMES, struct.unpack_from(HEADER, blob), strict=True))
    counts = unpack(blob[28:], fields["count_min"], fields["count_bits"], frame_count(fields))
    return fields, counts


def counts_for(number, seed=0, smallest=40, spread=500):
    """Byte counts that differ from frame to frame."""
    rng = np.random.default_rng(seed)
    return [smallest + int(extra) for extra in rng.integers(0, spread, size=number)]


# --- Grid


def positions(fields):
    """(row, col, band) of every frame in frame-index order; band is None in a cell."""
    bands = range(fields["samples_per_pixel"]) if fields["frame_unit"] == 0 else [None]
    return [
        (row, col, band)
        for row in range(tiles_along(fields["image_length"], fields["tile_length"]))
        for col in range(tiles_along(fields["image_width"], fields["tile_width"]))
        for band in bands
    ]


def frames_touched(fields, bands, window):
    """Indices of the frames that hold a pixel of the window in one of the bands."""
    top, left, height, width = window
    found = []
    for index, (row, col, band) in enumerate(positions(fields)):
        y, x = row * fields["tile_length"], col * fields["tile_width"]
        rows = set(range(y, min(y + fields["tile_length"], fields["image_length"])))
        cols = set(range(x, min(x + fields["tile_width"], fields["image_width"])))
        if not rows & set(range(top, top + height)) or not cols & set(range(left, left + width)):
            continue
        if band is None or band in bands:
            found.append(index)
    return found


def merged(frames, gap, largest):
    """Merge (offset, size) of frames in file order: (start, stop, first, last)."""
    ranges = []
    for position, (offset, size) in enumerate(frames):
        if ranges:
            start, stop, first, _ = ranges[-1]
            if offset - stop <= gap and offset + size - start <= largest:
                ranges[-1] = (start, offset + size, first, position + 1)
                continue
        ranges.append((offset, offset + size, position, position + 1))
    return ranges


def cut(array, tile, unit):
    """The samples of every frame of a (B, H, W) array in frame-index order."""
    fields = fields_of(array.shape, tile, unit=unit)
    frames = []
    for row, col, band in positions(fields):
        rows = slice(row * tile[0], (row + 1) * tile[0])
        cols = slice(col * tile[1], (col + 1) * tile[1])
        frames.append(array[:, rows, cols] if band is None else array[band, rows, cols])
    return frames


def numpy_window(array, bands, window):
    """The right result of a read, by NumPy's own indexing."""
    if bands is None:
        bands = list(range(array.shape[0]))
    top, left, height, width = window or (0, 0, *array.shape[1:])
    return array[bands, top : top + height, left : left + width]


# --- Frames

NUMBERS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
FRAME_MAGIC = 0xD7B1A5C0 + 24


def compress(inputs, graph=graphs.Zstd, checksums=True, version=24):
    """One OpenZL frame of the inputs."""
    compressor = openzl.Compressor()
    compressor.select_starting_graph(graph()(compressor))
    context = openzl.CCtx()
    context.ref_compressor(compressor)
    for parameter, value in (
        (openzl.CParam.StickyParameters, 1),
        (openzl.CParam.FormatVersion, version),
        (openzl.CParam.ContentChecksum, 1 if checksums else 2),
        (openzl.CParam.CompressedChecksum, 1 if checksums else 2),
        (openzl.CParam.PermissiveCompression, 1),
    ):
        context.set_parameter(parameter, value)
    return context.compress(inputs)


def frame_of(samples, graph=graphs.Zstd, **options):
    """A frame as DESIGN.md has it: one Numeric output of the sample's width."""
    data = raw(samples)
    numbers = np.frombuffer(data, NUMBERS[min(8, samples.dtype.itemsize)])
    return compress([openzl.Input(openzl.Type.Numeric, numbers)], graph, **options)


# --- Files

TAG_NAMES = {
    256: "ImageWidth",
    257: "ImageLength",
    258: "BitsPerSample",
    277: "SamplesPerPixel",
    322: "TileWidth",
    323: "TileLength",
    324: "TileOffsets",
    325: "TileByteCounts",
    339: "SampleFormat",
    34264: "ModelTransformationTag",
    34735: "GeoKeyDirectoryTag",
}
LETTERS = {3: "H", 4: "I", 12: "d", 16: "Q"}
NO_CRS = (1, 1, 0, 3, 1024, 0, 1, 0, 1025, 0, 1, 1, 2048, 0, 1, 0)
NO_TRANSFORM = (1.0, *[0.0] * 4, 1.0, *[0.0] * 9, 1.0)


def tags_of(fields, counts, *, offsets=None, keys=NO_CRS, matrix=NO_TRANSFORM):
    """The eleven tags: [tag, type, values]."""
    bands = fields["samples_per_pixel"]
    return [
        [256, 4, [fields["image_width"]]],
        [257, 4, [fields["image_length"]]],
        [258, 3, [fields["bits_per_sample"]] * bands],
        [277, 3, [bands]],
        [322, 3, [fields["tile_width"]]],
        [323, 3, [fields["tile_length"]]],
        [324, 16, offsets_of(bands, counts) if offsets is None else offsets],
        [325, 4, counts],
        [339, 3, [fields["sample_format"]] * bands],
        [34264, 12, list(matrix)],
        [34735, 3, list(keys)],
    ]


def lay_out(tags, *, gap=0):
    """BigTIFF header, IFD and external values of some tags; `gap` bytes between the values."""
    position = 16 + 8 + 20 * len(tags) + 8
    entries, external = struct.pack("<Q", len(tags)), b""
    for tag, kind, values in tags:
        value = struct.pack(f"<{len(values)}{LETTERS[kind]}", *values)
        entries += struct.pack("<HHQ", tag, kind, len(values))
        if len(value) <= 8:
            entries += value.ljust(8, b"\0")
        else:
            entries += struct.pack("<Q", position + len(external))
            external += value + bytes(gap)
    header = b"II" + struct.pack("<HHHQ", 43, 8, 0, 16)
    return header + entries + bytes(8) + external


def file_with(fields, frames, **options):
    """A whole file around some frames, whatever bytes they are."""
    tags = tags_of(fields, [len(frame) for frame in frames], **options)
    return lay_out(tags) + b"".join(frames)


def write(array, tile, unit=0, graph=graphs.Zstd, **options):
    """A whole file of an array, and its blob."""
    fields = fields_of(array.shape, tile, pair_of(array.dtype), unit)
    frames = [frame_of(samples, graph) for samples in cut(array, tile, unit)]
    blob = blob_with(fields, [len(frame) for frame in frames])
    return file_with(fields, frames, **options), blob


def replaced(data, offset, new):
    return data[:offset] + new + data[offset + len(new) :]


def entry_at(tag):
    """Where the IFD entry of a tag stands in a file."""
    return 24 + 20 * list(TAG_NAMES).index(tag)


def value_at(data, tag):
    """Where the value of a tag stands: in its entry or outside."""
    at = entry_at(tag)
    _, kind, count, where = struct.unpack_from("<HHQQ", data, at)
    return at + 12 if struct.calcsize(LETTERS[kind]) * count <= 8 else where


# --- Outcomes


def attempt(errors, call, *arguments, **options):
    """Call something that may fail: (its result, None) or (None, the error)."""
    try:
        return call(*arguments, **options), None
    except errors as error:
        # Without tracebacks, which would hold the caller's frame and so the error itself.
        for link in (error.__cause__, error.__context__):
            if link is not None:
                link.with_traceback(None)
        return None, error.with_traceback(None)


# --- Other processes


def run_python(script, *arguments, timeout=60, environment=None, check=True):
    """Run a script in a fresh interpreter that finds the same rumi; return what it did."""
    import rumi

    path = os.pathsep.join([str(Path(rumi.__file__).parent.parent), str(TESTS)])
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
    )
    if check:
        assert result.returncode == 0, result.stderr
    return result
