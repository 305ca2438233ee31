"""Planning: window x bands to frames and byte ranges, and one rule for what is refused."""

from types import SimpleNamespace

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rumi
from rumi import Header
from rumi._core import Plan

SHAPE, TILE = (3, 60, 100), (16, 16)
FIELDS = oracle.fields_of(SHAPE, TILE)
COUNTS = oracle.counts_for(oracle.frame_count(FIELDS))
HEADER = Header(oracle.blob_with(FIELDS, COUNTS))


def frames_of(plan):
    """(indices, offsets, sizes) of the frames of a plan."""
    arrays = np.empty((3, plan.frame_count), np.int64)
    plan.fill_frames(*arrays)
    return arrays.tolist()


@st.composite
def reads(draw):
    """Fields, byte counts, bands and a window of a small image."""
    bands = draw(st.integers(1, 4))
    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    tile = draw(st.integers(1, 45)), draw(st.integers(1, 45))
    unit = draw(st.sampled_from([0, 1]))
    fields = oracle.fields_of((bands, height, width), tile, unit=unit)
    counts = oracle.counts_for(
        oracle.frame_count(fields),
        seed=draw(st.integers(0, 99)),
        spread=draw(st.sampled_from([1, 2, 100, 2**32 - 41])),
    )
    top, left = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
    window = top, left, draw(st.integers(1, height - top)), draw(st.integers(1, width - left))
    chosen = draw(st.lists(st.integers(0, bands - 1), min_size=1, max_size=6))
    return fields, counts, chosen, window


@given(reads(), st.integers(0, 300), st.integers(1, 3000))
def test_frames_and_merged_ranges_agree_with_the_oracle(case, gap, largest):
    fields, counts, bands, window = case
    header = Header(oracle.blob_with(fields, counts))
    offsets = oracle.offsets_of(fields["samples_per_pixel"], counts)
    expected = oracle.frames_touched(fields, bands, window)
    plan = Plan(header, bands, window)
    indices, starts, sizes = frames_of(plan)
    assert indices == expected
    assert starts == [offsets[index] for index in expected]
    assert sizes == [counts[index] for index in expected]
    assert plan.shape == (len(bands), window[2], window[3])
    assert plan.nbytes == 2 * len(bands) * window[2] * window[3]
    assert (plan.row, plan.column, plan.height, plan.width) == window
    frames = list(zip(starts, sizes, strict=True))
    assert plan.ranges(gap, largest) == oracle.merged(frames, gap, largest)
    assert plan.ranges() == oracle.merged(frames, 0, 2**62)


def test_the_whole_image_by_default():
    plan = Plan(HEADER)
    assert plan.shape == SHAPE
    assert frames_of(plan)[0] == list(range(len(COUNTS)))
    assert plan.ranges() == [
        (HEADER.base_frame_offset, HEADER.file_size, 0, len(COUNTS)),
    ]


def test_a_cell_is_one_frame_whatever_the_bands():
    fields = oracle.fields_of(SHAPE, TILE, unit=1)
    header = Header(oracle.blob_with(fields, oracle.counts_for(28)))
    for bands in ([0], [2, 0], [1, 1, 1], None):
        plan = Plan(header, bands, (0, 0, 17, 17))
        assert frames_of(plan)[0] == [0, 1, 7, 8]


def test_a_frame_is_planned_once_however_often_its_band_is_asked_for():
    plan = Plan(HEADER, [1, 1, 0, 1], (0, 0, 1, 1))
    assert plan.shape == (4, 1, 1)
    assert frames_of(plan)[0] == [0, 1]


