"""The inspector page in a headless Chromium, with real files; what it says is what rumi says."""

import json
import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from inspector_page import (
    COUNT_READS,
    FINDINGS,
    SHOW_WINDOWS,
    drop,
    failed,
    field_values,
    findings_of,
    look,
    look_at_all,
    set_window,
    shown_ranges,
    tab_to,
    verdict,
    window_of,
)
from oracle import (
    FRAME_MAGIC,
    blob_of,
    blob_with,
    counts_for,
    fields_of,
    file_with,
    lay_out,
    tags_of,
)
from test_validation import BREAKS

import rumi
from rumi._core import Plan
from rumi._generated import constants as k
from rumi.header import Header
from rumi.validation import clauses

PAGE = Path(__file__).resolve().parents[1] / "formats" / "docs" / "inspector.html"
GOLDEN = Path(__file__).parent / "data" / "golden"
NAMES = [vector["name"] for vector in json.loads((GOLDEN / "vectors.json").read_text())]
VECTORS = PAGE.parents[1] / "vectors"

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("the inspector page is not tested: needs chromium", allow_module_level=True)
sync_api = pytest.importorskip(
    "playwright.sync_api", reason="the inspector page is not tested: needs playwright from PyPI"
)

# What needs a decoder or a PROJ database, neither of which a page has.
UNDECIDED = {"frame.declared-size", "frame.decodes", "file.epsg-registry", "file.epsg-kind"}


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Open the page; at the end, it must have asked for nothing and complained of nothing."""
    contexts, complaints, requests = [], [], []

    def open_page(width=1280, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.on("request", lambda request: requests.append(request.url))
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.add_init_script(COUNT_READS)
        page.goto(PAGE.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert set(requests) <= {PAGE.as_uri()}


@pytest.fixture
def page(open_page):
    return open_page()


# -- what the page is ------------------------------------------------------------------------


def test_the_page_is_one_small_file_with_its_licences():
    text = PAGE.read_text()
    assert len(text) < 400_000
    assert not re.search(r"""(?:src|href)\s*=\s*["']""", text)
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert "innerHTML" not in text
    assert "default-src 'none'" in text


def test_the_policy_of_the_page_lets_nothing_out(browser):
    context = browser.new_context()
    page = context.new_page()
    page.goto(PAGE.as_uri())
    refused = page.evaluate(
        """async () => {
          const refused = [];
          const note = (event) => refused.push(event.effectiveDirective);
          addEventListener('securitypolicyviolation', note);
          await fetch('http://127.0.0.1:9/').catch(() => {});
          document.body.append(Object.assign(new Image(), { src: 'http://127.0.0.1:9/' }));
          const script = document.createElement('script');
          document.body.append(Object.assign(script, { text: 'window.ran = 1' }));
          await new Promise((done) => setTimeout(done, 50));
          return [...refused, window.ran ?? 'not run'];
        }"""
    )
    context.close()
    assert {"connect-src", "img-src", "script-src-elem"} <= set(refused)
    assert "not run" in refused


# -- good files ------------------------------------------------------------------------------


def test_fields_of_file_and_blob(page):
    path = GOLDEN / "u16_cell_utm"
    look(page, f"{path}.rumi", f"{path}.blob")
    assert verdict(page) == "sound"
    header = Header(Path(f"{path}.blob").read_bytes())
    shown = field_values(page, "Header blob")
    assert shown.pop("magic") == "0x45564F4C"
    names = [name for name, *_ in k.HEADER_FIELDS[1:]]
    names += ["tiles_across", "tiles_down", "frame_count", "base_frame_offset"]
    assert shown == {name: str(getattr(header, name)) for name in names}

    shown = field_values(page, "File")
    image = rumi.open(f"{path}.rumi")
    assert shown["ImageWidth"] == str(header.image_width)
    assert shown["TileOffsets"].startswith(str(header.base_frame_offset))
    assert shown["frame_unit"] == "1"
    assert shown["CRS"] == f"EPSG:{image.epsg}"
    assert [name for _, name, _ in k.TAGS] == [name for name in shown if name[0].isupper()][:11]
    assert page.locator("[data-parser=accepts]").count() == 2


def test_clauses_are_those_of_validate(page):
    look(page, GOLDEN / "u8_1x1.rumi")
    shown = {(f["id"], f["section"], f["text"]) for f in page.evaluate(FINDINGS)}
    assert shown == {(clause.id, clause.section, clause.text) for clause in clauses()}
    assert len(page.evaluate(FINDINGS)) == len(clauses())


