// Byte maps. Everything is placed by arithmetic on integers, so the pictures
// are the same on every machine.

import { externalValue } from './model.mjs';

// The names are those of this picture alone, since an HTML page may hold several.
const STYLE = `
  .bytemap { --ink: #1f2328; --note: #59636e; --meta: #ddf4ff; --shape: #dafbe1; --type: #fff8c5; --data: #ffeff7;
    --page: #ffffff; }
  @media screen and (prefers-color-scheme: dark) {
    .bytemap { --ink: #e6edf3; --note: #9aa4af; --meta: #123a5c; --shape: #12432a; --type: #453a08; --data: #4c1f3a;
      --page: #0f1318; }
  }
  .bytemap text { font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--ink); }
  .bytemap .note { font-size: 10px; fill: var(--note); }
  .bytemap .title { font-weight: bold; }
  .bytemap rect { fill: var(--page); stroke: var(--note); }
  .bytemap .meta { fill: var(--meta); }
  .bytemap .shape { fill: var(--shape); }
  .bytemap .type { fill: var(--type); }
  .bytemap .data { fill: var(--data); }
  .bytemap .page { fill: var(--page); stroke: none; }
  .bytemap .hull { fill: none; stroke: var(--ink); }
`;

const escape = (text) => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

function text(x, y, content, { style = '', anchor = 'start' } = {}) {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}"${style && ` class="${style}"`}>${escape(content)}</text>\n`;
}

function box(x, y, width, height, style) {
  return `<rect x="${x}" y="${y}" width="${width}" height="${height}" class="${style}"/>\n`;
}

function picture(width, height, title, body) {
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" class="bytemap" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">\n`
    + '<!-- Generated from formats/*.ksy by formats/generate.mjs. Do not edit. -->\n'
    + `<title>${escape(title)}</title>\n<style>${STYLE}</style>\n${box(0, 0, width, height, 'page')}${body}</svg>\n`
  );
}

// Breaks an identifier at underscores into lines of at most `limit` characters.
function lines(name, limit) {
  return name.split('_').reduce((done, word) => {
    const last = done[done.length - 1];
    if (last !== undefined && last.length + 1 + word.length <= limit) return [...done.slice(0, -1), `${last}_${word}`];
    return [...done, word];
  }, []);
}

function colourOf(name) {
  if (/^(magic|version)$/.test(name)) return 'meta';
  if (/^(image|tile)_|^samples_per_pixel$/.test(name)) return 'shape';
  return /^count_/.test(name) ? 'data' : 'type';
}

const BYTES_PER_ROW = 14;
const BYTE_WIDTH = 60;
const ROW_HEIGHT = 76;
const MARGIN = 40;

// A field that crosses the end of a row continues at the start of the next.
function piecesOf({ offset, size }) {
  const pieces = [];
  for (let at = offset; at < offset + size; ) {
    const end = Math.min(offset + size, (Math.floor(at / BYTES_PER_ROW) + 1) * BYTES_PER_ROW);
    pieces.push({ row: Math.floor(at / BYTES_PER_ROW), column: at % BYTES_PER_ROW, width: end - at, offset: at });
    at = end;
  }
  return pieces;
}

function fieldBoxes(field) {
  return piecesOf(field)
    .map(({ row, column, width, offset }) => {
      const x = MARGIN + column * BYTE_WIDTH;
      const y = MARGIN + row * (ROW_HEIGHT + 20);
      const words = lines(field.name, Math.floor((width * BYTE_WIDTH - 6) / 7.3));
      const centre = x + (width * BYTE_WIDTH) / 2;
      const top = y + ROW_HEIGHT / 2 - (words.length - 1) * 7;
      return (
        box(x, y, width * BYTE_WIDTH, ROW_HEIGHT, colourOf(field.name))
        + text(x + 2, y - 4, offset, { style: 'note' })
        + words.map((word, i) => text(centre, top + i * 14, word, { anchor: 'middle' })).join('')
        + text(centre, y + ROW_HEIGHT - 6, field.type, { style: 'note', anchor: 'middle' })
      );
    })
    .join('');
}

export function blobMap(header) {
  const rows = Math.ceil(header.size / BYTES_PER_ROW);
  const width = BYTES_PER_ROW * BYTE_WIDTH;
  const y = MARGIN + rows * (ROW_HEIGHT + 20);
  const packed = header.fields.find(({ size }) => size === null);
  const body = [
    text(MARGIN, 18, `Header blob: ${header.size} bytes + ceil(N * count_bits / 8) bytes`, { style: 'title' }),
    ...header.fixed.map(fieldBoxes),
    box(MARGIN, y, width, 48, 'data'),
    text(MARGIN + 2, y - 4, header.size, { style: 'note' }),
    text(MARGIN + width / 2, y + 22, `${packed.origId}[N] as ${packed.name}`, { anchor: 'middle' }),
    text(MARGIN + width / 2, y + 38, 'count_bits bits each, least significant bit of the first byte first, no padding', {
      style: 'note',
      anchor: 'middle',
    }),
  ];
  return picture(width + 2 * MARGIN, y + 48 + MARGIN / 2, 'Byte map of the header blob', body.join(''));
}

const LINE = 24;
const LABEL = 130;
const NAME = 330;

function row(y, { offset, name, note, style }) {
  return (
    box(LABEL, y, NAME, LINE, style)
    + text(LABEL - 8, y + 16, offset, { style: 'note', anchor: 'end' })
    + text(LABEL + 10, y + 16, name)
    + text(LABEL + NAME + 12, y + 16, note, { style: 'note' })
  );
}

function ifdRows(file) {
  return file.ifdFields
    .filter(({ size }) => size !== 0)
    .map((field) => {
      const tag = file.tags.find(({ id }) => id === field.name);
      return {
        offset: file.ifdOffset + field.offset,
        name: tag ? `${tag.value} ${tag.name}` : field.name,
        note: tag ? `${tag.type['-orig-id']} x ${tag.count}` : `${field.type} = ${field.valid}`,
        style: 'shape',
      };
    });
}

function externalRows(file) {
  return file.tags
    .filter(({ count, type }) => !(count * type.size <= file.inlineSize))
    .map((tag, i) => {
      const { size, condition } = externalValue(tag, file.inlineSize);
      const note = condition ? `${size} bytes if ${condition}, else in its entry` : `${size} bytes`;
      return { offset: i === 0 ? file.externalOffset : '', name: `value of ${tag.value} ${tag.name}`, note, style: 'type' };
    });
}

export function fileMap(file) {
  const rows = [
    { offset: 0, name: 'BigTIFF header', note: `${file.ifdOffset} bytes`, style: 'meta' },
    ...ifdRows(file),
    ...externalRows(file),
    { offset: 'base_frame_offset', name: 'frame 0', note: 'one self-contained OpenZL frame', style: 'data' },
    { offset: '', name: 'frame 1', note: 'immediately after frame 0', style: 'data' },
    { offset: '', name: '...', note: '', style: 'data' },
    { offset: '', name: 'frame N - 1', note: '', style: 'data' },
  ];
  const top = 36;
  const ifdTop = top + LINE;
  const ifdHeight = LINE * ifdRows(file).length;
  const body = [
    text(LABEL, 20, `File: IFD of ${file.ifdSize} bytes at ${file.ifdOffset}, external values from ${file.externalOffset}`, {
      style: 'title',
    }),
    ...rows.map((entry, i) => row(top + i * LINE, entry)),
    box(LABEL, ifdTop, NAME, ifdHeight, 'hull'),
  ];
  return picture(LABEL + NAME + 290, top + rows.length * LINE + 20, 'Byte map of the file', body.join(''));
}
