// Clauses about the file before its frames: profile, IFD, placement.

const FILE = new Registry('file');

const EXPECTED_TAGS = FORMAT.tags.map(({ value }) => value);
const TAG_NAMES = Object.fromEntries(FORMAT.tags.map(({ value, name }) => [value, name]));
const TAG_TYPES = Object.fromEntries(FORMAT.tags.map(({ value, type }) => [value, type]));

// Tags of TIFF and GeoTIFF that clauses forbid by name.
const STRIPS = { 273: 'StripOffsets', 278: 'RowsPerStrip', 279: 'StripByteCounts' };
const AUXILIARY = { 254: 'NewSubfileType', 255: 'SubfileType', 330: 'SubIFDs' };
const OTHER_GEO = { 33550: 'ModelPixelScaleTag', 33922: 'ModelTiepointTag', 34736: 'GeoDoubleParamsTag', 34737: 'GeoAsciiParamsTag' };
const NAMED = { ...STRIPS, ...AUXILIARY, ...OTHER_GEO };

const tagName = (tag) => `${TAG_NAMES[tag] ?? NAMED[tag] ?? 'tag'} (${tag})`;

function forbid(facts, tags) {
  const entry = facts.entries.find(({ tag }) => tag in tags);
  if (entry) throw new Broken('no such tag', `${tags[entry.tag]} (${entry.tag})`, { offset: entry.position });
}

FILE.clause('byte-order', 'File profile', 'the file uses little-endian byte order', ({ first }) => {
  const found = String.fromCharCode(...first.subarray(0, 2));
  if (found !== 'II') {
    const isText = /^[ -~]+$/.test(found);
    throw new Broken('II', isText ? found : hexBytes(first.subarray(0, 2)) || '0 bytes', { offset: 0 });
  }
});

FILE.clause('bigtiff', 'File profile', 'the file is BigTIFF', ({ first }) => {
  const isBigEndian = first[0] === 0x4d && first[1] === 0x4d;
  const wanted = FORMAT.bigtiff.bytes.slice(2, 8);
  const right = isBigEndian ? wanted.map((_, i) => wanted[i ^ 1]) : wanted;
  const found = first.subarray(2, 8);
  if (right.every((byte, i) => found[i] === byte)) return;
  throw new Broken(isBigEndian ? 'version 43, offset size 8' : hexBytes(wanted), hexBytes(found), { offset: 2 });
});

FILE.clause('one-ifd', 'File profile', 'the file has exactly one IFD', (facts) => {
  const [at, value] = facts.nextIfd;
  if (value) throw new Broken(0, value, { offset: at });
});

FILE.clause('no-overviews-masks', 'File profile', 'the file has no overviews, masks or auxiliary IFDs', (facts) => {
  forbid(facts, AUXILIARY);
});

FILE.clause('tiled', 'File profile', 'the image is tiled, not stripped', (facts) => {
  forbid(facts, STRIPS);
});

FILE.clause('tags', 'Fixed IFD', 'the IFD holds exactly the tags listed, and no others', (facts) => {
  const count = EXPECTED_TAGS.length;
  const offset = FORMAT.placement.ifdOffset;
  if (facts.entryCount > BigInt(count + Object.keys(NAMED).length)) throw new Broken(count, facts.entryCount, { offset });
  const { entries } = facts;
  const found = entries.map(({ tag }) => tag);
  // Tags that clauses of their own forbid are left to those.
  const other = entries.find(({ tag }) => !EXPECTED_TAGS.includes(tag) && !(tag in NAMED));
  if (other) throw new Broken('no other tag', tagName(other.tag), { offset: other.position });
  const missing = EXPECTED_TAGS.filter((tag) => !found.includes(tag)).map(tagName).join(', ');
  const twice = entries.filter(({ tag }) => found.indexOf(tag) !== found.lastIndexOf(tag));
  if (twice.length > 0) {
    const without = missing ? ` and no ${missing}` : '';
    throw new Broken('each tag once', `${tagName(twice[0].tag)} twice${without}`, { offset: twice[1].position });
  }
  if (missing) throw new Broken(`all ${count} tags`, `no ${missing}`, { offset });
});

FILE.clause('tag-order', 'Fixed IFD', 'the tags are in rising order', (facts) => {
  const at = facts.entries.findIndex(({ tag }, i) => i > 0 && tag < facts.entries[i - 1].tag);
  if (at > 0) {
    const [before, after] = [facts.entries[at - 1], facts.entries[at]];
    throw new Broken(`a tag above ${tagName(before.tag)}`, tagName(after.tag), { offset: after.position });
  }
});