def test_file_and_blob_alone(page):
    look(page, None, GOLDEN / "u16_tile_utm.blob")
    assert verdict(page) == "sound"
    assert findings_of(page)["file.tags"]["reason"] == "no file was given"
    page.click("#clear")
    assert page.is_hidden("#results")
    look(page, GOLDEN / "u16_tile_utm.rumi")
    assert findings_of(page)["blob.magic"]["reason"] == "no blob was given"


def test_stale_blob(page, tmp_path):
    header = Header((GOLDEN / "u16_tile_utm.blob").read_bytes())
    sizes = header.byte_counts
    sizes[5] += 3
    stale = Header.build(header.shape, header.tile_shape, header.encoding, header.unit, sizes)
    (tmp_path / "stale.blob").write_bytes(bytes(stale))
    look(page, GOLDEN / "u16_tile_utm.rumi", tmp_path / "stale.blob")
    assert failed(page) == {"match.counts"}
    assert findings_of(page)["match.counts"]["found"] == str(sizes[5])
    # Both places are shown: what the file holds, and what a reader with the blob would fetch.
    set_window(page, (0, 0, *header.shape[1:]))
    assert shown_ranges(page)[-1][1] == header.file_size - 1
    page.select_option("#origin", "blob")
    set_window(page, (0, 0, *header.shape[1:]))
    assert shown_ranges(page)[-1][1] == header.file_size + 2


# -- agreement with rumi.validate ------------------------------------------------------------


def differences(report, shown):
    """Where the page says something else than `rumi.validate`."""
    by_id = {finding["id"]: finding for finding in shown}
    assert len(by_id) == len(shown) == len(report.findings)
    for right in report.findings:
        found = by_id[right.clause.id]
        said = tuple(found[name] for name in ("status", "expected", "found", "byte", "reason"))
        byte = "" if right.offset is None else str(right.offset)
        expected = (right.status, right.expected, right.found, byte, right.reason)
        if right.clause.id in UNDECIDED:
            said, expected = said[0], "not checked"
        if said != expected:
            yield right.clause.id, said, expected


def compare(page, cases):
    """Look at (name, file, blob) and hold what is shown against `rumi.validate`."""
    shown = look_at_all(page, [(file, blob) for _, file, blob in cases])
    different = []
    for (name, file, blob), findings in zip(cases, shown, strict=True):
        report = rumi.validate(memoryview(bytes(file)), bytes(blob), frames="headers")
        different += [(name, *difference) for difference in differences(report, findings)]
    assert different == []
    return shown


def test_a_file_for_each_clause_that_breaks_it(page):
    cases = []
    for clause, (start, change, _) in BREAKS.items():
        data, blob = start()
        change(data, blob)
        cases.append((clause, data, blob))
    assert len(cases) == len(clauses())
    compare(page, cases)


def test_golden_files(page):
    cases = [
        (name, *((GOLDEN / f"{name}.{kind}").read_bytes() for kind in ("rumi", "blob")))
        for name in NAMES
    ]
    for name, findings in zip(NAMES, compare(page, cases), strict=True):
        assert {f["id"] for f in findings if f["status"] == "failed"} == set(), name


def test_conformance_vectors(page):
    vectors, cases = [], []
    for kind in ("file", "blob"):
        for vector in json.loads((VECTORS / f"{kind}s.json").read_text())["vectors"]:
            # The page has neither a decoder nor a registry.
            if vector["verdict"] == "valid" or vector["check"] not in ("decoder", "registry"):
                main, other = bytes.fromhex(vector["hex"]), vector.get("blob")
                blob = None if other is None else bytes.fromhex(other)
                cases.append((main, blob) if kind == "file" else (None, main))
                vectors.append(vector)
    assert len(vectors) > 200
    for vector, findings in zip(vectors, look_at_all(page, cases), strict=True):
        sections = {f["section"] for f in findings if f["status"] == "failed"}
        if vector["verdict"] == "valid":
            assert sections == set(), vector["name"]
        else:
            assert vector["clause"] in sections, (vector["name"], sections)


