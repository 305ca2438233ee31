"""Live, against rumi-eo 0.16.0: it reads our files, we read its files.

It is installed once, in a virtual environment of its own inside pytest's cache,
and used as a black box by small scripts in its own process; it, too, is imported
as ``rumi``. Its limits: square tiles, whole images where a sample has fewer than
8 bits, no complex integers or complex128, no 1-bit samples.
"""

import itertools
import json
import os
import subprocess
import sys
import threading
import venv
from pathlib import Path

import numpy as np
import oracle
import pytest

import rumi

VERSION = "0.16.0"
PACKAGES = (f"rumi-eo[write]=={VERSION}", "ml_dtypes")

# Runs over there. NumPy takes only the plain types from DLPack, so the memory that
# its arrays share is read by DLPack's own layout: samples of whole bytes, no strides.
PROGRAM = """
import ctypes, json, sys
import ml_dtypes
import numpy as np
import rumi

class Tensor(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

def dtype_named(name):
    return np.dtype(getattr(ml_dtypes, name, None) or name)

def read(job):
    header = bytes.fromhex(job["blob"]) if job["blob"] else None
    window = {key: tuple(job[key]) for key in "byx" if job.get(key)}
    array = rumi.read(job["source"], header, framework=None, num_threads=1, **window)
    capsule = array.__dlpack__(max_version=(1, 0))
    tensor = Tensor.from_address(pointer(capsule, b"dltensor_versioned"))
    shape = tensor.shape[: tensor.ndim]
    strides = [int(np.prod(shape[axis + 1 :])) for axis in range(tensor.ndim)]
    assert not tensor.strides or tensor.strides[: tensor.ndim] == strides
    size = int(np.prod(shape)) * max(1, tensor.bits // 8)
    with open(job["out"], "wb") as file:
        file.write(ctypes.string_at(tensor.data + tensor.offset, size))
    return {"type": [tensor.code, tensor.bits], "shape": shape}

def describe(job):
    header = rumi.RumiHeader.from_path(job["source"])
    blob = rumi.RumiHeader(bytes.fromhex(job["blob"]))
    return {"file": header.to_dict(), "blob": blob.to_dict()}

def write(job):
    import openzl.ext as zl
    data = np.load(job["values"])
    dtype = dtype_named(job["dtype"])
    array = data.view(dtype)[..., 0]
    table = rumi.frames(array, job["tile"], unit=job["unit"])
    compressor = zl.Compressor()
    compressor.select_starting_graph(zl.graphs.Zstd()(compressor))
    context = zl.CCtx()
    context.ref_compressor(compressor)
    context.set_parameter(zl.CParam.StickyParameters, 1)
    context.set_parameter(zl.CParam.FormatVersion, 24)
    numbers = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize]
    given = job.get("frames")
    for number, frame in enumerate(table):
        if given:
            frame.compressed = bytes.fromhex(given[number])
            continue
        samples = np.ascontiguousarray(frame.data).reshape(-1).view(numbers)
        frame.compressed = context.compress([zl.Input(zl.Type.Numeric, samples)])
    path, header = rumi.write(
        job["out"], table, crs=job["crs"], transform=job["transform"], pixel_is_point=job["point"]
    )
    return {"blob": bytes(header).hex()}

for line in sys.stdin:
    answers = []
    for job in json.loads(line):
        try:
            answers.append({"read": read, "describe": describe, "write": write}[job["do"]](job))
        except Exception as error:
            answers.append({"error": f"{type(error).__name__}: {error}"})
    print(json.dumps(answers), flush=True)
"""