def test_merging_by_hand():
    """Frames of 10 bytes of three bands, of which the outer two are wanted."""
    fields = oracle.fields_of((3, 1, 4), (1, 1), count_min=10)
    header = Header(oracle.blob_of(fields))
    base = header.base_frame_offset
    plan = Plan(header, [0, 2], None)
    starts = [base + 10 * index for index in (0, 2, 3, 5, 6, 8, 9, 11)]
    assert frames_of(plan)[1] == starts
    assert plan.ranges(gap=0) == [
        (base, base + 10, 0, 1),
        (base + 20, base + 40, 1, 3),
        (base + 50, base + 70, 3, 5),
        (base + 80, base + 100, 5, 7),
        (base + 110, base + 120, 7, 8),
    ]
    assert plan.ranges(gap=9) == plan.ranges(gap=0)
    assert plan.ranges(gap=10) == [(base, base + 120, 0, 8)]
    assert plan.ranges(gap=10, largest=69) == [
        (base, base + 60, 0, 4),
        (base + 60, base + 120, 4, 8),
    ]
    # A frame larger than the limit stays whole.
    assert plan.ranges(gap=100, largest=1) == [
        (start, start + 10, position, position + 1) for position, start in enumerate(starts)
    ]


def test_fill_frames_wants_exact_room():
    plan = Plan(HEADER, 0, (0, 0, 1, 1))
    for size in (0, 2):
        arrays = np.empty((3, size), np.int64)
        with pytest.raises(ValueError, match="1 frames"):
            plan.fill_frames(*arrays)


# --- One rule on all routes: planner, ranges, read, image


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A file of the small image of CASES C02, with one and with three bands."""
    path = tmp_path_factory.mktemp("plan") / "a.rumi"
    values = oracle.ramp(*SHAPE)
    header = rumi.write(path, values, tile_size=TILE, codec="zstd")
    return SimpleNamespace(path=path, values=values, header=header)


def routes(image):
    """Every way to ask for bands and a window."""
    opened = rumi.open(image.path)
    return {
        "plan": lambda bands, window: Plan(image.header, bands, window),
        "ranges": image.header.ranges,
        "read": lambda bands, window: rumi.read(image.path, bands=bands, window=window),
        "read with header": lambda bands, window: rumi.read(
            image.path, image.header, bands=bands, window=window
        ),
        "read of bytes": lambda bands, window: rumi.read(
            image.path.read_bytes(), bands=bands, window=window
        ),
        "image": lambda bands, window: opened.read(bands=bands, window=window),
    }


def refused_alike(image, bands, window):
    """The one error of all routes."""
    errors = {}
    for name, call in routes(image).items():
        with pytest.raises((TypeError, ValueError, IndexError, OverflowError)) as caught:
            call(bands, window)
        errors[name] = type(caught.value), str(caught.value)
    assert len(set(errors.values())) == 1, errors
    return errors["plan"]


class Window:
    """What rasterio's windows look like from outside."""

    def __init__(self, row_off, col_off, height, width):
        self.row_off, self.col_off, self.height, self.width = row_off, col_off, height, width


def read_all(image, bands, window):
    """The one result of all routes that read."""
    results = [
        call(bands, window)
        for name, call in routes(image).items()
        if name not in ("plan", "ranges")
    ]
    for result in results[1:]:
        assert oracle.same_bits(result, results[0])
    return results[0]


@pytest.mark.parametrize(
    ("window", "shape"), [((10, 30, 10, 60), (3, 10, 60)), ((59, 99, 1, 1), (3, 1, 1))]
)
def test_windows_inside(image, window, shape):
    """C02: the first two windows, never transposed."""
    result = read_all(image, None, window)
    assert result.shape == shape
    assert np.array_equal(result, oracle.numpy_window(image.values, None, window))


@pytest.mark.parametrize(
    "window",
    [
        (55, 0, 10, 5),
        (-1, 0, 3, 2),
        (20, 0, -10, 5),
        (8643, 0, 197, 200),
        (0, 0, 61, 1),
        (0, 0, 1, 101),
        (60, 0, 1, 1),
        (0, 100, 1, 1),
        (0, 0, 0, 5),
        (0, 0, 5, 0),
        (0, -1, 1, 2),
        (2**63 - 1, 0, 2, 1),
        (0, 2**63 - 1, 1, 2),
        (1, 0, 2**63 - 1, 1),
        (0, 0, 2**70, 1),
        (2**70, 0, 1, 1),
        (-(2**70), 0, 1, 1),
        (0, 0, 1, -(2**64)),
        (np.uint64(2**64 - 1), 0, 1, 1),
        (np.int64(-(2**63)), 0, 1, 1),
    ],
    ids=str,
)
def test_windows_outside(image, window):
    """C02: one error, which names the image's size."""
    kind, text = refused_alike(image, None, window)
    assert kind is ValueError
    assert "60 x 100" in text
    for part in window:
        assert str(part) in text
    assert refused_alike(image, None, list(window)) == (kind, text)
    assert refused_alike(image, None, Window(*window)) == (kind, text)


