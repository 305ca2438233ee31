// Header blobs, valid and malformed, for the conformance vectors.

import { blobBytes, expected, fieldsOf, headerBytes, pack, patched } from './arithmetic.mjs';
import { clauseOf } from './model.mjs';

const IMAGE = {
  image_width: 40,
  image_length: 25,
  tile_width: 16,
  tile_length: 8,
  samples_per_pixel: 3,
  bits_per_sample: 16,
  sample_format: 1,
  frame_unit: 0,
};
const FRAMES = 36;
const LARGEST_COUNT = 2 ** 32 - 1;
const COUNTS = Array.from({ length: FRAMES }, (_, i) => 100 + ((i * 37) % 50));

// --- Valid

function single(changes) {
  return { ...IMAGE, image_width: 16, image_length: 8, samples_per_pixel: 1, ...changes };
}

function widths(header) {
  return Array.from({ length: header.maxCountBits + 1 }, (_, width) => {
    const largest = Math.min(2 ** width - 1, LARGEST_COUNT - 1);
    const counts = [0, largest, Math.floor(largest / 2), Math.floor(largest / 3), largest].map((r) => 1 + r);
    return [`width-${width}`, `Residuals of ${width} bits.`, single({ samples_per_pixel: 5 }), width === 0 ? 1 : counts];
  });
}

function encodings(header) {
  return header.encodings.map(({ id, format, bits, doc }) => [
    `encoding-${format}-${bits}`,
    `Sample encoding ${id}: ${doc}.`,
    single({ sample_format: format, bits_per_sample: bits }),
    77,
  ]);
}

const SHAPES = [
  ['smallest', 'One pixel in one frame of one byte.', single({ image_width: 1, image_length: 1, tile_width: 1, tile_length: 1 }), 1],
  ['tile-frames', 'Three bands in tile frames; the last column and row of tiles are cut.', IMAGE, COUNTS],
  ['cell-frames', 'The same image in cell frames.', { ...IMAGE, frame_unit: 1 }, COUNTS.slice(0, 12)],
  ['equal-counts', 'All frames are equally long: count_bits is 0 and the blob ends with the header.', IMAGE, 321],
  ['one-cell-frame', 'One cell frame of many bands.', single({ samples_per_pixel: 300, frame_unit: 1 }), 5000],
  ['one-band-as-cell', 'With one band the two frame units are the same layout, and the blob may say either.', { ...IMAGE, samples_per_pixel: 1, frame_unit: 1 }, COUNTS.slice(0, 12)],
  ['frames-2', 'Two frames: TileOffsets is external, TileByteCounts is not.', single({ samples_per_pixel: 2 }), [9, 8]],
  ['frames-3', 'Three frames: TileByteCounts is external too.', single({ samples_per_pixel: 3 }), [7, 8, 9]],
  ['bands-4', 'Four bands: BitsPerSample and SampleFormat fit into their entries.', single({ samples_per_pixel: 4, frame_unit: 1 }), 50],
  ['bands-5', 'Five bands: BitsPerSample and SampleFormat are external.', single({ samples_per_pixel: 5, frame_unit: 1 }), 50],
  ['most-bands', 'As many bands as the field holds.', single({ samples_per_pixel: 65535 }), 3],
  ['tile-beyond-image', 'The largest tile on the smallest image: the only frame is cut to one pixel.', single({ image_width: 1, image_length: 1, tile_width: 65535, tile_length: 65535 }), 40],
  ['one-pixel-wider', 'An image one pixel wider and higher than its tiles.', single({ image_width: 513, image_length: 513, tile_width: 512, tile_length: 512 }), [400, 30, 30, 12]],
  ['tile-of-odd-size', 'A tile size that no TIFF library would write; the specification only asks for more than zero.', single({ image_width: 20, tile_width: 7, tile_length: 3 }), [3, 1, 4, 1, 5, 9, 2, 6, 5]],
  ['many-frames', '90,000 frames in 28 bytes.', single({ image_width: 300, image_length: 300, tile_width: 1, tile_length: 1 }), 20],
  ['beyond-4-gib', 'Offsets that need more than 32 bits.', single({ samples_per_pixel: 6 }), [...Array(5).fill(LARGEST_COUNT), 1000]],
  ['largest-image', 'The largest image in the largest tiles: planning must not cost by its frames.', { ...IMAGE, image_width: 2 ** 32 - 1, image_length: 2 ** 32 - 1, tile_width: 65535, tile_length: 65535, frame_unit: 1 }, 1],
];

function valid(model) {
  return [...SHAPES, ...encodings(model.header), ...widths(model.header)].map(([name, about, image, counts]) => ({
    name,
    about,
    verdict: 'valid',
    hex: blobBytes(model.header, image, counts).toString('hex'),
    ...expected(model, image, counts),
  }));
}

// --- Malformed

// Values just outside what a field accepts, from its `valid` in the .ksy.
function outside({ name, size, valid: rule, enum: enumeration }, header) {
  const unlisted = (listed) => Array.from({ length: 256 }, (_, i) => i).find((i) => !listed.includes(i));
  if (typeof rule === 'number') return [rule - 1, rule + 1];
  if (rule?.['any-of']) return [unlisted(rule['any-of'])];
  if (rule?.['in-enum']) return [unlisted(Object.keys(header.spec.enums[enumeration]).map(Number))];
  const values = [];
  if (rule?.min > 0) values.push(rule.min - 1);
  if (rule?.max < 256 ** size - 1) values.push(rule.max + 1);
  return name === 'sample_format' ? [4] : values;
}