def test_foreign_and_truncated_files(page):
    data, blob = next(iter(BREAKS.values()))[0]()
    junk = [
        b"",
        b"II",
        b"MM\0*",
        b"<html>\n</html>",
        b"\0" * 300,
        b"II+\0\x08\0\0\0" + b"\xff" * 400,
    ]
    cases = [(repr(start[:8]), start, b"short") for start in junk]
    cases += [
        (f"cut at {size}", data[:size], blob[: size % len(blob)])
        for size in range(0, len(data), 97)
    ]
    compare(page, cases)


def test_changed_files(page):
    rng = np.random.default_rng(1)
    starts = [start() for start, _, _ in BREAKS.values()]
    extremes = [
        0,
        1,
        2,
        3,
        4,
        12,
        16,
        254,
        1 << 15,
        (1 << 16) - 1,
        (1 << 32) - 1,
        (1 << 63),
        (1 << 64) - 1,
    ]
    cases = []
    for number in range(100):
        data, blob = (bytearray(part) for part in starts[number % len(starts)])
        for part, limit in ((data, 620), (blob, len(blob))):
            for _ in range(rng.integers(0, 3)):
                width = int(rng.choice([1, 2, 4, 8]))
                at = int(rng.integers(0, min(limit, len(part)) - width))
                value = (
                    extremes[rng.integers(len(extremes))]
                    if rng.random() < 0.6
                    else int(rng.integers(1 << 62))
                )
                part[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
        cases.append((number, data, blob))
    compare(page, cases)


# -- hostile and large -----------------------------------------------------------------------


def test_a_blob_that_claims_everything(page, tmp_path):
    path = tmp_path / "claims.blob"
    huge = fields_of((65535, 2**32 - 1, 2**32 - 1), (1, 1), pair=(1, 8))
    path.write_bytes(blob_of(huge))
    look(page, None, path)
    assert verdict(page) == "sound"
    assert "too many to look at" in findings_of(page)["blob.counts-width"]["reason"]
    assert "beyond 2^53" in page.inner_text("#no-grid")
    assert page.is_hidden("#grid-box")

    billions = fields_of((1, 60_000, 60_000), (1, 1), pair=(1, 8), count_min=2**31)
    path.write_bytes(blob_of(billions))
    look(page, None, path)
    set_window(page, (0, 5, 1, 2))
    base = Header(path.read_bytes()).base_frame_offset
    assert shown_ranges(page) == [(base + 5 * 2**31, base + 7 * 2**31 - 1)]
    set_window(page, (59_999, 59_999, 1, 1))
    assert "beyond 2^53" in page.inner_text("#problem")
    set_window(page, (0, 0, 60_000, 60_000))
    assert "take a smaller one" in page.inner_text("#problem")

    path.write_bytes(blob_of(billions | {"count_bits": 32}))
    look(page, None, path)
    assert "blob.size" in failed(page)
    heap = page.context.new_cdp_session(page).send("Runtime.getHeapUsage")
    assert heap["usedSize"] < 50e6


def test_offsets_beyond_53_bits(page, tmp_path):
    fields = fields_of((1, 16, 48), (16, 16), pair=(1, 8))
    data = bytearray(file_with(fields, [struct.pack("<I", FRAME_MAGIC)] * 3))
    struct.pack_into("<Q", data, k.EXTERNAL_OFFSET + 8, 2**53 + 1)
    (tmp_path / "far.rumi").write_bytes(data)
    look(page, tmp_path / "far.rumi")
    assert findings_of(page)["file.complete"]["expected"] == f"a file of {2**53 + 5} bytes"
    assert f"byte {2**53 + 1}, beyond 2^53" in page.inner_text("#no-grid")


def sparse_file(path, counts, fields):
    """A file of these frames, of which only the first bytes are stored."""
    with path.open("wb") as file:
        file.write(lay_out(tags_of(fields, counts)))
        for count in counts:
            start = file.tell()
            file.write(struct.pack("<I", FRAME_MAGIC))
            file.seek(start + count)
        file.truncate()


def test_a_sparse_file_of_two_gibibytes_is_never_read_whole(page, tmp_path):
    path = tmp_path / "large.rumi"
    fields = fields_of((1, 1024, 2048), (1024, 1024), pair=(3, 32))
    sparse_file(path, [2**30 + 5, 2**30 + 7], fields)
    assert path.stat().st_size > 2**31
    look(page, path)
    assert verdict(page) == "sound"
    reads = page.evaluate("window.reads")
    assert sum(reads) < 4096
    set_window(page, (0, 1500, 10, 10))
    start = Header(blob_with(fields, [2**30 + 5, 2**30 + 7])).offset(1)
    assert shown_ranges(page) == [(start, start + 2**30 + 6)]
    heap = page.context.new_cdp_session(page).send("Runtime.getHeapUsage")
    assert heap["usedSize"] < 50e6


def test_ninety_thousand_frames(page, tmp_path):
    fields = fields_of((1, 1200, 1200), (4, 4), pair=(1, 8))
    counts = counts_for(90_000)
    sparse_file(tmp_path / "many.rumi", counts, fields)
    header = Header(blob_with(fields, counts))
    (tmp_path / "many.blob").write_bytes(bytes(header))
    look(page, tmp_path / "many.rumi", tmp_path / "many.blob")
    assert failed(page) == set()
    unchecked = {f["id"] for f in page.evaluate(FINDINGS) if f["status"] == "not checked"}
    assert unchecked == UNDECIDED | {"file.epsg-range"}
    assert "90,000 frames" in page.inner_text("#grid-text")
    assert page.evaluate("Math.max(...window.reads)") <= 1 << 20
    window = (403, 7, 66, 1100)
    set_window(page, window)
    ranges = [(start, stop - 1) for start, stop, _, _ in Plan(header, None, window).ranges()]
    assert shown_ranges(page) == ranges
    set_window(page, (0, 0, 1200, 1200))
    assert shown_ranges(page) == [(header.base_frame_offset, header.file_size - 1)]
    assert page.get_attribute("#ranges", "data-frames") == "90000"


@pytest.mark.parametrize(("side", "status"), [(64, "passed"), (100, "not checked")])
def test_frames_far_apart_are_looked_at_one_by_one_or_not_at_all(page, tmp_path, side, status):
    fields = fields_of((1, side, side), (1, 1), pair=(1, 8))
    sparse_file(tmp_path / "apart.rumi", counts_for(side * side, smallest=60_000), fields)
    look(page, tmp_path / "apart.rumi")
    assert failed(page) == set()
    assert findings_of(page)["frame.magic"]["status"] == status
    # The two arrays, and four bytes of each frame.
    assert sum(page.evaluate("window.reads")) < 16 * side * side + 1000


def test_a_file_that_cannot_be_read(page):
    page.evaluate(
        """() => { Blob.prototype.arrayBuffer = () =>
          Promise.reject(new DOMException('it is gone', 'NotFoundError')); }"""
    )
    page.set_input_files("#file-input", str(GOLDEN / "u8_1x1.rumi"))
    page.wait_for_selector("body[data-state=error]")
    assert page.inner_text("#status") == "The file could not be read: it is gone"


def test_names_of_files_are_text(page, tmp_path):
    name = "<img src=x onerror=alert(1)>.rumi"
    shutil.copy(GOLDEN / "u8_1x1.rumi", tmp_path / name)
    look(page, tmp_path / name)
    assert name in page.inner_text("#fields .name")
    assert page.locator("img").count() == 0


# -- windows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["u16_tile_utm", "u16_cell_utm", "u8_five_bands", "u8_tile_7"])
@pytest.mark.parametrize("origin", ["file", "blob"])
def test_windows_agree_with_the_header(page, name, origin):
    look(page, GOLDEN / f"{name}.rumi", GOLDEN / f"{name}.blob")
    page.select_option("#origin", origin)
    header = Header((GOLDEN / f"{name}.blob").read_bytes())
    count, length, width = header.shape
    rng = np.random.default_rng(len(name))
    cases = []
    for _ in range(20):
        row, column = int(rng.integers(length)), int(rng.integers(width))
        height = int(rng.integers(1, min(length - row, 40) + 1))
        window = (row, column, height, int(rng.integers(1, min(width - column, 40) + 1)))
        bands = sorted(set(rng.integers(0, count, size=2).tolist()))
        cases.append((window, bands, int(rng.choice([0, 10, 2000]))))
    values = [[*window, ",".join(map(str, bands)), gap] for window, bands, gap in cases]
    shown = page.evaluate(SHOW_WINDOWS, values)
    for (window, bands, gap), (ranges, frames) in zip(cases, shown, strict=True):
        offsets, sizes = header.ranges(bands, window)
        assert frames == np.transpose([offsets, sizes]).tolist()
        plan = Plan(header, bands, window)
        assert ranges == [f"bytes={start}-{stop - 1}" for start, stop, _, _ in plan.ranges(gap)]


def test_windows_and_bands_that_are_refused(page):
    look(page, GOLDEN / "u16_tile_utm.rumi")
    header = rumi.index(GOLDEN / "u16_tile_utm.rumi")
    for window in [(0, 0, 0, 1), (0, 0, 71, 1), (69, 99, 2, 1), (0, 101, 1, 1)]:
        set_window(page, window)
        with pytest.raises(ValueError, match="window") as refused:
            header.ranges(None, window)
        assert page.inner_text("#problem") == str(refused.value)
        assert page.is_hidden("#ranges")
    for bands, text in [
        ("3", "band 3 is outside 0..2"),
        ("0-7", "band 7"),
        ("x", "zero-based"),
        ("1,", "such as"),
    ]:
        set_window(page, (0, 0, 1, 1), bands)
        assert text in page.inner_text("#problem")
    for value in ("-1", "1.5", "1e3", "", "99999999999999999999"):
        page.fill("#bands", "")
        page.fill("#row", value)
        assert "expected a whole number" in page.inner_text("#problem")
    set_window(page, (0, 0, 1, 1), "0-2")
    assert page.is_hidden("#problem")
    assert page.get_attribute("#ranges", "data-frames") == "3"


def test_the_line_of_python_reads_the_window(page):
    look(page, GOLDEN / "u16_tile_utm.rumi")
    set_window(page, (3, 4, 30, 60), "0,2")
    line = page.inner_text(".python code")
    assert line == 'rumi.read("u16_tile_utm.rumi", blob, window=(3, 4, 30, 60), bands=[0, 2])'


def test_a_window_drawn_with_the_mouse(page):
    look(page, GOLDEN / "u16_tile_utm.rumi")
    page.locator("#grid").scroll_into_view_if_needed()
    box = page.locator("#grid").bounding_box()

    def pixel(x, y):
        return int((y - box["y"]) / box["height"] * 70), int((x - box["x"]) / box["width"] * 100)

    start = round(box["x"] + 0.72 * box["width"]), round(box["y"] + 0.81 * box["height"])
    end = round(box["x"] + 0.23 * box["width"]), round(box["y"] + 0.34 * box["height"])
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=5)
    page.mouse.up()
    (bottom, right), (top, left) = pixel(*start), pixel(*end)
    assert window_of(page) == (top, left, bottom - top + 1, right - left + 1)
    assert "frame" in page.inner_text("#readout")
    page.mouse.click(box["x"] + 2, box["y"] + 2)
    assert window_of(page) == (0, 0, 32, 32)


