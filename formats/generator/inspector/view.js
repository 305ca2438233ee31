// Writing to the page. Whatever comes from a file goes in as text, never as markup.

const byId = (id) => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

function fill(id, ...children) {
  byId(id).replaceChildren(...children);
}

const MARKS = { failed: '✕', passed: '✓', 'not checked': '–' };

function findingItem({ clause, status, reason, expected, found, offset }) {
  const item = element('li', { class: 'finding', 'data-clause': clause.id, 'data-status': status });
  const head = element('p', { class: 'clause' }, element('span', { class: 'mark', 'aria-hidden': 'true' }, MARKS[status]), clause.text);
  const place = clause.id.startsWith('blob.') || clause.id.startsWith('match.') ? 'blob byte' : 'byte';
  item.append(head, element('p', { class: 'origin' }, element('code', {}, clause.id), ` · ${clause.section}`));
  if (expected !== undefined) {
    const values = element('dl', { class: 'values' });
    for (const [name, value] of [['expected', expected], ['found', found], [place, offset]]) {
      if (value !== null && value !== undefined) values.append(element('dt', {}, name), element('dd', { 'data-value': name.split(' ').at(-1) }, value));
    }
    item.append(values);
  }
  if (reason) item.append(element('p', { class: 'reason' }, reason));
  return item;
}

function group(title, findings, isOpen) {
  const details = element('details', isOpen ? { open: '' } : {}, element('summary', {}, `${title} (${findings.length})`));
  details.append(element('ul', { class: 'findings' }, ...findings.map(findingItem)));
  return details;
}

function showFindings(findings, names) {
  const by = (status) => findings.filter((finding) => finding.status === status);
  const [failed, unchecked, passed] = [by('failed'), by('not checked'), by('passed')];
  const isBroken = failed.length > 0;
  byId('verdict').dataset.verdict = isBroken ? 'broken' : 'sound';
  const title = isBroken
    ? `Not compliant: ${plural(failed.length, 'clause')} of ${findings.length} ${failed.length === 1 ? 'fails' : 'fail'}`
    : 'No violation found';
  const rest = `${passed.length} hold, ${unchecked.length} could not be checked here.`;
  fill('verdict-title', element('span', { class: 'mark', 'aria-hidden': 'true' }, isBroken ? MARKS.failed : MARKS.passed), title);
  fill('verdict-text', `${names.join(' and ')}: ${isBroken ? '' : `of ${findings.length} clauses `}${rest}`);
  const groups = [group('Fail', failed, true), group('Not checked', unchecked, false), group('Hold', passed, false)];
  fill('findings', ...groups.slice(isBroken ? 0 : 1));
}

function fieldTable({ title, rows }) {
  const table = element('table', { class: 'fields' }, element('caption', {}, title));
  const body = element('tbody');
  for (const { name, where, value, note } of rows) {
    const place = element('span', { class: 'where' }, where);
    const cell = element('td', {}, element('span', { class: 'value', 'data-field': name }, value));
    if (note) cell.append(element('span', { class: 'note' }, note));
    body.append(element('tr', {}, element('th', { scope: 'row' }, element('code', {}, name), place), cell));
  }
  table.append(body);
  return table;
}

function parserLine(refusals) {
  if (refusals.length === 0) return element('p', { class: 'parser', 'data-parser': 'accepts' }, 'The parser generated from the specification accepts it.');
  const lines = refusals.map(([name, why]) => element('p', { class: 'parser', 'data-parser': 'refuses' }, `The generated parser refuses it: ${name}: ${why}`));
  return element('div', {}, ...lines);
}

function fieldCard(title, name, size, { groups, refusals }) {
  return element(
    'section', { class: 'card' },
    element('h2', {}, title),
    element('p', { class: 'source' }, element('span', { class: 'name' }, name), ` · ${plural(size, 'byte')}`),
    ...groups.map(fieldTable),
    parserLine(refusals),
  );
}

const SHOWN_ROWS = 200;

function rowsTable(caption, heads, rows) {
  const table = element('table', { class: 'rows' }, element('caption', { class: 'hidden' }, caption));
  table.append(element('thead', {}, element('tr', {}, ...heads.map((head) => element('th', { scope: 'col' }, head)))));
  const body = element('tbody');
  for (const row of rows.slice(0, SHOWN_ROWS)) body.append(element('tr', {}, ...row.map((value) => element('td', {}, value))));
  table.append(body);
  const box = element('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption }, table);
  if (rows.length <= SHOWN_ROWS) return box;
  return element('div', {}, box, element('p', { class: 'note' }, `and ${grouped(rows.length - SHOWN_ROWS)} more`));
}

function pythonLine(name, { row, column, height, width }, bands) {
  const selection = bands ? `, bands=[${bands.join(', ')}]` : '';
  return `rumi.read(${JSON.stringify(name)}, blob, window=(${row}, ${column}, ${height}, ${width})${selection})`;
}

function showRanges(layout, frames, ranges, line) {
  const wanted = frames.reduce((sum, { size }) => sum + size, 0);
  const fetched = ranges.reduce((sum, { start, stop }) => sum + stop - start, 0);
  const gaps = fetched > wanted ? `, ${grouped(fetched - wanted)} of them between frames` : '';
  const summary = `${plural(frames.length, 'frame')} in ${plural(ranges.length, 'range')}: ${plural(fetched, 'byte')}${gaps}`;
  const all = element('details', {}, element('summary', {}, `Frames (${grouped(frames.length)})`));
  const band = isCell(layout) ? () => 'all' : (frame) => frame.band;
  all.append(rowsTable('Frames', ['frame', 'row', 'col', 'band', 'offset', 'bytes'], frames.map((frame) => [
    frame.index, frame.row, frame.column, band(frame), frame.offset, frame.size,
  ])));
  const result = byId('ranges');
  Object.assign(result.dataset, { frames: frames.length, ranges: ranges.length, bytes: fetched });
  fill(
    'ranges',
    element('p', { class: 'summary' }, summary),
    rowsTable('Merged byte ranges', ['HTTP Range', 'bytes', 'frames'], ranges.map(({ start, stop, frames: count }) => [
      `bytes=${start}-${stop - 1}`, stop - start, count,
    ])),
    all,
    element('p', { class: 'python' }, element('code', {}, line)),
  );
}
