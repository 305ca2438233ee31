"""Packing and unpacking of frame byte counts against one big integer."""

import itertools

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumi._core import pack, unpack

# Counts of frames whose packed regions end on, before and after byte and word borders.
SIZES = (2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130)


def unpacked(packed, smallest, bits, count):
    out = np.full(count, 0xDEADBEEF, dtype=np.uint32)
    unpack(packed, smallest, bits, out)
    return out.tolist()


def counts_of_width(bits, size, smallest=1, seed=0):
    """Counts whose residuals need exactly `bits` bits."""
    rng = np.random.default_rng(seed + 100 * bits + size)
    largest = min(2**bits - 1, 2**32 - 1 - smallest)
    residuals = [int(value) for value in rng.integers(0, largest, size=size, endpoint=True)]
    residuals[0], residuals[-1] = largest, 0
    return [smallest + residual for residual in residuals]


@pytest.mark.parametrize("bits", range(33))
def test_every_width_packs_as_the_big_integer(bits):
    for size in SIZES:
        counts = counts_of_width(bits, size)
        expected = oracle.pack(counts)
        assert expected[:2] == (1, bits)
        assert pack(np.array(counts, dtype=np.uint32)) == expected
        assert unpacked(expected[2], 1, bits, size) == counts


@pytest.mark.parametrize("bits", range(33))
def test_unpack_of_bits_nobody_chose(bits):
    rng = np.random.default_rng(bits)
    for size in (1, *SIZES):
        packed = rng.bytes(-(-size * bits // 8))
        expected = oracle.unpack(packed, 0, bits, size)
        assert unpacked(packed, 0, bits, size) == expected


@given(st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=100))
def test_any_counts_survive(counts):
    smallest, bits, packed = pack(np.array(counts, dtype=np.uint32))
    assert (smallest, bits, packed) == oracle.pack(counts)
    assert unpacked(packed, smallest, bits, len(counts)) == counts


@given(st.integers(1, 2**32 - 1), st.integers(1, 300))
def test_equal_counts_take_no_bytes(count, size):
    assert pack(np.full(size, count, dtype=np.uint32)) == (count, 0, b"")
    assert unpacked(b"", count, 0, size) == [count] * size


def test_known_bytes():
    """By hand: residuals 5, 0, 7, 2 of 3 bits are 101, 000, 111, 010 from the low end."""
    counts = np.array([15, 10, 17, 12], dtype=np.uint32)
    assert pack(counts) == (10, 3, bytes([0b11000101, 0b0101]))


def test_extremes():
    counts = [1, 2**32 - 1, 1, 2**32 - 1, 2**31]
    smallest, bits, packed = pack(np.array(counts, dtype=np.uint32))
    assert (smallest, bits, len(packed)) == (1, 32, 20)
    assert unpacked(packed, smallest, bits, 5) == counts


@pytest.mark.parametrize("spare", range(1, 8))
def test_unused_bits_are_zero(spare):
    """With 1-bit residuals N frames leave -N modulo 8 bits of the last byte unused."""
    size = 64 - spare
    _, bits, packed = pack(np.array([2] * (size - 1) + [1], dtype=np.uint32))
    assert bits == 1
    assert packed[-1] >> (8 - spare) == 0
    assert len(packed) == 8


def test_bytes_around_the_region_change_nothing():
    counts = counts_of_width(13, 37)
    _, bits, packed = oracle.pack(counts)
    for before, poison in itertools.product(range(9), (b"\0", b"\xff", b"\xa5")):
        data = memoryview(poison * before + packed + poison * 16)
        assert unpacked(data[before : before + len(packed)], 1, bits, 37) == counts
        # A longer region than the counts need is allowed, and not looked at.
        assert unpacked(data[before:], 1, bits, 37) == counts


def test_no_read_outside_the_region():
    """The region ends where a page begins that kills whoever touches it."""
    oracle.run_python(
        """
import ctypes, mmap
import numpy as np
import oracle
from rumi._core import pack, unpack

page = mmap.PAGESIZE
memory = mmap.mmap(-1, 3 * page)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
assert libc.mprotect(start, page, 0) == 0 and libc.mprotect(start + 2 * page, page, 0) == 0
view = memoryview(memory)
for bits in range(33):
    for size in range(1, 70):
        counts = [1 + (2**bits - 1) * (i % 3 == 1) for i in range(size)]
        counts = [min(count, 2**32 - 1) for count in counts]
        smallest, width, packed = oracle.pack(counts)
        out = np.empty(size, np.uint32)
        for at in (page, 2 * page - len(packed)):
            region = view[at : at + len(packed)]
            region[:] = packed
            unpack(region, smallest, width, out)
            assert out.tolist() == counts, (bits, size)
        # Counts are read, too.
        numbers = view[2 * page - 4 * size : 2 * page].cast("I")
        numbers[:] = memoryview(np.array(counts, np.uint32))
        assert pack(numbers) == (smallest, width, packed)
print("ok")
"""
    )


def test_pack_refuses():
    with pytest.raises(ValueError, match="at least one frame"):
        pack(np.empty(0, dtype=np.uint32))
    with pytest.raises(ValueError, match="greater than zero"):
        pack(np.array([3, 0, 5], dtype=np.uint32))
    for wrong in (np.array([1, 2]), np.array([1.0], dtype=np.float32), np.ones((2, 2), np.uint32)):
        with pytest.raises(ValueError, match=r"[Bb]uffer"):
            pack(wrong)
    with pytest.raises(ValueError, match="contiguous"):
        pack(np.ones(8, dtype=np.uint32)[::2])
    with pytest.raises(TypeError):
        pack(None)


def test_unpack_refuses():
    out = np.zeros(9, dtype=np.uint32)
    for bits in range(1, 33):
        need = -(-9 * bits // 8)
        with pytest.raises(ValueError, match=f"need {need} bytes, found {need - 1}"):
            unpack(bytes(need - 1), 1, bits, out)
    for bits in (-1, 33, 64):
        with pytest.raises(ValueError, match="0 to 32"):
            unpack(bytes(1000), 1, bits, out)
    assert out.tolist() == [0] * 9
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        unpack(bytes(1000), 1, 3, out)
    with pytest.raises(OverflowError):
        unpack(b"", -1, 0, np.zeros(1, np.uint32))


def test_nothing_to_unpack():
    unpack(b"", 7, 5, np.empty(0, dtype=np.uint32))
