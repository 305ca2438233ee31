"""The 28 sample encodings and the NumPy types that hold them."""

import ml_dtypes
import numpy as np
import oracle
import pytest

from rumi import Header, UnsupportedError, encodings
from rumi.encodings import ENCODINGS, Encoding, from_dtype, from_pair

PAIRS = pytest.mark.parametrize("pair", oracle.DTYPES, ids=oracle.PAIR_IDS)


def test_there_are_28():
    assert len(ENCODINGS) == 28
    assert {(e.sample_format, e.bits_per_sample) for e in ENCODINGS} == oracle.DTYPES.keys()
    assert len({e.name for e in ENCODINGS}) == 28
    assert len({e.dtype_name for e in ENCODINGS}) == 28
    assert len({e.dtype for e in ENCODINGS}) == 28


@PAIRS
def test_both_ways(pair):
    encoding = from_pair(*pair)
    dtype = oracle.DTYPES[pair]
    assert (encoding.sample_format, encoding.bits_per_sample) == pair
    assert encoding.dtype == dtype
    assert encoding.dtype.isnative
    assert encoding.itemsize == dtype.itemsize == max(1, pair[1] // 8)
    assert encoding.element_width == min(8, dtype.itemsize)
    assert from_dtype(dtype) is encoding
    assert from_pair(*map(np.uint8, pair)) is encoding


@PAIRS
def test_byte_order_does_not_matter(pair):
    dtype = oracle.DTYPES[pair]
    for order in "<>=|":
        assert from_dtype(dtype.newbyteorder(order)) is from_pair(*pair)


@PAIRS
def test_the_words_of_the_specification(pair):
    words = from_pair(*pair).description
    kinds = {1: "unsigned", 2: "signed", 3: "IEEE", 5: "complex signed", 6: "complex IEEE"}
    if pair == (1, 1):
        assert words == "1-bit binary"
    else:
        assert words.startswith(kinds.get(pair[0], ("float", "bfloat16")))
    components = {5: pair[1] // 2, 6: pair[1] // 2}.get(pair[0], pair[1])
    if pair[0] < 100:
        assert f"{components}-bit" in words


@pytest.mark.parametrize(
    ("given", "pair"),
    [
        (bool, (1, 1)),
        ("?", (1, 1)),
        ("u1", (1, 8)),
        ("uint16", (1, 16)),
        (np.uint32, (1, 32)),
        ("<u8", (1, 64)),
        (">i2", (2, 16)),
        (int, (2, 64)),
        (np.longlong, (2, 64)),
        (np.ulonglong, (1, 64)),
        (np.intc, (2, 32)),
        (float, (3, 64)),
        ("f2", (3, 16)),
        (complex, (6, 128)),
        (">c8", (6, 64)),
        (ml_dtypes.bfloat16, (102, 16)),
        (ml_dtypes.int4, (2, 4)),
        ([("real", ">i2"), ("imag", ">i2")], (5, 32)),
        ([("real", "<i4"), ("imag", "<i4")], (5, 64)),
        ([("real", "f2"), ("imag", "f2")], (6, 32)),
        ([("real", "<i2"), ("imag", ">i2")], (5, 32)),
    ],
    ids=str,
)
def test_names_of_a_type(given, pair):
    assert from_dtype(given) is from_pair(*pair)


@pytest.mark.parametrize(
    "dtype",
    [
        object,
        str,
        bytes,
        "S4",
        "U3",
        "V4",
        "V8",
        "M8[s]",
        "datetime64[D]",
        "m8[ms]",
        np.longdouble,
        np.clongdouble,
        np.void,
        ml_dtypes.float8_e4m3b11fnuz,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2fnuz,
        ml_dtypes.float8_e3m4,
        ml_dtypes.float8_e4m3,
        [("real", "f4"), ("imag", "f4")],
        [("real", "f8"), ("imag", "f8")],
        [("real", "i1"), ("imag", "i1")],
        [("real", "i8"), ("imag", "i8")],
        [("real", "u2"), ("imag", "u2")],
        [("real", "i2"), ("imag", "i4")],
        [("imag", "i2"), ("real", "i2")],
        [("re", "i2"), ("im", "i2")],
        [("real", "i2")],
        [("real", "i2"), ("imag", "i2"), ("flag", "i2")],
        {"names": ["real", "imag"], "formats": ["i2", "i2"], "offsets": [0, 4]},
        {"names": ["real", "imag"], "formats": ["i2", "i2"], "offsets": [2, 0]},
        {"names": ["real", "imag"], "formats": ["i2", "i2"], "itemsize": 8},
        {"names": ["real", "imag"], "formats": ["i2", "i2"], "offsets": [0, 0]},
        [("real", "i2", (1,)), ("imag", "i2", (1,))],
        ("i2", (2,)),
    ],
    ids=str,
)
def test_types_that_no_encoding_holds(dtype):
    with pytest.raises(UnsupportedError, match="uint16") as caught:
        from_dtype(dtype)
    assert "\n" not in str(caught.value)
    assert str(np.dtype(dtype)) in str(caught.value)


def test_what_is_no_type():
    with pytest.raises(TypeError):
        from_dtype("no such type")


def test_every_pair_that_is_not_listed():
    for sample_format in range(256):
        for bits in range(256):
            if (sample_format, bits) in oracle.DTYPES:
                continue
            with pytest.raises(UnsupportedError) as caught:
                from_pair(sample_format, bits)
            for part in (f"sample_format {sample_format}", f"bits_per_sample {bits}"):
                assert part in str(caught.value)
    for pair in ((-1, 8), (1, 2**20), (1, None), ("1", 8)):
        with pytest.raises(UnsupportedError):
            from_pair(*pair)


def test_an_encoding_is_a_value():
    encoding = from_pair(1, 16)
    with pytest.raises(AttributeError):
        encoding.itemsize = 4
    assert encoding == Encoding(1, 16, encoding.name, encoding.dtype_name, 2, encoding.description)
    assert hash(encoding) == hash(from_pair(1, 16))
    assert sorted(encodings.__all__) == list(encodings.__all__)


def test_without_ml_dtypes():
    """Plain types work; the others say what to install, in a header's every use but its dtype."""
    blobs = [
        oracle.blob_of(oracle.fields_of((1, 8, 8), (8, 8), pair)).hex()
        for pair in ((102, 16), (1, 4), (1, 16), (5, 32), (1, 1))
    ]
    oracle.run_python(
        """
import sys
sys.modules["ml_dtypes"] = None
import rumi
from rumi.encodings import ENCODINGS, from_dtype
*others, small, pair, binary = [rumi.Header(bytes.fromhex(text)) for text in sys.argv[1:]]
for header in others:
    assert header.frame_count == 1 and header.encoding.itemsize and repr(header)
    try:
        header.dtype
    except rumi.UnsupportedError as error:
        assert "ml_dtypes" in str(error) and "pip install" in str(error)
    else:
        raise SystemExit("a type without ml_dtypes")
assert [str(header.dtype) for header in (small, binary)] == ["uint16", "bool"]
assert pair.dtype.names == ("real", "imag")
assert from_dtype("float32").bits_per_sample == 32
assert sum(encoding.dtype_name.startswith(("uint", "int", "float", "complex", "bool"))
           for encoding in ENCODINGS)
""",
        *blobs,
    )


def test_ml_dtypes_is_imported_when_used():
    oracle.run_python(
        """
import sys
import rumi
from rumi.encodings import from_pair
from_pair(1, 16).dtype, from_pair(5, 32).dtype
assert "ml_dtypes" not in sys.modules
from_pair(106, 4).dtype
assert "ml_dtypes" in sys.modules
"""
    )


@PAIRS
def test_a_header_knows_its_encoding(pair):
    header = Header(oracle.blob_of(oracle.fields_of((1, 8, 8), (8, 8), pair)))
    assert header.encoding is from_pair(*pair)
    assert header.dtype == oracle.DTYPES[pair]
