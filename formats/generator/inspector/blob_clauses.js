// Clauses about the header blob, and about blob and file together.

const BLOB = new Registry('blob');
const MATCH = new Registry('match');

const COUNTS = 'Frame byte counts';
const FIELD_OFFSETS = Object.fromEntries(FORMAT.header.fields.map(({ name, offset }) => [name, offset]));

function expectField({ fields }, name, isAllowed, text) {
  if (!isAllowed(fields[name])) throw new Broken(`${name} ${text}`, fields[name], { offset: FIELD_OFFSETS[name] });
}

const isPositive = (value) => value >= 1;

BLOB.clause('magic', FORMAT.clauses.magic, `the magic value is ${hex(FORMAT.header.magic, 8)}`, ({ fields }) => {
  if (fields.magic !== FORMAT.header.magic) throw new Broken(hex(FORMAT.header.magic, 8), hex(fields.magic, 8), { offset: 0 });
});

BLOB.clause('version', FORMAT.clauses.version, `the format version is ${FORMAT.header.version}`, (facts) => {
  expectField(facts, 'version', (value) => value === FORMAT.header.version, FORMAT.header.version);
});

BLOB.clause('image-size', FORMAT.clauses.image_width, 'the image is at least 1 x 1', (facts) => {
  for (const name of ['image_width', 'image_length']) expectField(facts, name, isPositive, 'of at least 1');
});

BLOB.clause('tile-size', FORMAT.clauses.tile_width, 'tile sizes are greater than zero', (facts) => {
  for (const name of ['tile_width', 'tile_length']) expectField(facts, name, isPositive, 'of at least 1');
});

BLOB.clause('bands', FORMAT.clauses.samples_per_pixel, 'samples_per_pixel is at least 1', (facts) => {
  expectField(facts, 'samples_per_pixel', isPositive, 'of at least 1');
});

BLOB.clause('encoding', FORMAT.clauses.sample_format, 'the (sample_format, bits_per_sample) pair is listed', ({ fields }) => {
  const pair = [fields.sample_format, fields.bits_per_sample];
  if (!encodingOf(...pair)) throw new Broken('a listed pair', `(${pair.join(', ')})`, { offset: FIELD_OFFSETS.bits_per_sample });
});

BLOB.clause('frame-unit', FORMAT.clauses.frame_unit, 'frame_unit is 0 (tile) or 1 (cell)', (facts) => {
  expectField(facts, 'frame_unit', (value) => Object.values(FORMAT.frameUnit).includes(value), '0 or 1');
});

BLOB.clause('count-bits', FORMAT.clauses.count_bits, 'count_bits is between 0 and 32', (facts) => {
  const { maxCountBits } = FORMAT.header;
  expectField(facts, 'count_bits', (value) => value <= maxCountBits, `0 to ${maxCountBits}`);
});

BLOB.clause('size', 'Header blob', 'the blob is exactly 28 + ceil(N * count_bits / 8) bytes', (facts) => {
  const { length } = facts;
  if (length < FORMAT.header.size) throw new Broken(`at least ${FORMAT.header.size} bytes`, length, { offset: length });
  if (facts.fields.count_bits > FORMAT.header.maxCountBits) throw new NotChecked('count_bits is not a width');
  const { size } = facts;
  if (BigInt(length) !== size) throw new Broken(`${size} bytes`, length, { offset: size < BigInt(length) ? Number(size) : length });
});

BLOB.clause('counts-positive', COUNTS, 'every count is greater than zero', (facts) => {
  expectField(facts, 'count_min', isPositive, 'of at least 1');
});

BLOB.clause('counts-width', 'Fixed IFD', 'every count fits TileByteCounts, a LONG', ({ counts }) => {
  const frame = counts.findIndex((count) => count > 0xffffffff);
  if (frame >= 0) throw new Broken(`at most ${0xffffffff}`, `${counts[frame]} of frame ${frame}`);
});