function wrongFields(header) {
  const fields = fieldsOf(header, IMAGE, 100);
  return header.fixed.flatMap((field) =>
    outside(field, header).map((value) => ({
      name: `${field.name.replaceAll('_', '-')}-${value}`,
      about: `${field.name} is ${value}.`,
      // That no count is zero is said where the counts are defined.
      clause: field.name === 'count_min' ? 'Frame byte counts' : clauseOf(field),
      bytes: headerBytes(header, { ...fields, [field.name]: value }),
    })),
  );
}

function wrongPairs(header) {
  const pairs = [[1, 6], [1, 128], [2, 1], [3, 8], [5, 16], [6, 16], [100, 16], [104, 8], [107, 8], [4, 8]];
  const listed = header.encodings.map(({ format, bits }) => `${format}-${bits}`);
  return pairs
    .filter((pair) => !listed.includes(pair.join('-')))
    .map(([format, bits]) => ({
      name: `pair-${format}-${bits}`,
      about: `sample_format ${format} does not go with ${bits} bits.`,
      clause: clauseOf(header.fixed.find(({ name }) => name === 'sample_format')),
      bytes: blobBytes(header, { ...IMAGE, sample_format: format, bits_per_sample: bits }, 100),
    }));
}

function withWidth(header, width, residuals, changes = {}) {
  const fields = { ...fieldsOf(header, IMAGE, COUNTS), count_bits: width, ...changes };
  return Buffer.concat([headerBytes(header, fields), pack(residuals, width)]);
}

function wrongLengths(header) {
  const blob = blobBytes(header, IMAGE, COUNTS);
  const size = { clause: 'Header blob' };
  return [
    { ...size, name: 'empty', about: 'No bytes at all.', bytes: Buffer.alloc(0) },
    { ...size, name: 'cut-in-header', about: 'The last byte of the header is missing.', bytes: blob.subarray(0, header.size - 1) },
    { ...size, name: 'no-residuals', about: 'The packed residuals are missing.', bytes: blob.subarray(0, header.size) },
    { ...size, name: 'cut-in-residuals', about: 'The last byte is missing.', bytes: blob.subarray(0, -1) },
    { ...size, name: 'trailing-byte', about: 'A byte follows the packed residuals.', bytes: Buffer.concat([blob, Buffer.alloc(1)]) },
    { ...size, name: 'trailing-byte-without-residuals', about: 'A byte follows a header with count_bits 0.', bytes: Buffer.concat([blobBytes(header, IMAGE, 100), Buffer.alloc(1)]) },
    {
      ...size,
      name: 'claims-too-much',
      about: 'Residuals of more frames than memory holds are announced and missing.',
      bytes: headerBytes(header, {
        ...fieldsOf(header, IMAGE, 1),
        image_width: LARGEST_COUNT,
        image_length: LARGEST_COUNT,
        tile_width: 1,
        tile_length: 1,
        samples_per_pixel: 65535,
        count_bits: header.maxCountBits,
      }),
    },
  ];
}

function notCanonical(header) {
  const clause = 'Frame byte counts, Encoding';
  const residuals = COUNTS.map((count) => count - Math.min(...COUNTS));
  const { count_bits: width, count_min: smallest } = fieldsOf(header, IMAGE, COUNTS);
  const narrow = residuals.map((residual) => residual % 2 ** (width - 1));
  const spare = withWidth(header, 3, residuals.map((r) => (r === 0 ? 0 : 7)));
  return [
    { name: 'count-bits-too-large', about: 'One bit more than the largest residual needs.', clause, check: 'values', bytes: withWidth(header, width + 1, residuals) },
    { name: 'count-bits-for-equal-counts', about: 'All counts are equal, yet count_bits is 1.', clause, check: 'values', bytes: withWidth(header, 1, residuals.map(() => 0)) },
    { name: 'count-bits-for-one-frame', about: 'A single frame always has count_bits 0.', clause, check: 'values', bytes: Buffer.concat([headerBytes(header, { ...fieldsOf(header, single({}), 9), count_bits: 8 }), pack([0], 8)]) },
    { name: 'count-min-too-small', about: 'No count is as small as count_min.', clause, check: 'values', bytes: withWidth(header, width, [2 ** width - 1, ...narrow.slice(1).map((r) => Math.max(r, 1))], { count_min: smallest - 1 }) },
    { name: 'count-beyond-32-bits', about: 'count_min and a residual add up to more than TileByteCounts, a LONG, can hold.', clause: 'Fixed IFD', check: 'values', bytes: withWidth(header, 1, residuals.map((_, i) => i % 2), { count_min: LARGEST_COUNT }) },
    { name: 'unused-bits-set', about: 'The highest bit of the last byte belongs to no residual and is set.', clause: 'Frame byte counts, Packing', bytes: patched(spare, spare.length - 1, Buffer.from([spare.at(-1) | 0x80])) },
  ];
}

function malformed({ header }) {
  const swapped = Buffer.from(headerBytes(header, fieldsOf(header, IMAGE, 100)));
  swapped.subarray(0, 4).reverse();
  const magic = { name: 'magic-swapped', about: 'The magic value in big-endian order.', clause: clauseOf(header.fixed[0]), bytes: swapped };
  return [magic, ...wrongFields(header), ...wrongPairs(header), ...wrongLengths(header), ...notCanonical(header)].map(
    ({ name, about, clause, check = 'structure', bytes }) => ({ name, about, verdict: 'malformed', clause, check, hex: bytes.toString('hex') }),
  );
}

export const blobVectors = (model) => [...valid(model), ...malformed(model)];
