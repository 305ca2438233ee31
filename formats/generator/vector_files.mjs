// Files, valid and malformed, for the conformance vectors.

import { readFileSync } from 'node:fs';
import { blobBytes, expected, integer, layOut, partsOf, patched, replacing } from './arithmetic.mjs';
import { clauseOf } from './model.mjs';

// Frames that decode, with the samples they hold.
const DECODABLE = JSON.parse(readFileSync(new URL('frames.json', import.meta.url), 'utf8'));
const frameMagic = () => Buffer.from(DECODABLE.tile_uint16[0].hex, 'hex').subarray(0, 4);

// A frame for whoever does not decode: the magic, then bytes without meaning.
function opaque(length, index) {
  return Buffer.concat([frameMagic(), Buffer.alloc(length - 4, index)]);
}

function image(height, width, tile, bands, [format, bits], unit = 0) {
  return {
    image_width: width,
    image_length: height,
    tile_width: tile[1],
    tile_length: tile[0],
    samples_per_pixel: bands,
    bits_per_sample: bits,
    sample_format: format,
    frame_unit: unit,
  };
}

const opaques = (count) => Array.from({ length: count }, (_, i) => opaque(5 + ((i * 7) % 6), i));
const decodables = (name) => DECODABLE[name].map(({ hex }) => Buffer.from(hex, 'hex'));

// --- Georeferencing

function keysOf(file, { model = 'undefined', raster = 'pixel_is_area', epsg = 0 } = {}) {
  const key = (id) => [file.geoKeys.find((candidate) => candidate.id === id).value, 0, 1];
  const code = (members, id) => members.find((candidate) => candidate.id === id).value;
  return [
    ...file.geoKeyHeader,
    ...key('gt_model_type'),
    code(file.modelTypes, model),
    ...key('gt_raster_type'),
    code(file.rasterTypes, raster),
    ...key(model === 'projected' ? 'projected_cs_type' : 'geographic_type'),
    epsg,
  ];
}

function matrixOf(file, changes = {}) {
  return file.transformation.map(({ id, undefinedValue }) => changes[id] ?? undefinedValue);
}

const NORTH_UP = { x_res: 10, x_origin: 300000, y_res: -10, y_origin: 8500000 };
const ROTATED = { x_res: 8.5, row_rot: -3.25, x_origin: 500000.5, col_rot: -3.25, y_res: -8.5, y_origin: 4600000 };
const UTM = { model: 'projected', epsg: 32718 };

function georeferencing(keys, matrix) {
  return { model_type: keys[7], raster_type: keys[11], epsg: keys[15], model_transformation: matrix };
}

// --- Valid

const THREE_BANDS = image(10, 12, [8, 8], 3, [1, 16]);

function validCases() {
  return [
    ['one-frame', 'One frame: both arrays stand in their entries, which is the smallest file.', image(5, 7, [8, 8], 1, [1, 8]), opaques(1)],
    ['frames-2', 'Two frames: TileOffsets is external, TileByteCounts is not.', image(5, 7, [8, 8], 2, [1, 8]), opaques(2)],
    ['tile-frames', 'Tile frames of three bands on a grid of two by two, without CRS.', THREE_BANDS, opaques(12)],
    ['cell-frames', 'The same image in cell frames.', { ...THREE_BANDS, frame_unit: 1 }, opaques(4)],
    ['five-bands', 'Five bands: BitsPerSample and SampleFormat are external.', image(5, 7, [8, 8], 5, [3, 32]), opaques(5)],
    ['one-band-grid', 'One band on a grid: either frame unit is correct, and the blob here says tile.', image(9, 20, [4, 16], 1, [2, 16]), opaques(6)],
    ['projected', 'A projected CRS, north-up.', THREE_BANDS, opaques(12), UTM, NORTH_UP],
    ['geographic', 'A geographic CRS.', THREE_BANDS, opaques(12), { model: 'geographic', epsg: 4326 }, { x_res: 0.25, x_origin: -70, y_res: -0.25, y_origin: 5 }],
    ['point', 'Pixels represent points.', THREE_BANDS, opaques(12), { ...UTM, raster: 'pixel_is_point' }, NORTH_UP],
    ['point-without-crs', 'No CRS, yet the raster type is recorded.', THREE_BANDS, opaques(12), { raster: 'pixel_is_point' }],
    ['rotated', 'A rotated matrix.', THREE_BANDS, opaques(12), UTM, ROTATED],
    ['samples-uint16', 'OpenZL frames: tile frames of two bands; sample = 1000 * band + 100 * row + column.', image(3, 5, [2, 4], 2, [1, 16]), 'tile_uint16'],
    ['samples-cell-uint8', 'OpenZL frames: cell frames of two bands; sample = 100 * band + 10 * row + column.', image(3, 3, [2, 2], 2, [1, 8], 1), 'cell_uint8'],
    ['samples-uint4', 'OpenZL frames: 4-bit samples, one byte each, value in the low bits; sample = 3 * row + column.', image(2, 3, [2, 2], 1, [1, 4]), 'tile_uint4'],
  ];
}

