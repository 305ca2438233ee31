"""What notebooks show of images, headers, cubes and catalogs."""

from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import rumi
from rumi import display

PLACE = {"crs": 32618, "transform": (30.0, 0.0, 500_000.0, 0.0, -30.0, 4_600_000.0)}
VOID = {"br", "hr", "img"}


class Checker(HTMLParser):
    """Collects the text, and makes sure that every tag is closed in its turn."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.tags = []
        self.text = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def checked(html):
    """The text of HTML that is well-formed and harmless."""
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    assert not {"script", "style", "link", "iframe", "img"} & set(checker.tags)
    return " ".join(checker.text)


@pytest.fixture
def path(tmp_path):
    name = str(tmp_path / "a.rumi")
    rumi.write(name, np.zeros((3, 40, 50), np.uint16), tile_size=(16, 20), **PLACE)
    return name


def test_header(path):
    text = checked(rumi.index(path)._repr_html_())
    for words in ("rumi.Header", "3 bands x 40 x 50", "uint16", "27 tile frames of 16 x 20"):
        assert words in text


def test_image_and_its_place(path):
    text = checked(rumi.open(path)._repr_html_())
    for words in (path, "EPSG:32618", "(30.0, 0.0, 500000.0, 0.0, -30.0, 4600000.0)", "area"):
        assert words in text
    bare = path + ".bare"
    rumi.write(bare, np.zeros((1, 2, 2), np.uint8), raster_type="point")
    text = checked(rumi.open(bare)._repr_html_())
    assert "CRS none" in text
    assert "point" in text


def test_nothing_is_read(path, tmp_path):
    header = rumi.index(path)
    text = checked(rumi.open(tmp_path / "none.rumi", header)._repr_html_())
    assert "not read yet" in text


def test_cube(path):
    text = checked(rumi.Cube([path] * 7)._repr_html_())
    for words in ("7 images x 3 bands x 40 x 50", "EPSG:32618", "and 2 more"):
        assert words in text


def test_catalog():
    html = display.catalog_html(
        "scenes.parquet", {"rows": 1_234_567, "CRS": None}, {"path": "string", "header": "binary"}
    )
    text = checked(html)
    for words in ("scenes.parquet", "1,234,567", "2 columns", "header binary"):
        assert words in text
    assert "columns" not in checked(display.catalog_html("scenes.parquet", {}, {}))


EVIL = '<script>alert("1")</script>&amp;\'.rumi'


def test_names_are_escaped(path):
    header = rumi.index(path)
    for html in (
        display.image_html(EVIL, header, None),
        display.cube_html([EVIL], header, None),
        display.catalog_html(EVIL, {EVIL: EVIL}, {EVIL: EVIL}),
    ):
        assert EVIL in checked(html)
        assert EVIL not in html


@pytest.mark.parametrize(
    ("shape", "tile"),
    [((1, 1, 1), 512), ((2, 100_000, 3), 64), ((1, 3, 100_000), 1), ((4, 5000, 7000), 16)],
)
@pytest.mark.parametrize("count", [1, 3, 1000])
def test_the_drawing_is_small_whatever_the_image(shape, tile, count):
    from rumi.encodings import from_dtype

    down, across = -(-shape[1] // tile), -(-shape[2] // tile)
    counts = np.full(down * across, 100)
    header = rumi.Header.build(shape, (tile, tile), from_dtype("u1"), "cell", counts)
    html = display.cube_html(["a"] * count, header, None)
    checked(html)
    assert len(html) < 4000
    drawing = ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])
    assert int(drawing.get("width")) <= 160
    assert int(drawing.get("height")) <= 160


def test_the_drawing_shows_the_grid(path):
    html = rumi.index(path)._repr_html_()
    drawing = ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])
    (grid,) = drawing.iter("{http://www.w3.org/2000/svg}path")
    # Three columns and three rows have two borders each.
    assert (grid.get("d").count("v"), grid.get("d").count("h")) == (2, 2)
