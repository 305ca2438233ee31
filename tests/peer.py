"""The other implementation, rumi-eo 0.16.0, as a process that does jobs.

It is installed once, in a virtual environment of its own inside pytest's cache,
and used as a black box by small scripts in its own process; it, too, is imported
as ``rumi``. Its limits: square tiles, whole images where a sample has fewer than
8 bits, no complex integers or complex128, no 1-bit samples.
"""

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

def index(job):
    return rumi.RumiHeader.from_path(job["source"]).to_dict()

def header(job):
    return rumi.RumiHeader(bytes.fromhex(job["blob"])).to_dict()

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

JOBS = {"read": read, "index": index, "header": header, "describe": describe, "write": write}

for line in sys.stdin:
    answers = []
    for job in json.loads(line):
        try:
            answers.append(JOBS[job["do"]](job))
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
    """Run jobs in the other implementation's process, which lives as long as the tests.

    Where `refusals` are allowed, an answer may be an error.
    """
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

        def run(jobs, refusals=False):
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
            if not refusals:
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