function build(model, shape, frames, keys, matrix) {
  return partsOf(model, shape, frames, { keys, matrix });
}

function valid(model) {
  return validCases().map(([name, about, shape, content, crs, transform]) => {
    const frames = typeof content === 'string' ? decodables(content) : content;
    const keys = keysOf(model.file, crs);
    const matrix = matrixOf(model.file, transform);
    const counts = frames.map(({ length }) => length);
    const known = expected(model, shape, counts);
    if (typeof content === 'string') {
      DECODABLE[content].forEach(({ samples }, i) => Object.assign(known.frames[i], { samples }));
    }
    return {
      name,
      about,
      verdict: 'valid',
      check: typeof content === 'string' ? 'decoder' : 'frames',
      hex: layOut(model, build(model, shape, frames, keys, matrix)).toString('hex'),
      blob: blobBytes(model.header, shape, counts).toString('hex'),
      ...known,
      georeferencing: georeferencing(keys, matrix),
    };
  });
}

// --- Malformed

// Starts from a valid file; `change` gets its parts, or `patch` its bytes.
function mutation(model, { shape = THREE_BANDS, frames = opaques(12), crs, transform, keys, matrix }) {
  const parts = build(model, shape, frames, keys ?? keysOf(model.file, crs), matrix ?? matrixOf(model.file, transform));
  return { model, parts, entry: (id) => parts.entries.find((candidate) => candidate.id === id) };
}

function cases(model) {
  const { file } = model;
  const found = [];
  const add = (name, clause, about, change, { check = 'structure', ...base } = {}) => {
    const started = mutation(model, base);
    const bytes = change(started) ?? layOut(model, started.parts);
    found.push({ name, about, verdict: 'malformed', clause, check, hex: bytes.toString('hex') });
  };
  return { model, file, found, add };
}

function wrongStart({ model, file, add }) {
  for (const field of file.fields.filter(({ name }) => name !== 'ifd')) {
    const value = { byte_order: 'MM' }[field.name] ?? field.valid - 1 + 2 * (field.valid === 0);
    add(`start-${field.name.replaceAll('_', '-')}`, clauseOf(field), `${field.name} is ${value}.`, ({ parts }) => {
      parts.start.find(({ name }) => name === field.name).value = value;
    });
  }
  add('classic-tiff', 'File profile', 'The head of a classic TIFF.', () => Buffer.from('49492a0008000000', 'hex'));
  add('header-blob', 'File profile', 'A header blob in place of the file.', () => blobBytes(model.header, THREE_BANDS, 9));
}