def test_colours_brighten_with_size(page):
    look(page, GOLDEN / "u16_tile_utm.rumi")
    set_window(page, (0, 0, 1, 1))
    header = rumi.index(GOLDEN / "u16_tile_utm.rumi")
    middles = [(row, column) for row in (16, 48, 67) for column in (16, 48, 80, 98)]
    colours = page.locator("#grid").evaluate(
        """(canvas, middles) => {
          const { width, height } = canvas;
          const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
          return middles.map(([row, column]) => {
            const [x, y] = [Math.floor((column / 100) * width), Math.floor((row / 70) * height)];
            return [...data.slice(4 * (y * width + x), 4 * (y * width + x) + 3)];
          });
        }""",
        middles,
    )
    sizes = header.byte_counts[0::3]
    brightness = np.array(colours) @ [0.3, 0.6, 0.1]
    assert (np.diff(brightness[np.argsort(sizes, kind="stable")]) >= 0).all()
    assert colours[int(sizes.argmin())] == [68, 1, 84]
    assert colours[int(sizes.argmax())] == [253, 231, 37]


def test_the_band_changes_the_colours(page):
    look(page, GOLDEN / "u16_tile_utm.rumi")
    header = rumi.index(GOLDEN / "u16_tile_utm.rumi")
    pictures = set()
    for band in range(3):
        page.fill("#band", str(band))
        sizes = header.byte_counts[band::3]
        assert page.inner_text("#legend-least") == f"{sizes.min():,} bytes"
        assert page.inner_text("#legend-most") == f"{sizes.max():,} bytes"
        pictures.add(page.locator("#grid").evaluate("canvas => canvas.toDataURL()"))
    assert len(pictures) == 3