@pytest.mark.parametrize(
    "window",
    [
        (True, 0, 1, 1),
        (0, False, 1, 1),
        (0, 0, np.True_, 1),
        (0.0, 0, 1, 1),
        (0, 0, 1, np.float64(1)),
        (0, 0, 1.5, 1),
        ("0", 0, 1, 1),
        (0, None, 1, 1),
        (0, 0, 1 + 0j, 1),
        (0, 0, 1),
        (0, 0, 1, 1, 1),
        (),
        ((0, 1), (0, 1)),
        "0011",
        b"\0\0\1\1",
        5,
        5.0,
        {"row_off": 0},
        np.zeros((2, 2), int),
        np.array([0.0, 0, 1, 1]),
        slice(0, 4),
        iter((0, 0, 1, 1)),
        object(),
        Window(0.0, 0, 1, 1),
        Window(0, True, 1, 1),
        Window(0, 0, "1", 1),
    ],
    ids=repr,
)
def test_windows_of_the_wrong_kind(image, window):
    if hasattr(window, "__next__"):
        # An iterator would be used up by the first route.
        with pytest.raises(TypeError):
            Plan(HEADER, None, window)
        return
    assert refused_alike(image, None, window)[0] is TypeError


INTEGERS = [
    int,
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.longlong,
    np.ulonglong,
]


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_of_any_width(image, kind):
    window = tuple(map(kind, (10, 30, 7, 5)))
    expected = oracle.numpy_window(image.values, [2], (10, 30, 7, 5))
    for form in (window, list(window), Window(*window)):
        assert np.array_equal(read_all(image, kind(2), form), expected)
    if kind is not int:
        array = np.array([10, 30, 7, 5], dtype=kind)
        assert np.array_equal(read_all(image, np.array([2], kind), array), expected)
        assert np.array_equal(read_all(image, np.array(2, kind), array), expected)