function wrongEntries({ file, add }) {
  for (const tag of file.tags) {
    const name = tag.id.replaceAll('_', '-');
    add(`tag-${name}`, 'Fixed IFD', `Tag ${tag.value + 1} in place of ${tag.name}.`, ({ entry }) => {
      entry(tag.id).tag += 1;
    });
    add(`type-${name}`, 'Fixed IFD', `${tag.name} has another type of the same width.`, ({ entry }) => {
      entry(tag.id).type = { SHORT: 8, LONG: 9, DOUBLE: 5, LONG8: 17 }[tag.type['-orig-id']];
    });
    add(`count-${name}`, tag.id === 'tile_offsets' ? 'Deriving the frame unit' : 'Fixed IFD', `${tag.name} has one value too few, or two for one.`, ({ entry }) => {
      const { values } = entry(tag.id);
      entry(tag.id).count = values.length > 1 ? values.length - 1 : 2;
    });
  }
  const after = (parts, tag, typeName, type, values) => {
    const at = parts.entries.findIndex((candidate) => candidate.tag > tag);
    parts.entries.splice(at < 0 ? parts.entries.length : at, 0, { id: 'extra', tag, type, typeName, values });
    return undefined;
  };
  add('extra-compression', 'Fixed IFD', 'An additional tag, Compression.', ({ parts }) => after(parts, 259, 'SHORT', 3, [1]));
  add('extra-pixel-scale', 'Georeferencing', 'ModelPixelScaleTag, a georeferencing tag that must not appear.', ({ parts }) => after(parts, 33550, 'DOUBLE', 12, [10, 10, 0]));
  add('missing-sample-format', 'Fixed IFD', 'SampleFormat is missing.', ({ parts }) => {
    parts.entries.splice(8, 1);
  });
  add('tags-not-rising', 'Fixed IFD', 'ImageLength stands before ImageWidth.', ({ parts }) => {
    parts.entries.splice(0, 2, parts.entries[1], parts.entries[0]);
  });
  add('second-ifd', 'File profile', 'The offset of a next IFD is not zero.', ({ parts }) => {
    parts.next = file.ifdOffset;
  });
}

function wrongPlacement({ file, add }) {
  add('values-swapped', 'Placement', 'External values are not in rising tag order: the two georeferencing tags changed places.', ({ parts, entry }) => {
    const [matrix, keys] = [entry('model_transformation'), entry('geo_key_directory')];
    parts.order = [...parts.entries.filter((e) => e !== matrix && e !== keys), keys, matrix];
  });
  add('values-with-gaps', 'Placement', 'Eight bytes of padding after each external value.', ({ parts }) => {
    parts.gap = 8;
  });
  add('frames-padded', 'Deriving base_frame_offset', 'Sixteen bytes between the last external value and the first frame.', ({ parts, entry }) => {
    entry('tile_offsets').values = entry('tile_offsets').values.map((offset) => offset + 16);
    parts.frames = [Buffer.alloc(16), ...parts.frames];
  });
  add('cut-in-ifd', 'File profile', 'The file ends inside the IFD.', (m) => layOut(m.model, m.parts).subarray(0, file.externalOffset - 1));
  add('cut-in-values', 'File profile', 'The file ends inside the external values.', (m) => layOut(m.model, m.parts).subarray(0, file.externalOffset + 40), { check: 'values' });
  add('empty', 'File profile', 'No bytes at all.', () => Buffer.alloc(0));
}

function wrongShapes({ model, add }) {
  for (const id of ['image_width', 'image_length', 'tile_width', 'tile_length', 'samples_per_pixel']) {
    const clause = clauseOf(model.header.fixed.find(({ name }) => name === id));
    add(`zero-${id.replaceAll('_', '-')}`, clause, `${id} is 0.`, ({ entry }) => {
      entry(id).values = [0];
    });
  }
  add('frame-count-of-no-unit', 'Deriving the frame unit', 'Eight frames for three bands at four grid positions.', ({ entry }) => {
    for (const id of ['tile_offsets', 'tile_byte_counts']) entry(id).values = entry(id).values.slice(0, 8);
  });
  const encoding = (name, about, id, value, at, check, shape) =>
    add(name, 'Sample encodings', about, ({ entry }) => {
      entry(id).values[at] = value;
    }, { check, ...(shape ? { shape, frames: opaques(5) } : {}) });
  encoding('bits-of-one-band', 'The last of three bands has another width; the values stand in the entry.', 'bits_per_sample', 8, 2, 'structure');
  encoding('format-of-one-band', 'The second of three bands has another sample format.', 'sample_format', 2, 1, 'structure');
  encoding('bits-of-the-last-band', 'The last of five bands has another width; the values are external.', 'bits_per_sample', 32, 4, 'structure', image(5, 7, [8, 8], 5, [1, 16]));
  add('unlisted-pair', 'Sample encodings', 'Unsigned integers of 24 bits.', () => undefined, { shape: { ...THREE_BANDS, bits_per_sample: 24 } });
}