# -- keys, drops, phones -----------------------------------------------------------------------


def test_everything_by_keyboard(page):
    # From the start, since the browser is told of it later than this line says.
    page.on("filechooser", lambda chooser: chooser.set_files(GOLDEN / "u16_tile_utm.rumi"))
    tab_to(page, "#file-input")
    page.keyboard.press("Space")
    page.wait_for_selector("body[data-state=ready]")
    tab_to(page, "#grid")
    assert page.inner_text("#readout").startswith("row 0, column 0, band 0: frame 0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.inner_text("#readout").startswith("row 2, column 1, band 0: frame 27")
    page.keyboard.press("Enter")
    assert window_of(page) == (64, 32, 6, 32)
    page.keyboard.press("Home")
    page.keyboard.press("Control+End")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+ArrowUp")
    assert window_of(page) == (32, 64, 38, 36)
    tab_to(page, "#row")
    page.keyboard.type("0")
    assert window_of(page)[0] == 0
    tab_to(page, "#whole")
    page.keyboard.press("Space")
    assert window_of(page) == (0, 0, 70, 100)


def test_dropping_files(page, tmp_path):
    drop(page, GOLDEN / "u16_tile_utm.blob", GOLDEN / "u16_tile_utm.rumi")
    page.wait_for_selector("body[data-state=ready]")
    assert page.locator("#fields section").count() == 2
    assert failed(page) == set()
    drop(page, GOLDEN / "u8_1x1.blob")
    page.wait_for_selector("[data-verdict=broken]")
    assert failed(page) == {
        f"match.{name}" for name in ("image-size", "tile-size", "bands", "encoding")
    }
    drop(page, GOLDEN / "u8_1x1.rumi", GOLDEN / "u8_four_bands.rumi")
    page.wait_for_selector("body[data-state=error]")
    assert "at most one" in page.inner_text("#status")
    (tmp_path / "broken").write_bytes(b"LOVF" + bytes(30))
    page.click("#clear")
    drop(page, tmp_path / "broken")
    page.wait_for_selector("body[data-state=ready]")
    assert "blob.magic" in failed(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(open_page, tmp_path, scheme):
    page = open_page(360, 740, color_scheme=scheme, has_touch=True, is_mobile=True)
    data, blob = BREAKS["file.frame-order"][0]()
    BREAKS["file.frame-order"][1](data, blob)
    (tmp_path / ("long-name-" * 12 + ".rumi")).write_bytes(data)
    (tmp_path / "a.blob").write_bytes(blob[:-1])
    cases = [
        (tmp_path / ("long-name-" * 12 + ".rumi"), tmp_path / "a.blob"),
        (GOLDEN / "u8_five_bands.rumi", GOLDEN / "u8_five_bands.blob"),
    ]
    for file, blob_path in cases:
        look(page, file, blob_path)
        page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.locator("#grid").scroll_into_view_if_needed()
    box = page.locator("#grid").bounding_box()
    page.touchscreen.tap(box["x"] + 3, box["y"] + 3)
    height, width = rumi.index(GOLDEN / "u8_five_bands.rumi").tile_shape
    assert window_of(page) == (0, 0, height, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(open_page, scheme):
    page = open_page(color_scheme=scheme)
    look(page, GOLDEN / "u16_tile_utm.rumi", GOLDEN / "u8_1x1.blob")
    ratios = page.evaluate(
        """() => {
          const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
          const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
          const light = (colour) => numbers(colour).slice(0, 3).map((c) => linear(c / 255))
            .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
          const ground = (node) => {
            const colour = getComputedStyle(node).backgroundColor;
            return numbers(colour)[3] === 0 ? ground(node.parentElement) : colour;
          };
          const texts = 'p, td, th, dd, dt, label, button, summary, code, span';
          return [...document.querySelectorAll(texts)]
            .filter((node) => node.checkVisibility() && node.textContent.trim())
            .map((node) => [light(getComputedStyle(node).color), light(ground(node))])
            .map((pair) => pair.sort((a, b) => a - b))
            .map(([dark, bright]) => (bright + 0.05) / (dark + 0.05));
        }"""
    )
    assert len(ratios) > 100
    assert min(ratios) >= 4.5


def test_every_control_has_a_name(page):
    look(page, GOLDEN / "u16_tile_utm.rumi", GOLDEN / "u16_tile_utm.blob")
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "spinbutton", "combobox", "application", "img", "region", "form"}
    controls = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in roles
    ]
    assert len(controls) >= 10
    assert [role for role, name in controls if not name] == []