def install(folder):
    """Make the virtual environment; return its interpreter."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if (folder / "complete").is_file() and python.exists():
        return python
    venv.create(folder, with_pip=True, clear=True)
    result = subprocess.run(
        [python, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if result.returncode:
        raise OSError(result.stderr.strip().splitlines()[-1] if result.stderr else "pip failed")
    (folder / "complete").write_text(VERSION)
    return python


@pytest.fixture(scope="session")
def other(request, tmp_path_factory):
    """Run jobs in the other implementation's process, which lives as long as the tests."""
    cache = getattr(request.config, "cache", None)
    if cache is None:
        pytest.skip("INTEROP NOT TESTED: pytest runs without its cache, where rumi-eo would go")
    name = f"rumi-eo-{VERSION}-py{sys.version_info.major}{sys.version_info.minor}"
    try:
        python = install(Path(cache.mkdir(name)))
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"INTEROP NOT TESTED: rumi-eo {VERSION} cannot be installed: {error}")
    errors = tmp_path_factory.mktemp("interop") / "stderr.txt"
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            # Isolated from the folder and the path that this rumi comes from.
            [python, "-I", "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):

        def run(jobs):
            watchdog = threading.Timer(120, process.kill)
            watchdog.start()
            try:
                process.stdin.write(json.dumps(jobs) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            finally:
                watchdog.cancel()
            assert line, f"the other process ended: {errors.read_text()}"
            answers = json.loads(line)
            assert [answer["error"] for answer in answers if "error" in answer] == []
            return answers

        yield run
        process.stdin.close()


# What it has no form for.
UNKNOWN = {(1, 1), (5, 32), (5, 64), (6, 32), (6, 128)}
KNOWN = [pair for pair in oracle.DTYPES if pair not in UNKNOWN]
UTM = (10.0, 0.0, 300000.0, 0.0, -10.0, 8500000.0)
GEOGRAPHIC = (0.01, 0.0, -77.0, 0.0, -0.01, -12.0)
PLACES = {
    "none": {},
    "projected": {"crs": 32718, "transform": UTM},
    "geographic": {"crs": 4326, "transform": GEOGRAPHIC},
    "point": {"crs": 32718, "transform": UTM, "raster_type": "point"},
    "point without crs": {"raster_type": "point"},
    "rotated": {"crs": 3857, "transform": (1.0, 0.5, 100.0, 0.25, -1.0, 200.0)},
}


# DLPack's codes of sample types.
CODES = {1: 1, 2: 0, 3: 2, 6: 5, 100: 10, 101: 12, 102: 4, 103: 14, 104: 15, 105: 16, 106: 17}


def check_read(answer, path, expected):
    """Compare what the other one read, bit for bit."""
    sample_format, bits = oracle.pair_of(expected.dtype)
    assert answer["type"] == [CODES[sample_format], bits]
    assert tuple(answer["shape"]) == expected.shape
    assert path.read_bytes() == oracle.raw(expected)


def read_job(source, out, blob=b"", **window):
    return {"do": "read", "source": str(source), "out": str(out), "blob": blob.hex(), **window}


def write_job(out, values, tile, unit, place):
    """It takes a transform as it is stored, so of pixel centres for PixelIsPoint."""
    point = place.get("raster_type") == "point"
    transform = place.get("transform")
    if transform is not None and point:
        a, b, c, d, e, f = transform
        transform = (a, b, c + a / 2 + b / 2, d, e, f + d / 2 + e / 2)
    samples = Path(f"{out}.npy")
    np.save(samples, np.ascontiguousarray(values)[..., None].view(np.uint8))
    return {
        "do": "write",
        "out": str(out),
        "values": str(samples),
        "dtype": values.dtype.name,
        "tile": tile,
        "unit": unit,
        "crs": place.get("crs"),
        "transform": transform,
        "point": point,
    }


def test_it_reads_our_files(other, tmp_path):
    """Every encoding it knows, in tiles and cells, with our blob and without."""
    cases, jobs = [], []
    for pair in KNOWN:
        for unit in ("tile", "cell"):
            values = oracle.random_samples(pair, (3, 25, 40), seed=pair[1])
            path = tmp_path / f"{pair[0]}-{pair[1]}-{unit}.rumi"
            header = rumi.write(path, values, tile_size=16, frame_unit=unit)
            for blob in (b"", bytes(header)):
                out = tmp_path / f"{len(jobs)}.raw"
                jobs.append(read_job(path, out, blob))
                cases.append((out, values))
    for answer, (out, values) in zip(other(jobs), cases, strict=True):
        check_read(answer, out, values)


def test_it_reads_windows_and_bands_of_our_files(other, tmp_path):
    cases, jobs = [], []
    for pair in (pair for pair in KNOWN if pair[1] >= 8):
        for unit in ("tile", "cell"):
            values = oracle.random_samples(pair, (3, 25, 40))
            path = tmp_path / f"{pair[0]}-{pair[1]}-{unit}.rumi"
            header = rumi.write(path, values, tile_size=16, frame_unit=unit)
            out = tmp_path / f"{len(jobs)}.raw"
            jobs.append(read_job(path, out, bytes(header), b=[1, 3], y=[7, 20], x=[15, 40]))
            cases.append((out, values[1:3, 7:20, 15:40]))
    for answer, (out, values) in zip(other(jobs), cases, strict=True):
        check_read(answer, out, values)


@pytest.mark.parametrize("place", PLACES)
def test_it_reads_our_files_wherever_they_lie(other, tmp_path, place):
    """Georeferenced or not; and it sees in our file what our blob says."""
    values = oracle.ramp(2, 40, 50, np.uint16)
    jobs = []
    for number, unit in enumerate(("tile", "cell")):
        path = tmp_path / f"{unit}.rumi"
        header = rumi.write(path, values, tile_size=32, frame_unit=unit, **PLACES[place])
        jobs.append(read_job(path, tmp_path / f"{number}.raw"))
        jobs.append({"do": "describe", "source": str(path), "blob": bytes(header).hex()})
    answers = other(jobs)
    for number in range(2):
        check_read(answers[2 * number], tmp_path / f"{number}.raw", values)
        described = answers[2 * number + 1]
        assert described["file"] == described["blob"]


SHAPES = [
    ((1, 1, 1), 512),
    ((1, 16, 16), 16),
    ((1, 16, 17), 16),
    ((3, 9, 16), 16),
    ((4, 33, 17), 16),
    ((5, 33, 17), 16),
    ((6, 8, 8), 8),
    ((2, 64, 64), 4),
    ((1, 1, 300), 64),
    ((300, 2, 2), 2),
]


@pytest.mark.parametrize("unit", ["tile", "cell"])
def test_its_blob_of_our_file_is_ours(other, tmp_path, unit):
    """At every border between inline and outside values, and with one frame and many."""
    jobs = []
    for number, (shape, tile) in enumerate(SHAPES):
        path = tmp_path / f"{number}.rumi"
        values = oracle.ramp(*shape, dtype=np.int32)
        header = rumi.write(path, values, tile_size=tile, frame_unit=unit)
        jobs.append({"do": "describe", "source": str(path), "blob": bytes(header).hex()})
        # Reading with our blob locates every frame with it.
        jobs.append(read_job(path, tmp_path / f"{number}.raw", bytes(header)))
    answers = other(jobs)
    for number, (shape, tile) in enumerate(SHAPES):
        described = answers[2 * number]
        assert described["file"] == described["blob"]
        fields = oracle.fields_of(shape, (tile, tile), unit=0 if unit == "tile" else 1)
        assert described["file"]["shape"] == list(shape)
        assert described["file"]["frames"] == oracle.frame_count(fields)
        assert described["file"]["base_frame_offset"] == oracle.base_offset(
            shape[0], oracle.frame_count(fields)
        )
        check_read(
            answers[2 * number + 1],
            tmp_path / f"{number}.raw",
            oracle.ramp(*shape, dtype=np.int32),
        )


@pytest.mark.parametrize(
    "codec", ["auto", "store", "delta>zigzag>lanes>fse", "tokenize>lanes>zstd"]
)
def test_it_reads_what_every_codec_wrote(other, tmp_path, codec):
    jobs, cases = [], []
    for dtype in (np.uint8, np.int16, np.float32, np.uint64):
        values = (oracle.ramp(2, 50, 70) % 120).astype(dtype)
        path = tmp_path / f"{np.dtype(dtype).name}.rumi"
        rumi.write(path, values, tile_size=32, codec=codec)
        jobs.append(read_job(path, tmp_path / f"{len(jobs)}.raw"))
        cases.append((tmp_path / f"{len(cases)}.raw", values))
    for answer, (out, values) in zip(other(jobs), cases, strict=True):
        check_read(answer, out, values)


@pytest.mark.parametrize("place", PLACES)
def test_its_writer_fed_with_our_frames_gives_our_file(other, tmp_path, place):
    """Byte for byte, and its blob is ours: index, placement, georeferencing, packing."""
    jobs, expected = [], []
    for number, (shape, tile) in enumerate(SHAPES):
        for unit in ("tile", "cell"):
            values = oracle.ramp(*shape, dtype=np.uint16)
            path = tmp_path / f"{number}-{unit}.rumi"
            options = {"tile_size": tile, "frame_unit": unit}
            header = rumi.write(path, values, codec="zstd", **options, **PLACES[place])
            data = path.read_bytes()
            bounds = [*header.offsets.tolist(), len(data)]
            job = write_job(path.with_suffix(".theirs"), values, tile, unit, PLACES[place])
            job["frames"] = [data[a:b].hex() for a, b in itertools.pairwise(bounds)]
            jobs.append(job)
            expected.append((data, bytes(header)))
    for answer, job, (data, blob) in zip(other(jobs), jobs, expected, strict=True):
        assert Path(job["out"]).read_bytes() == data
        theirs = bytes.fromhex(answer["blob"])
        if theirs != blob:
            # With one band a cell is a tile: we record tile, it what it was told.
            assert rumi.Header(theirs).shape[0] == 1
            assert theirs[:22] + theirs[23:] == blob[:22] + blob[23:]


def test_we_read_its_files(other, tmp_path):
    """All encodings it writes, tile and cell: its samples, its blob, its file again."""
    cases, jobs = [], []
    for pair in KNOWN:
        for unit in ("tile", "cell"):
            values = oracle.random_samples(pair, (3, 25, 40), seed=7)
            path = tmp_path / f"{pair[0]}-{pair[1]}-{unit}.rumi"
            jobs.append(write_job(path, values, 16, unit, {}))
            cases.append((path, values))
    for answer, (path, values) in zip(other(jobs), cases, strict=True):
        blob = bytes.fromhex(answer["blob"])
        assert bytes(rumi.index(path)) == blob
        for header in (None, blob):
            assert oracle.same_bits(rumi.read(path, header), values)
            found = rumi.read(path, header, bands=[2, 0], window=(7, 15, 13, 25))
            assert oracle.same_bits(found, values[[2, 0], 7:20, 15:40])


@pytest.mark.parametrize("place", PLACES)
def test_we_find_its_files_where_they_lie(other, tmp_path, place):
    values = oracle.ramp(2, 40, 50, np.uint16)
    place = PLACES[place]
    (answer,) = other([write_job(tmp_path / "a.rumi", values, 32, "tile", place)])
    image = rumi.open(tmp_path / "a.rumi")
    assert bytes(image.header).hex() == answer["blob"]
    assert image.epsg == place.get("crs")
    assert image.transform == place.get("transform")
    assert image.raster_type == place.get("raster_type", "area")
    assert oracle.same_bits(image.read(), values)
    # Its file again, from its frames and our index.
    rumi.write(tmp_path / "b.rumi", values, tile_size=32, **place)
    base = image.header.base_frame_offset
    theirs, ours = (
        (tmp_path / name).read_bytes()[base - 160 : base] for name in ("a.rumi", "b.rumi")
    )
    assert theirs == ours