function wrongFrames({ add }) {
  const values = { check: 'values' };
  const offsets = (entry, change) => {
    entry('tile_offsets').values = change(entry('tile_offsets').values);
  };
  add('first-offset', 'Deriving base_frame_offset', 'The first offset is one byte too small.', ({ entry }) => offsets(entry, ([first, ...rest]) => [first - 1, ...rest]));
  add('band-interleaved', 'Rejected orders', 'All tiles of band 0 come first in the file. Sorted, the offsets look right.', ({ parts, entry }) => {
    const order = parts.frames.map((_, i) => (i % 4) * 3 + Math.floor(i / 4));
    const starts = new Map();
    let at = entry('tile_offsets').values[0];
    for (const index of order) {
      starts.set(index, at);
      at += parts.frames[index].length;
    }
    offsets(entry, (old) => old.map((_, index) => starts.get(index)));
    parts.frames = order.map((index) => parts.frames[index]);
  }, values);
  add('gap-between-frames', 'File profile', 'Two bytes between frames 4 and 5.', ({ parts, entry }) => {
    offsets(entry, (old) => old.map((offset, i) => offset + (i > 4 ? 2 : 0)));
    parts.frames.splice(5, 0, Buffer.alloc(2));
  }, values);
  add('frames-overlap', 'File profile', 'Frame 5 starts at the last byte of frame 4.', ({ entry }) => offsets(entry, (old) => old.map((offset, i) => offset - (i === 5))), values);
  add('sparse-frame', 'File profile', 'The byte count of frame 3 is 0.', ({ parts, entry }) => {
    const { length } = parts.frames[3];
    entry('tile_byte_counts').values[3] = 0;
    offsets(entry, (old) => old.map((offset, i) => offset - (i > 3 ? length : 0)));
    parts.frames.splice(3, 1);
  }, values);
  add('cut-in-last-frame', 'File profile', 'The last byte of the last frame is missing.', (m) => layOut(m.model, m.parts).subarray(0, -1), values);
  add('trailing-byte', 'File profile', 'A byte follows the last frame.', (m) => Buffer.concat([layOut(m.model, m.parts), Buffer.alloc(1)]), values);
}

function wrongGeoreferencing({ file, add }) {
  const at = 'Georeferencing, ';
  file.transformation.forEach(({ id, fixed }, i) => {
    if (!fixed) return;
    const matrix = replacing(matrixOf(file, NORTH_UP), i, 0.5);
    add(`matrix-${id.replaceAll('_', '-')}`, `${at}ModelTransformationTag`, `Element ${i} of the matrix, ${id}, is 0.5.`, () => undefined, { crs: UTM, matrix });
  });
  const good = keysOf(file, UTM);
  const keys = (name, about, clause, changes, start = good) =>
    add(`keys-${name}`, at + clause, about, () => undefined, { keys: changes.reduce((k, [i, value]) => replacing(k, i, value), start), transform: start === good ? NORTH_UP : {} });
  const tag = 'GeoKeyDirectoryTag';
  keys('version', 'KeyDirectoryVersion is 2.', tag, [[0, 2]]);
  keys('number', 'Four keys are announced.', tag, [[3, 4]]);
  keys('order', 'GTRasterTypeGeoKey stands before GTModelTypeGeoKey.', tag, [[4, good[8]], [7, good[11]], [8, good[4]], [11, good[7]]]);
  keys('location', 'The value of GTModelTypeGeoKey is said to be in another tag.', tag, [[5, 34736]]);
  keys('count', 'GTRasterTypeGeoKey has two values.', tag, [[10, 2]]);
  keys('model-type-3', 'GTModelTypeGeoKey is 3, geocentric.', tag, [[7, 3]]);
  keys('raster-type-0', 'GTRasterTypeGeoKey is 0.', tag, [[11, 0]]);
  keys('projected-as-geographic', 'GTModelTypeGeoKey says projected, the code stands under key 2048.', tag, [[12, 2048]]);
  keys('geographic-as-projected', 'GTModelTypeGeoKey says geographic, the code stands under key 3072.', tag, [[7, 2], [15, 4326]]);
  keys('epsg-too-small', 'The code is one less than the least.', tag, [[15, file.minEpsg - 1]]);
  keys('epsg-too-large', 'The code is one more than the largest: 32767, user-defined.', tag, [[15, file.maxEpsg + 1]]);
  const none = keysOf(file);
  keys('code-without-crs', 'A code where GTModelTypeGeoKey is 0.', 'Undefined georeferencing', [[15, 4326]], none);
  add('matrix-without-crs', `${at}Undefined georeferencing`, 'Another matrix than the fixed one where GTModelTypeGeoKey is 0.', () => undefined, { transform: NORTH_UP });
  add('epsg-unknown', `${at}GeoKeyDirectoryTag`, 'The EPSG registry does not define 15000.', () => undefined, { crs: { ...UTM, epsg: 15000 }, transform: NORTH_UP, check: 'registry' });
  add('epsg-of-another-kind', 'Which codes are geographic', 'EPSG 4326 is geographic and stored as projected.', () => undefined, { crs: { ...UTM, epsg: 4326 }, transform: NORTH_UP, check: 'registry' });
}