def test_windows_of_rasterio(image):
    rasterio = pytest.importorskip("rasterio.windows")
    window = rasterio.Window(col_off=30, row_off=10, width=60, height=10)
    expected = oracle.numpy_window(image.values, None, (10, 30, 10, 60))
    assert np.array_equal(read_all(image, None, window), expected)
    with pytest.raises(TypeError, match="float"):
        Plan(HEADER, None, rasterio.Window(0.0, 0.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="60 x 100"):
        Plan(HEADER, None, rasterio.Window(99, 0, 2, 1))


def test_windows_with_names(image):
    window = SimpleNamespace(row_off=1, col_off=2, height=3, width=4)
    expected = oracle.numpy_window(image.values, None, (1, 2, 3, 4))
    assert np.array_equal(read_all(image, None, window), expected)


@pytest.mark.parametrize("missing", ["col_off", "height", "width"])
def test_a_window_that_lacks_a_name(missing):
    parts = {"row_off": 0, "col_off": 0, "height": 1, "width": 1}
    del parts[missing]
    with pytest.raises(TypeError):
        Plan(HEADER, None, SimpleNamespace(**parts))


@pytest.mark.parametrize(
    ("bands", "expected"),
    [
        (0, [0]),
        (2, [2]),
        ([2, 0], [2, 0]),
        ((1, 1), [1, 1]),
        ([0, 1, 2, 1, 0], [0, 1, 2, 1, 0]),
        (range(3), [0, 1, 2]),
        (range(2, -1, -1), [2, 1, 0]),
        (np.uint8(2), [2]),
        (np.array([0, 2]), [0, 2]),
        (np.array([2, 2], np.uint8), [2, 2]),
        (np.array(1), [1]),
        (slice(None), [0, 1, 2]),
        (slice(1, None), [1, 2]),
        (slice(0, 2), [0, 1]),
        (slice(0, 3, 2), [0, 2]),
        (slice(None, None, -1), [2, 1, 0]),
        (slice(np.uint8(1), np.int64(3)), [1, 2]),
        (None, [0, 1, 2]),
    ],
    ids=repr,
)
def test_bands(image, bands, expected):
    """C03: order and repeats are kept."""
    window = (15, 31, 2, 2)
    result = read_all(image, bands, window)
    assert result.shape == (len(expected), 2, 2)
    assert np.array_equal(result, oracle.numpy_window(image.values, expected, window))


@pytest.mark.parametrize(
    "bands",
    [
        -1,
        3,
        [0, 3],
        [-1],
        np.int8(-1),
        np.array([0, -1]),
        slice(-1, None),
        slice(0, 4),
        slice(0, -1),
        2**63,
        2**70,
        -(2**70),
        [0, 2**64],
        np.uint64(2**64 - 1),
        slice(0, 2**70),
        slice(-(2**70), None),
    ],
    ids=repr,
)
def test_bands_outside(image, bands):
    """C03: no band is counted from the end, none is clamped."""
    kind, text = refused_alike(image, bands, None)
    assert kind is IndexError
    assert "0..2" in text or "0..3" in text


@pytest.mark.parametrize(
    "bands",
    [
        True,
        False,
        np.True_,
        0.0,
        np.float32(1),
        "0",
        b"0",
        [True],
        [0, False],
        [0.0],
        ["0"],
        [None],
        np.array([True, False, True]),
        np.array([0.0]),
        np.zeros((1, 1), int),
        [[0, 1]],
        slice(0.0, 2),
        slice(0, True),
        slice(0, 3, 1.0),
        slice(0, 3, True),
        object(),
        1j,
    ],
    ids=repr,
)
def test_bands_of_the_wrong_kind(image, bands):
    """C03: bool, float and str are no bands."""
    assert refused_alike(image, bands, None)[0] is TypeError


@pytest.mark.parametrize("bands", [[], (), np.array([], int), slice(1, 1), slice(2, 1), range(0)])
def test_no_bands(image, bands):
    kind, text = refused_alike(image, bands, None)
    assert kind is ValueError
    assert "nothing" in text


def test_a_band_slice_without_a_step():
    with pytest.raises(ValueError, match="step"):
        Plan(HEADER, slice(0, 3, 0))


def test_a_refused_window_costs_nothing():
    """The result of a refused read is never allocated."""
    fields = oracle.fields_of((1, 2**32 - 1, 2**32 - 1), (65535, 65535))
    header = Header(oracle.blob_of(fields))
    for window in ((0, 0, 2**32, 2**32), (2**31, 2**31, 2**31, 2**32 - 1)):
        with pytest.raises(ValueError, match="4294967295 x 4294967295"):
            Plan(header, None, window)


def test_a_plan_of_more_frames_than_memory_is_refused():
    fields = oracle.fields_of((1, 2**30, 2**29), (1, 1), count_min=1)
    header = Header(oracle.blob_of(fields))
    with pytest.raises(MemoryError, match="smaller windows"):
        Plan(header)


def test_plans_keep_their_header_alive():
    plan = Plan(Header(oracle.blob_with(FIELDS, COUNTS)), [1], (0, 0, 20, 20))
    for _ in range(3):
        Header(oracle.blob_with(FIELDS, COUNTS))
    assert frames_of(plan)[0] == [1, 4, 22, 25]
    assert plan.header == HEADER


@pytest.mark.parametrize("bands", [{0, 1}, {0: 1}, frozenset((2,)), (b for b in (0, 1))])
def test_bands_without_an_order_are_refused(bands):
    with pytest.raises(TypeError, match="band"):
        Plan(HEADER, bands, None)
