"""Driving the inspector page: giving it files, reading what it shows."""

import base64
import re

# Counts the bytes that the page asks of its files.
COUNT_READS = """
window.reads = [];
const read = Blob.prototype.arrayBuffer;
Blob.prototype.arrayBuffer = function () { window.reads.push(this.size); return read.call(this); };
for (const name of ['text', 'stream', 'bytes']) {
  Blob.prototype[name] = () => { throw new Error(`the page calls ${name}`); };
}
window.FileReader = undefined;
"""

FINDINGS = """() => [...document.querySelectorAll('.finding')].map((item) => {
  const value = (name) => item.querySelector(`[data-value="${name}"]`)?.textContent ?? '';
  return {
    id: item.dataset.clause,
    status: item.dataset.status,
    section: item.querySelector('.origin').textContent.split(' · ')[1],
    text: item.querySelector('.clause').lastChild.textContent,
    reason: item.querySelector('.reason')?.textContent ?? '',
    expected: value('expected'),
    found: value('found'),
    byte: value('byte'),
  };
})"""

# Gives the page one pair of files after another, by its own inputs.
LOOK_AT_ALL = (
    """async (cases) => {
  const findings = """
    + FINDINGS
    + """;
  const settled = async () => {
    while (document.body.dataset.state === 'reading') {
      await new Promise((done) => setTimeout(done, 0));
    }
  };
  const give = async (kind, text) => {
    const files = new DataTransfer();
    files.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], `a.${kind}`));
    const input = document.getElementById(`${kind}-input`);
    input.files = files.files;
    input.dispatchEvent(new Event('change'));
    await settled();
  };
  const results = [];
  for (const [file, blob] of cases) {
    document.getElementById('clear').click();
    if (file !== null) await give('file', file);
    if (blob !== null) await give('blob', blob);
    results.push([document.body.dataset.state, findings()]);
  }
  return results;
}"""
)

# Types one window after another; gives the ranges and the frames (offset, size) shown.
SHOW_WINDOWS = """(windows) => windows.map((values) => {
  for (const [i, name] of ['row', 'column', 'height', 'width', 'bands', 'gap'].entries()) {
    const input = document.getElementById(name);
    input.value = values[i];
    input.dispatchEvent(new Event('input'));
  }
  const cells = (selector) => [...document.querySelectorAll(selector)];
  return [
    cells('#ranges > .scroll td:first-child').map((cell) => cell.textContent),
    cells('#ranges details tbody tr').map((row) =>
      [...row.cells].slice(-2).map((cell) => +cell.textContent)),
  ];
})"""


def look(page, file=None, blob=None):
    """Give the page files by its two buttons and wait until it has read them."""
    for kind, path in (("file", file), ("blob", blob)):
        if path is not None:
            page.set_input_files(f"#{kind}-input", str(path))
            page.wait_for_selector("body[data-state=ready]")


def verdict(page):
    return page.get_attribute("#verdict", "data-verdict")


def findings_of(page):
    return {finding["id"]: finding for finding in page.evaluate(FINDINGS)}


def failed(page):
    return {id for id, finding in findings_of(page).items() if finding["status"] == "failed"}


def field_values(page, title):
    section = page.locator("#fields section", has=page.locator("h2", has_text=title))
    cells = section.locator("[data-field]").evaluate_all(
        "cells => cells.map((cell) => [cell.dataset.field, cell.textContent])"
    )
    return dict(cells)


def set_window(page, window, bands="", gap=0):
    for name, value in zip(
        ("row", "column", "height", "width", "bands", "gap"), (*window, bands, gap), strict=True
    ):
        page.fill(f"#{name}", str(value))


def window_of(page):
    return tuple(int(page.input_value(f"#{name}")) for name in ("row", "column", "height", "width"))


def shown_ranges(page):
    texts = page.locator("#ranges > .scroll td:first-child").all_inner_texts()
    return [tuple(map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", text).groups())) for text in texts]


def encoded(data):
    return None if data is None else base64.b64encode(bytes(data)).decode()


def look_at_all(page, cases):
    """What the page shows of pairs of file and blob, either of which may be None."""
    shown = page.evaluate(LOOK_AT_ALL, [[encoded(file), encoded(blob)] for file, blob in cases])
    assert {state for state, _ in shown} == {"ready"}
    return [findings for _, findings in shown]


def tab_to(page, selector):
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.locator(selector).evaluate("node => node === document.activeElement"):
            return
    raise AssertionError(f"no way to {selector} by Tab")


def drop(page, *paths):
    """Drop files from outside, as the system would."""
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, "x": 200, "y": 200, "data": data})