function wrongContent({ add }) {
  const frames = { check: 'frames' };
  const opening = (index, first) => ({ parts }) => {
    parts.frames[index] = patched(parts.frames[index], 0, first);
  };
  add('frame-without-magic', 'Frames', 'Frame 7 does not start as an OpenZL frame.', opening(7, Buffer.from('28b52ffd', 'hex')), frames);
  add('frame-versions-differ', 'Frames', 'Frame 2 was written at an older frame format version than the others.', opening(2, integer(frameMagic().readUInt32LE() - 1, 4)), frames);
  const samples = { check: 'decoder', shape: image(3, 5, [2, 4], 2, [1, 16]), frames: decodables('tile_uint16') };
  const swapIn = (index, frame) => {
    const changed = decodables('tile_uint16');
    changed[index] = frame;
    return { ...samples, frames: changed };
  };
  const [whole, , edge] = decodables('tile_uint16');
  add('edge-tile-padded', 'Header fields, tile_width and tile_length', 'Frame 2 belongs to a tile cut to one column and decodes to a whole tile.', () => undefined, swapIn(2, whole));
  add('tile-too-small', 'Header fields, tile_width and tile_length', 'Frame 0 decodes to fewer samples than its tile has.', () => undefined, swapIn(0, edge));
  add('frame-damaged', 'Frames', 'One bit of the content of frame 1 is flipped; the frame carries checksums.', ({ parts }) => {
    const frame = Buffer.from(parts.frames[1]);
    frame[20] ^= 1;
    parts.frames[1] = frame;
  }, samples);
}

// --- Blobs that belong to another file

function mismatches(model) {
  const counts = opaques(12).map(({ length }) => length);
  const bytes = layOut(model, mutation(model, {}).parts);
  const blob = (shape, sizes) => blobBytes(model.header, shape, sizes).toString('hex');
  const wrong = [
    ['blob-of-other-size', 'Header fields, image_width and image_length', 'The blob says one pixel more of width.', blob({ ...THREE_BANDS, image_width: 13 }, counts)],
    ['blob-of-other-encoding', 'Header fields, bits_per_sample and sample_format', 'The blob says signed integers.', blob({ ...THREE_BANDS, sample_format: 2 }, counts)],
    ['blob-of-other-unit', 'Deriving the frame unit', 'The blob says cell frames.', blob({ ...THREE_BANDS, frame_unit: 1 }, counts.slice(0, 4))],
    ['blob-of-other-counts', 'Frame byte counts', 'Two frames have changed places; the sum is the same.', blob(THREE_BANDS, [counts[1], counts[0], ...counts.slice(2)])],
  ];
  return wrong.map(([name, clause, about, hex]) => ({
    name,
    about,
    verdict: 'malformed',
    clause,
    check: 'match',
    hex: bytes.toString('hex'),
    blob: hex,
  }));
}

export function fileVectors(model) {
  const all = cases(model);
  for (const group of [wrongStart, wrongEntries, wrongPlacement, wrongShapes, wrongFrames, wrongGeoreferencing, wrongContent]) group(all);
  return [...valid(model), ...all.found, ...mismatches(model)];
}