FILE.clause('types', 'Fixed IFD', 'each tag has the type listed', (facts) => {
  const entry = facts.entries.find(({ tag, type }) => tag in TAG_TYPES && type !== TAG_TYPES[tag]);
  if (!entry) return;
  const { name, value } = FORMAT.types.find((type) => type.value === TAG_TYPES[entry.tag]);
  throw new Broken(`${TAG_NAMES[entry.tag]} of type ${name} (${value})`, entry.type, { offset: entry.position + FORMAT.ifd.entry.field_type });
});

function expectCounts(facts, expected) {
  const entry = facts.entries.find(({ tag, count }) => expected.has(tag) && count !== BigInt(expected.get(tag)));
  if (entry) {
    const offset = entry.position + FORMAT.ifd.entry.count;
    throw new Broken(`${tagName(entry.tag)} with ${expected.get(entry.tag)} values`, entry.count, { offset });
  }
}

FILE.clause('counts', 'Fixed IFD', 'each tag has the count listed', (facts) => {
  const fixed = FORMAT.tags.filter(({ count }) => typeof count === 'number');
  expectCounts(facts, new Map(fixed.map(({ value, count }) => [value, count])));
  const counts = { B: facts.number(TAG.samples_per_pixel), N: facts.entry(TAG.tile_offsets).count };
  for (const symbol of ['B', 'N']) {
    const tags = FORMAT.tags.filter(({ count }) => count === symbol);
    expectCounts(facts, new Map(tags.map(({ value }) => [value, counts[symbol]])));
  }
});

function expectPositive(facts, ...tags) {
  for (const tag of tags) {
    if (BigInt(facts.number(tag)) === 0n) throw new Broken(`${TAG_NAMES[tag]} of at least 1`, 0, { offset: facts.valueOffset(tag) });
  }
}

FILE.clause('image-size', FORMAT.clauses.image_width, 'the image is at least 1 x 1', (facts) => {
  expectPositive(facts, TAG.image_width, TAG.image_length);
});

FILE.clause('tile-size', FORMAT.clauses.tile_width, 'tile sizes are greater than zero', (facts) => {
  expectPositive(facts, TAG.tile_width, TAG.tile_length);
});

FILE.clause('bands', FORMAT.clauses.samples_per_pixel, 'SamplesPerPixel is at least 1', (facts) => {
  expectPositive(facts, TAG.samples_per_pixel);
});

FILE.clause('same-encoding', 'Sample encodings', 'all bands use the same pair', (facts) => {
  for (const tag of [TAG.bits_per_sample, TAG.sample_format]) {
    const values = facts.array(tag);
    const band = values.findIndex((value) => value !== values[0]);
    if (band >= 0) {
      const offset = facts.valueOffset(tag) + 2 * band;
      throw new Broken(`${TAG_NAMES[tag]} ${values[0]} in every band`, `${values[band]} in band ${band}`, { offset });
    }
  }
});

const encodingOf = (format, bits) => FORMAT.encodings.find((encoding) => encoding.format === format && encoding.bits === bits);

FILE.clause('encoding', 'Sample encodings', 'the (sample_format, bits_per_sample) pair is listed', (facts) => {
  const pair = [facts.number(TAG.sample_format), facts.number(TAG.bits_per_sample)];
  if (!encodingOf(...pair)) throw new Broken('a listed pair', `(${pair.join(', ')})`, { offset: facts.valueOffset(TAG.sample_format) });
});

FILE.clause('frame-unit', 'Deriving the frame unit', 'the entry count of TileOffsets fits a unit', (facts) => {
  const positions = facts.grid[0] * facts.grid[1];
  const inTiles = positions * BigInt(facts.number(TAG.samples_per_pixel));
  const { count, position } = facts.entry(TAG.tile_offsets);
  if (count !== positions && count !== inTiles) {
    throw new Broken(`${positions} (cell) or ${inTiles} (tile)`, count, { offset: position + FORMAT.ifd.entry.count });
  }
});

FILE.clause('ifd-position', 'Placement', 'the IFD starts at byte 16, before the frame data', (facts) => {
  const { ifdOffset } = FORMAT.placement;
  if (facts.ifdOffset !== BigInt(ifdOffset)) {
    throw new Broken(ifdOffset, facts.ifdOffset, { offset: FORMAT.bigtiff.offsets.ofs_ifd });
  }
});

