// The arithmetic of the specification, for the conformance vectors: from the
// description of an image to the bytes of its header blob and of its file.
//
// Places, widths and constants come from the .ksy; everything computed is
// computed here in its own words, so that a vector can disagree with a parser.

import assert from 'node:assert/strict';
import { externalValue } from './model.mjs';

export function integer(value, size) {
  let rest = BigInt(value);
  const bytes = Buffer.alloc(size);
  for (let i = 0; i < size; i += 1, rest >>= 8n) bytes[i] = Number(rest & 0xffn);
  assert.equal(rest, 0n, `${value} in ${size} bytes`);
  return bytes;
}

export function double(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return bytes;
}

export function patched(bytes, offset, replacement) {
  return Buffer.concat([bytes.subarray(0, offset), replacement, bytes.subarray(offset + replacement.length)]);
}

export const replacing = (list, index, value) => list.map((item, i) => (i === index ? value : item));

// --- Frame index

const tilesAlong = (extent, tile) => Math.ceil(extent / tile);

export function gridOf(image) {
  const across = tilesAlong(image.image_width, image.tile_width);
  const down = tilesAlong(image.image_length, image.tile_length);
  return { across, down, count: across * down * (image.frame_unit === 0 ? image.samples_per_pixel : 1) };
}

// Where frame `index` belongs and what it holds; edge tiles are cut.
function placeOf(image, grid, index) {
  const bands = image.frame_unit === 0 ? image.samples_per_pixel : 1;
  const position = Math.floor(index / bands);
  const row = Math.floor(position / grid.across);
  const col = position % grid.across;
  const side = (at, tile, extent) => Math.min((at + 1) * tile, extent) - at * tile;
  return {
    row,
    col,
    band: image.frame_unit === 0 ? index % bands : null,
    height: side(row, image.tile_length, image.image_length),
    width: side(col, image.tile_width, image.image_width),
  };
}

// --- Frame byte counts and offsets

// `counts` is an array, or one number where all frames are equally long.
const countAt = (counts, index) => (Array.isArray(counts) ? counts[index] : counts);

function sumBefore(counts, index) {
  if (!Array.isArray(counts)) return counts * index;
  return counts.slice(0, index).reduce((sum, count) => sum + count, 0);
}

export function residualWidth(counts) {
  if (!Array.isArray(counts)) return { count_min: counts, count_bits: 0 };
  const smallest = counts.reduce((a, b) => Math.min(a, b));
  const spread = counts.reduce((a, b) => Math.max(a, b)) - smallest;
  return { count_min: smallest, count_bits: spread === 0 ? 0 : spread.toString(2).length };
}

export function pack(residuals, width) {
  if (width === 0) return Buffer.alloc(0);
  // The first residual stands in the lowest bits, so the digits are written backwards.
  const digits = residuals.map((residual) => residual.toString(2).padStart(width, '0')).reverse().join('');
  return integer(BigInt(`0b${digits}`), Math.ceil((residuals.length * width) / 8));
}

export function baseFrameOffset(file, bands, count) {
  const sizes = file.tags.map((tag) => {
    const number = { B: bands, N: count }[tag.count] ?? tag.count;
    const size = number * tag.type.size;
    // The formula of the specification, condition by condition.
    const { condition } = externalValue(tag, file.inlineSize);
    const least = condition ? Number(/>= (\d+)$/.exec(condition)[1]) : 0;
    const isScalar = Number.isInteger(tag.count) && size <= file.inlineSize;
    return isScalar || number < least ? 0 : size;
  });
  const external = sizes.reduce((sum, size) => sum + size, 0);
  return { external, base_frame_offset: file.externalOffset + external };
}

// --- Header blob

// The fixed part from any values, valid or not.
export function headerBytes(header, fields) {
  return Buffer.concat(header.fixed.map(({ name, size }) => integer(fields[name], size)));
}

export function fieldsOf(header, image, counts) {
  const listed = { magic: header.magic, version: header.version, ...image, ...residualWidth(counts) };
  return Object.fromEntries(header.fixed.map(({ name }) => [name, listed[name]]));
}

export function blobBytes(header, image, counts) {
  const fields = fieldsOf(header, image, counts);
  const residuals = Array.isArray(counts) ? counts.map((count) => count - fields.count_min) : [];
  return Buffer.concat([headerBytes(header, fields), pack(residuals, fields.count_bits)]);
}

