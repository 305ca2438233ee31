// What happens when: files arrive, a window changes.

const state = { file: null, blob: null, layouts: {}, layout: null, run: 0 };

// Of files that were dropped, which is which: by how they start, then by their names.
async function isBlob(file) {
  const start = await readBytes(file, 0, 4);
  const word = start.length === 4 ? viewOf(start).getUint32(0, true) : 0;
  if (word === FORMAT.header.magic) return true;
  const isTiff = ['II', 'MM'].includes(String.fromCharCode(...start.subarray(0, 2)));
  return !isTiff && !/\.(rumi|tiff?)$/i.test(file.name);
}

async function sort(files) {
  const sorted = {};
  for (const file of files) {
    const kind = (await isBlob(file)) ? 'blob' : 'file';
    if (sorted[kind]) throw new Refused('expected at most one .rumi file and one header blob');
    sorted[kind] = file;
  }
  return sorted;
}

// A new file takes the place of the old one and leaves the blob, and the reverse.
async function take(getFiles) {
  const run = (state.run += 1);
  document.body.dataset.state = 'reading';
  fill('status', 'Reading …');
  try {
    const files = await getFiles();
    const opened = {};
    if (files.file) opened.file = { name: files.file.name, size: files.file.size, facts: await FileFacts.open(files.file) };
    if (files.blob) opened.blob = { name: files.blob.name, size: files.blob.size, facts: await BlobFacts.open(files.blob) };
    if (run !== state.run) return;
    Object.assign(state, opened);
    showAll();
    document.body.dataset.state = 'ready';
  } catch (error) {
    if (run !== state.run) return;
    const isRead = error instanceof DOMException;
    fill('status', isRead ? `The file could not be read: ${error.message}` : error.message);
    document.body.dataset.state = 'error';
    if (!isRead && !(error instanceof Refused)) throw error;
  }
}

function layoutsOf({ file, blob }) {
  const layouts = {};
  const reasons = [];
  for (const [origin, make] of [['file', () => fileLayout(file.facts)], ['blob', () => blobLayout(blob.facts)]]) {
    if (!state[origin]) continue;
    try {
      layouts[origin] = make();
    } catch (error) {
      if (!(error instanceof NotChecked || error instanceof Refused)) throw error;
      reasons.push(error.message);
    }
  }
  return { layouts, reasons };
}

function showAll() {
  const { file, blob } = state;
  const given = [file, blob].filter(Boolean);
  const fields = [];
  if (file) fields.push(['File', file, fileFields(file.facts)]);
  if (blob) fields.push(['Header blob', blob, blobFields(blob.facts)]);
  const findings = validate(file?.facts, blob?.facts);
  // A parser that refuses what every clause passes would be a mistake of one of them; it is shown, not hidden.
  const refusals = fields.flatMap(([, , { refusals: found }]) => found);
  if (refusals.length > 0 && !findings.some(({ status }) => status === 'failed')) {
    const clause = { id: 'parser', section: 'the generated parser', text: 'the generated parser accepts' };
    findings.push({ clause, status: 'failed', expected: 'acceptance', found: refusals[0].join(': '), offset: null, reason: '' });
  }
  showFindings(findings, given.map(({ name }) => name));
  fill('fields', ...fields.map(([title, { name, size }, found]) => fieldCard(title, name, size, found)));
  byId('results').hidden = false;
  showGrid();
  fill('status', `Read ${given.map(({ name }) => name).join(' and ')}. ${byId('verdict-title').lastChild.textContent}.`);
}

function showGrid() {
  const { layouts, reasons } = layoutsOf(state);
  state.layouts = layouts;
  const origins = Object.keys(layouts);
  const isPossible = origins.length > 0;
  byId('no-grid').hidden = isPossible;
  byId('grid-box').hidden = !isPossible;
  state.layout = null;
  if (!isPossible) {
    fill('no-grid', `There is no frame grid to draw: ${reasons.join('; ')}.`);
    return;
  }
  const choice = byId('origin');
  choice.replaceChildren(...origins.map((origin) => element('option', { value: origin }, origin === 'file' ? "the file's index" : 'the header blob')));
  byId('origin-row').hidden = origins.length < 2;
  useLayout();
}

function useLayout() {
  const layout = state.layouts[byId('origin').value];
  state.layout = layout;
  byId('band-row').hidden = isCell(layout) || layout.bands === 1;
  byId('band').value = '0';
  byId('band').max = String(layout.bands - 1);
  fill('band-count', `of 0 to ${layout.bands - 1}`);
  byId('bands').value = '';
  // A first window, in the middle of the image.
  const middle = tileAt(layout, { row: Math.floor(layout.length / 2), column: Math.floor(layout.width / 2) });
  showSizes();
  setWindow(windowOf(layout, middle, middle));
}