FILE.clause('placement', 'Placement', 'larger values follow the IFD in rising tag order, no gaps', ({ entries }) => {
  if (entries.length !== EXPECTED_TAGS.length || entries.some(({ tag }, i) => tag !== EXPECTED_TAGS[i])) {
    throw new NotChecked('the tags are not the listed ones in order');
  }
  let position = BigInt(FORMAT.placement.externalOffset);
  for (const entry of entries) {
    if (entry.type !== TAG_TYPES[entry.tag]) throw new NotChecked(`${TAG_NAMES[entry.tag]} has another type`);
    if (entry.isInline) continue;
    if (entry.offset !== position) {
      const offset = entry.position + FORMAT.ifd.entry.value_or_offset;
      throw new Broken(`${TAG_NAMES[entry.tag]} at byte ${position}`, entry.offset, { offset });
    }
    position += entry.size;
  }
});

FILE.clause('base-frame-offset', 'Deriving base_frame_offset', 'the formula gives the first TileOffsets', (facts) => {
  const { offsets } = facts.frames;
  const bands = facts.number(TAG.samples_per_pixel);
  if (!(bands >= 1 && bands <= 65535)) throw new NotChecked('the band count is not 1 to 65535');
  const base = frameDataOffset(offsets.length, bands);
  if (facts.isInOrder && BigInt(offsets[0]) !== base) throw new Broken(base, offsets[0], { offset: facts.valueOffset(TAG.tile_offsets) });
});

FILE.clause('not-sparse', 'File profile', 'every frame is present, with a byte count above zero', (facts) => {
  const frame = facts.frames.counts.findIndex((count) => BigInt(count) === 0n);
  if (frame >= 0) {
    const offset = facts.valueOffset(TAG.tile_byte_counts) + 4 * frame;
    throw new Broken(`a byte count above 0 for frame ${frame}`, 0, { offset });
  }
});

FILE.clause('frame-order', 'Rejected orders', 'frames are stored in frame-index order', (facts) => {
  const { offsets } = facts.frames;
  if (facts.isInOrder) return;
  const frame = offsets.findIndex((offset, i) => i > 0 && offset < offsets[i - 1]);
  throw new Broken(
    `frame ${frame} after frame ${frame - 1}, which starts at byte ${offsets[frame - 1]}`,
    `frame ${frame} at byte ${offsets[frame]}`,
    { offset: facts.valueOffset(TAG.tile_offsets) + 8 * frame },
  );
});

FILE.clause('contiguous', 'File profile', 'the frames form one run, each immediately after the last', (facts) => {
  const { offsets, counts } = facts.frames;
  const order = Uint32Array.from(offsets, (_, i) => i);
  if (!facts.isInOrder) order.sort((a, b) => (offsets[a] < offsets[b] ? -1 : offsets[a] > offsets[b] ? 1 : a - b));
  for (let i = 1; i < order.length; i += 1) {
    const end = offsets[order[i - 1]] + counts[order[i - 1]];
    if (offsets[order[i]] !== end) {
      const offset = facts.valueOffset(TAG.tile_offsets) + 8 * order[i];
      throw new Broken(`frame ${order[i]} at byte ${end}`, offsets[order[i]], { offset });
    }
  }
});

FILE.clause('complete', 'File profile', 'the file ends with its last frame', (facts) => {
  const { externalOffset } = FORMAT.placement;
  const { size } = facts;
  if (size < externalOffset) throw new Broken(`at least ${externalOffset} bytes`, size, { offset: size });
  // Where its entries are not all there, nothing else can be checked.
  const ifd = facts.ifdOffset + 8n + facts.entryCount * BigInt(FORMAT.placement.entrySize) + 8n;
  if (ifd > BigInt(size)) throw new Broken(`${ifd} bytes of header and IFD`, size, { offset: size });
  const claimed = facts.entry(TAG.tile_offsets).count;
  const index = facts.entries.reduce((sum, entry) => (entry.isInline ? sum : sum + entry.size), BigInt(externalOffset));
  if (index > BigInt(size)) throw new Broken(`${index} bytes of index for ${claimed} frames`, size, { offset: size });
  const end = BigInt(facts.end);
  if (end !== BigInt(size)) throw new Broken(`a file of ${end} bytes`, size, { offset: end < BigInt(size) ? Number(end) : size });
});