BLOB.clause('canonical-min', `${COUNTS}, Encoding`, 'count_min is the smallest count', ({ counts, fields }) => {
  const smallest = counts.reduce((a, b) => Math.min(a, b));
  if (smallest !== fields.count_min) throw new Broken(smallest, fields.count_min, { offset: FIELD_OFFSETS.count_min });
});

BLOB.clause('canonical-bits', `${COUNTS}, Encoding`, 'count_bits is the least width that serves', ({ counts, fields }) => {
  const largest = counts.reduce((a, b) => Math.max(a, b)) - fields.count_min;
  const bits = largest === 0 ? 0 : largest.toString(2).length;
  if (bits !== fields.count_bits) throw new Broken(bits, fields.count_bits, { offset: FIELD_OFFSETS.count_bits });
});

BLOB.clause('spare-bits', `${COUNTS}, Packing`, 'unused bits in the final byte are zero', (facts) => {
  if (BigInt(facts.length) !== facts.size) throw new NotChecked('the blob has another size');
  const used = Number((facts.frameCount * BigInt(facts.fields.count_bits)) % 8n);
  if (used && facts.last >> used) throw new Broken(`zeros above bit ${used - 1}`, hex(facts.last, 2), { offset: facts.length - 1 });
});

function expectSame({ blob, file }, ...names) {
  for (const name of names) {
    const expected = file.number(TAG[name]);
    expectField(blob, name, (value) => value === expected, `${expected} as in the IFD`);
  }
}

MATCH.clause('image-size', FORMAT.clauses.image_width, 'the image size matches the IFD', (facts) => {
  expectSame(facts, 'image_width', 'image_length');
});

MATCH.clause('tile-size', FORMAT.clauses.tile_width, 'the tile size matches the IFD', (facts) => {
  expectSame(facts, 'tile_width', 'tile_length');
});

MATCH.clause('bands', FORMAT.clauses.samples_per_pixel, 'the band count matches the IFD', (facts) => {
  expectSame(facts, 'samples_per_pixel');
});

MATCH.clause('encoding', FORMAT.clauses.sample_format, 'the sample encoding matches the IFD', (facts) => {
  expectSame(facts, 'bits_per_sample', 'sample_format');
});

MATCH.clause('frame-unit', 'Deriving the frame unit', 'frame_unit is the one of the IFD', ({ blob, file }) => {
  // With one band the two layouts are identical and either is correct.
  if (file.number(TAG.samples_per_pixel) === 1) return;
  const { frameUnit } = file;
  if (blob.fields.frame_unit !== frameUnit) throw new Broken(frameUnit, blob.fields.frame_unit, { offset: FIELD_OFFSETS.frame_unit });
});

// The first frame whose counts differ, or -1.
const differing = (a, b) => a.findIndex((value, i) => Number(value) !== b[i]);

MATCH.clause('counts', COUNTS, 'the counts are those of TileByteCounts', ({ blob, file }) => {
  const { counts } = file.frames;
  if (BigInt(counts.length) !== blob.frameCount) throw new NotChecked('blob and file have different numbers of frames');
  const frame = differing(counts, blob.counts);
  if (frame >= 0) throw new Broken(`${counts[frame]} for frame ${frame}`, blob.counts[frame]);
});

MATCH.clause('offsets', 'Offset reconstruction', 'the reconstructed offsets match TileOffsets', ({ blob, file }) => {
  const { offsets, counts } = file.frames;
  const bands = blob.fields.samples_per_pixel;
  if (!bands) throw new NotChecked('the blob has no bands');
  if (BigInt(counts.length) !== blob.frameCount || differing(counts, blob.counts) >= 0) throw new NotChecked('the counts differ');
  let expected = Number(frameDataOffset(counts.length, bands));
  // The sum is exact up to the first difference, since every offset before it is.
  const frame = offsets.findIndex((offset, i) => {
    if (Number(offset) !== expected) return true;
    expected += blob.counts[i];
    return false;
  });
  if (frame >= 0) throw new Broken(`${expected} for frame ${frame}`, offsets[frame]);
});