const SHOWN = 16;

function shown(count) {
  if (count <= SHOWN) return Array.from({ length: count }, (_, i) => i);
  return [0, 1, Math.floor(count / 2), count - 2, count - 1];
}

// What a reader knows of an image from its blob alone.
export function expected(model, image, counts) {
  const grid = gridOf(image);
  if (Array.isArray(counts)) assert.equal(counts.length, grid.count);
  const placement = baseFrameOffset(model.file, image.samples_per_pixel, grid.count);
  const encoding = model.header.encodings.find(
    ({ format, bits }) => format === image.sample_format && bits === image.bits_per_sample,
  );
  const result = {
    fields: fieldsOf(model.header, image, counts),
    derived: {
      encoding: encoding.id,
      tiles_across: grid.across,
      tiles_down: grid.down,
      frame_count: grid.count,
      ...placement,
      file_size: placement.base_frame_offset + sumBefore(counts, grid.count),
    },
    frames: shown(grid.count).map((index) => ({
      index,
      ...placeOf(image, grid, index),
      byte_count: countAt(counts, index),
      offset: placement.base_frame_offset + sumBefore(counts, index),
    })),
  };
  assert(Object.values(result.derived).every((n) => typeof n === 'string' || Number.isSafeInteger(n)));
  return result;
}

// --- File

const ENCODERS = { SHORT: (v) => integer(v, 2), LONG: (v) => integer(v, 4), LONG8: (v) => integer(v, 8), DOUBLE: double };

export const encode = (typeName, values) => Buffer.concat(values.map(ENCODERS[typeName]));

// Everything a file is made of, to be changed before it is laid out.
export function partsOf(model, image, frames, { keys, matrix }) {
  const { base_frame_offset: base } = baseFrameOffset(model.file, image.samples_per_pixel, frames.length);
  const counts = frames.map(({ length }) => length);
  const bands = Array(image.samples_per_pixel);
  const values = {
    image_width: [image.image_width],
    image_length: [image.image_length],
    bits_per_sample: [...bands].fill(image.bits_per_sample),
    samples_per_pixel: [image.samples_per_pixel],
    tile_width: [image.tile_width],
    tile_length: [image.tile_length],
    tile_offsets: counts.map((_, index) => base + sumBefore(counts, index)),
    tile_byte_counts: counts,
    sample_format: [...bands].fill(image.sample_format),
    model_transformation: matrix,
    geo_key_directory: keys,
  };
  return {
    start: model.file.fields.filter(({ name }) => name !== 'ifd').map(({ name, size, valid }) => ({ name, size, value: valid })),
    entries: model.file.tags.map((tag) => ({
      id: tag.id,
      tag: tag.value,
      type: tag.type.value,
      typeName: tag.type['-orig-id'],
      values: values[tag.id],
    })),
    next: 0,
    frames,
  };
}

// Offsets of external values follow from what precedes them, as in Placement.
// `order` puts the values elsewhere, `gap` bytes after each.
export function layOut(model, parts) {
  const { entrySize, inlineSize, ifdOffset } = model.file;
  const ifdSize = 8 + entrySize * parts.entries.length + 8;
  const raws = new Map(parts.entries.map((entry) => [entry, encode(entry.typeName, entry.values)]));
  const places = new Map();
  const external = [];
  let at = ifdOffset + ifdSize;
  for (const entry of parts.order ?? parts.entries) {
    const raw = raws.get(entry);
    if (raw.length > inlineSize) {
      places.set(entry, at);
      const value = Buffer.concat([raw, Buffer.alloc(parts.gap ?? 0)]);
      external.push(value);
      at += value.length;
    }
  }
  const entries = parts.entries.map((entry) => {
    const raw = raws.get(entry);
    const place = places.has(entry) ? integer(places.get(entry), inlineSize) : patched(Buffer.alloc(inlineSize), 0, raw);
    return Buffer.concat([integer(entry.tag, 2), integer(entry.type, 2), integer(entry.count ?? entry.values.length, 8), place]);
  });
  return Buffer.concat([
    ...parts.start.map(({ value, size }) => (typeof value === 'string' ? Buffer.from(value, 'latin1') : integer(value, size))),
    integer(parts.entries.length, 8),
    ...entries,
    integer(parts.next, 8),
    ...external,
    ...parts.frames,
  ]);
}