function bandShown() {
  const text = byId('band').value.trim();
  const band = Number(text);
  return /^\d+$/.test(text) && band < state.layout.bands ? band : 0;
}

function showSizes() {
  const { layout } = state;
  grid.show(layout, bandShown());
  const { least, most } = grid.bins;
  const tiles = `${grouped(layout.down)} × ${grouped(layout.across)} tiles of ${layout.tileLength} × ${layout.tileWidth} pixels (rows × columns)`;
  fill('grid-text', `${plural(layout.count, 'frame')}: ${tiles}. ${isCell(layout) ? 'A frame holds all bands of a tile.' : 'A frame holds one band of a tile.'}`);
  fill('legend-least', plural(least, 'byte'));
  fill('legend-most', least === most ? 'all alike' : plural(most, 'byte'));
  byId('grid').setAttribute('aria-label', `Frame grid, ${layout.down} rows and ${layout.across} columns, coloured by compressed size`);
}

function setWindow(chosen) {
  for (const name of ['row', 'column', 'height', 'width']) byId(name).value = String(chosen[name]);
  showWindow();
}

function wholeNumber(id) {
  const text = byId(id).value.trim();
  if (!/^\d{1,15}$/.test(text)) throw new Refused(`${id}: expected a whole number, found "${text}"`);
  return Number(text);
}

function showWindow() {
  const { layout } = state;
  if (!layout) return;
  const problem = byId('problem');
  try {
    const chosen = Object.fromEntries(['row', 'column', 'height', 'width'].map((name) => [name, wholeNumber(name)]));
    const bands = parseBands(byId('bands').value, layout.bands);
    const gap = wholeNumber('gap');
    checkWindow(layout, chosen);
    grid.mark(chosen);
    const frames = planFrames(layout, chosen, bands);
    const line = pythonLine(state.file?.name ?? 'scene.rumi', chosen, bands);
    showRanges(layout, frames, mergeRanges(frames, gap), line);
    problem.hidden = true;
    byId('ranges').hidden = false;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    fill('problem', error.message);
    problem.hidden = false;
    byId('ranges').hidden = true;
  }
}

function showPoint(tile) {
  const { layout } = state;
  if (!tile || !layout) return fill('readout', 'Drag to draw a window, or use the arrow keys; Enter takes a tile, Shift extends.');
  const band = isCell(layout) ? 0 : bandShown();
  const index = frameIndex(layout, tile.row, tile.column, band);
  const place = `row ${tile.row}, column ${tile.column}${isCell(layout) ? '' : `, band ${band}`}`;
  try {
    return fill('readout', `${place}: frame ${index}, ${plural(layout.size(index), 'byte')} at byte ${layout.offset(index)}`);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return fill('readout', `${place}: ${error.message}`);
  }
}

const grid = new Grid(byId('grid'), { choose: setWindow, point: showPoint });
paintLegend(byId('legend'));
showPoint(null);

for (const kind of ['file', 'blob']) {
  byId(`${kind}-input`).addEventListener('change', ({ target }) => {
    const [file] = target.files;
    // The same name may stand for other bytes the next time.
    if (file) take(async () => ({ [kind]: file })).finally(() => { target.value = ''; });
  });
}

byId('clear').addEventListener('click', () => {
  state.run += 1;
  Object.assign(state, { file: null, blob: null, layout: null, layouts: {} });
  byId('results').hidden = true;
  document.body.dataset.state = 'empty';
  fill('status', 'Cleared.');
  byId('file-input').focus();
});

document.addEventListener('dragover', (event) => {
  event.preventDefault();
  document.body.classList.add('dragging');
});
document.addEventListener('dragleave', (event) => {
  if (!event.relatedTarget) document.body.classList.remove('dragging');
});
document.addEventListener('drop', (event) => {
  event.preventDefault();
  document.body.classList.remove('dragging');
  const files = [...event.dataTransfer.files];
  if (files.length > 0) take(() => sort(files));
});

byId('origin').addEventListener('change', useLayout);
byId('band').addEventListener('input', showSizes);
for (const id of ['row', 'column', 'height', 'width', 'bands', 'gap']) byId(id).addEventListener('input', showWindow);
byId('whole').addEventListener('click', () => {
  if (state.layout) setWindow({ row: 0, column: 0, height: state.layout.length, width: state.layout.width });
});
byId('window').addEventListener('submit', (event) => event.preventDefault());
