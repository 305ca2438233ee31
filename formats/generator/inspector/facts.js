// What a file and a blob say, read leniently: whatever is wrong is kept, not
// refused. What has to be read is read first, in slices; the clauses then look
// at what there is.

// An IFD with more entries than this is looked at no further.
const MAX_ENTRIES = 4096;

// TIFF's own field types, most of which no rumi file uses.
const TIFF_WIDTHS = { 1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8 };

// Frames begin with OpenZL's magic number and its format version.
const FRAME_MAGIC = 0xd7b1a5c0;
const FRAME_VERSIONS = 64;

// Reads of frame starts: what lies between two is read too if it is little.
const START_GAP = 1 << 12;
const START_SPAN = 1 << 20;
const MAX_START_READS = 1 << 13;
const MAX_START_BYTES = 1 << 26;
const CONCURRENT_READS = 32;

const TAG = Object.fromEntries(FORMAT.tags.map(({ id, value }) => [id, value]));

class Kept {
  // Calculates a value once; a failure is thrown again each time.
  constructor() {
    this.kept = new Map();
  }

  keep(name, calculate) {
    if (!this.kept.has(name)) {
      try {
        this.kept.set(name, { value: calculate() });
      } catch (error) {
        this.kept.set(name, { error });
      }
    }
    const { error, value } = this.kept.get(name);
    if (error) throw error;
    return value;
  }

  async load(name, read) {
    try {
      this.kept.set(name, { value: await read() });
    } catch (error) {
      if (!(error instanceof NotChecked)) throw error;
      this.kept.set(name, { error });
    }
  }

  get(name) {
    return this.keep(name, () => {
      throw new NotChecked(`${name} was not read`);
    });
  }
}

class FileFacts extends Kept {
  static async open(file) {
    const facts = new FileFacts();
    facts.file = file;
    facts.size = file.size;
    facts.first = await readBytes(file, 0, FORMAT.placement.externalOffset);
    await facts.load('entry count', async () => {
      const head = await facts.read(facts.ifdOffset, FORMAT.ifd.countSize, 'the IFD');
      return viewOf(head).getBigUint64(0, true);
    });
    await facts.load('entries', () => facts.readEntries());
    await facts.load('next IFD', async () => {
      const at = facts.ifdOffset + BigInt(FORMAT.ifd.countSize + facts.entries.length * FORMAT.placement.entrySize);
      const raw = await facts.read(at, 8, 'the offset of the next IFD');
      return [Number(at), viewOf(raw).getBigUint64(0, true)];
    });
    for (const { value } of FORMAT.tags) await facts.load(value, () => facts.readValue(value));
    await facts.load('starts', () => facts.readStarts());
    return facts;
  }

  get ifdOffset() {
    const { bytes, offsets } = FORMAT.bigtiff;
    const isBigTiff = bytes.slice(0, 4).every((byte, i) => this.first[i] === byte);
    if (!isBigTiff || this.first.length < bytes.length) throw new NotChecked('the file is no little-endian BigTIFF');
    return viewOf(this.first).getBigUint64(offsets.ofs_ifd, true);
  }

  get entryCount() {
    return this.get('entry count');
  }

  get entries() {
    return this.get('entries');
  }

  get nextIfd() {
    return this.get('next IFD');
  }

  // Bytes that must be inside the file.
  async read(start, size, what) {
    if (BigInt(start) + BigInt(size) > BigInt(this.size)) throw new NotChecked(`${what} reaches beyond the end of the file`);
    return readBytes(this.file, Number(start), Number(size));
  }

  async readEntries() {
    const count = this.entryCount;
    if (count > BigInt(MAX_ENTRIES)) throw new NotChecked(`the IFD claims ${count} entries`);
    const { placement, ifd } = FORMAT;
    const start = this.ifdOffset + BigInt(ifd.countSize);
    const raw = await this.read(start, count * BigInt(placement.entrySize), 'the IFD');
    return Array.from({ length: Number(count) }, (_, i) => {
      const bytes = raw.subarray(i * placement.entrySize, (i + 1) * placement.entrySize);
      const view = viewOf(bytes);
      const type = view.getUint16(ifd.entry.field_type, true);
      const size = view.getBigUint64(ifd.entry.count, true) * BigInt(TIFF_WIDTHS[type] ?? 1);
      return {
        position: Number(start) + i * placement.entrySize,
        tag: view.getUint16(ifd.entry.tag, true),
        type,
        count: view.getBigUint64(ifd.entry.count, true),
        size,
        isInline: size <= BigInt(placement.inlineSize),
        value: bytes.subarray(ifd.entry.value_or_offset, ifd.entry.value_or_offset + placement.inlineSize),
        offset: view.getBigUint64(ifd.entry.value_or_offset, true),
      };
    });
  }

  async readValue(tag) {
    const entry = this.entry(tag);
    if (entry.isInline) return entry.value.subarray(0, Number(entry.size));
    if (entry.size > BigInt(8 * MAX_FRAMES) && entry.offset + entry.size <= BigInt(this.size)) {
      throw new NotChecked(`the ${grouped(entry.count)} values of tag ${tag} are more than this page looks at; \`rumi validate\` does`);
    }
    return this.read(entry.offset, entry.size, `the value of tag ${tag}`);
  }

  entry(tag) {
    const entry = this.entries.find((candidate) => candidate.tag === tag);
    if (!entry) throw new NotChecked(`tag ${tag} is missing`);
    return entry;
  }

  // The value of a tag as numbers of its own type.
  array(tag) {
    return this.keep(`array ${tag}`, () => {
      const entry = this.entry(tag);
      const type = FORMAT.types.find(({ value }) => value === entry.type);
      if (!type) throw new NotChecked(`tag ${tag} has type ${entry.type}`);
      if (entry.count === 0n) throw new NotChecked(`tag ${tag} has no value`);
      return ARRAYS[type.name](this.get(tag));
    });
  }

  integers(tag) {
    const values = this.array(tag);
    if (this.entry(tag).type === FORMAT.type.DOUBLE) throw new NotChecked(`tag ${tag} has type ${FORMAT.type.DOUBLE}`);
    return values;
  }

  number(tag) {
    return this.integers(tag)[0];
  }

  valueOffset(tag) {
    const entry = this.entry(tag);
    return entry.isInline ? entry.position + FORMAT.ifd.entry.value_or_offset : Number(entry.offset);
  }

  // Grid rows and columns.
  get grid() {
    const sides = [TAG.image_length, TAG.tile_length, TAG.image_width, TAG.tile_width].map((tag) => this.number(tag));
    if (sides.some((side) => BigInt(side) === 0n)) throw new NotChecked('an image or tile side is 0');
    return [ceilDiv(sides[0], sides[1]), ceilDiv(sides[2], sides[3])];
  }

  get frameUnit() {
    const positions = this.grid[0] * this.grid[1];
    const { count } = this.entry(TAG.tile_offsets);
    if (count === positions * BigInt(this.number(TAG.samples_per_pixel))) return FORMAT.frameUnit.tile;
    if (count === positions) return FORMAT.frameUnit.cell;
    throw new NotChecked('the number of frames fits no frame unit');
  }

  // Offsets and sizes of the frames; both arrays hold numbers of one kind.
  get frames() {
    return this.keep('frames', () => {
      const arrays = [this.integers(TAG.tile_offsets), this.integers(TAG.tile_byte_counts)];
      if (arrays[0].length !== arrays[1].length) throw new NotChecked('TileOffsets and TileByteCounts differ in length');
      const isExact = arrays.some((array) => array instanceof BigUint64Array);
      const [offsets, counts] = arrays.map((array) => (isExact ? BigUint64Array.from(array, BigInt) : array));
      return { offsets, counts, isExact };
    });
  }

  get isInOrder() {
    return this.keep('in order', () => {
      const { offsets } = this.frames;
      return offsets.every((offset, i) => i === 0 || offset >= offsets[i - 1]);
    });
  }

  get end() {
    return this.keep('end', () => {
      const { offsets, counts } = this.frames;
      return offsets.reduce((end, offset, i) => (offset + counts[i] > end ? offset + counts[i] : end), offsets[0]);
    });
  }

  // The first four bytes of every frame: of small neighbours with one read, of large ones with one each.
  async readStarts() {
    const { offsets, counts } = this.frames;
    if (this.end > this.size) throw new NotChecked('frames reach beyond the end of the file');
    const groups = [];
    let total = 0;
    for (let k = 0; k < offsets.length; k += 1) {
      const [start, end] = [Number(offsets[k]), Number(offsets[k]) + 4];
      const last = groups.at(-1);
      const isNear = last && start >= last.start && start - last.end <= START_GAP && end - last.start <= START_SPAN;
      total += isNear ? Math.max(0, end - last.end) : end - start;
      if (isNear) Object.assign(last, { stop: k + 1, end: Math.max(last.end, end) });
      else groups.push({ start, end, first: k, stop: k + 1 });
      if (groups.length > MAX_START_READS || total > MAX_START_BYTES) {
        throw new NotChecked(`${plural(offsets.length, 'frame')} so far apart are more than this page looks at; \`rumi validate\` does`);
      }
    }
    const starts = new Uint8Array(4 * offsets.length);
    const read = async ({ start, end, first, stop }) => {
      const bytes = await readBytes(this.file, start, end - start);
      for (let k = first; k < stop; k += 1) {
        const at = Number(offsets[k]) - start;
        starts.set(bytes.subarray(at, at + Math.min(4, Number(counts[k]))), 4 * k);
      }
    };
    for (let i = 0; i < groups.length; i += CONCURRENT_READS) {
      await Promise.all(groups.slice(i, i + CONCURRENT_READS).map(read));
    }
    return starts;
  }
}

class BlobFacts extends Kept {
  static async open(file) {
    const facts = new BlobFacts();
    facts.length = file.size;
    // What no blob of a number of frames that is looked at can be is not read.
    const limit = FORMAT.header.size + 5 * MAX_FRAMES;
    facts.bytes = await readBytes(file, 0, file.size > limit ? FORMAT.header.size : file.size);
    facts.last = (await readBytes(file, Math.max(0, file.size - 1), 1))[0];
    return facts;
  }

  get fields() {
    if (this.length < FORMAT.header.size) throw new NotChecked('the blob is shorter than its fixed part');
    return this.keep('fields', () => readFields(this.bytes, FORMAT.header.fields));
  }

  get grid() {
    const f = this.fields;
    if (!f.tile_width || !f.tile_length) throw new NotChecked('a tile side is 0');
    return [ceilDiv(f.image_length, f.tile_length), ceilDiv(f.image_width, f.tile_width)];
  }

  get frameCount() {
    const bands = this.fields.frame_unit === FORMAT.frameUnit.tile ? this.fields.samples_per_pixel : 1;
    return this.grid[0] * this.grid[1] * BigInt(bands);
  }

  // Bytes that the blob's own fields demand.
  get size() {
    return BigInt(FORMAT.header.size) + ceilDiv(this.frameCount * BigInt(this.fields.count_bits), 8);
  }

  // The byte counts, wider than a LONG so that none wraps.
  get counts() {
    return this.keep('counts', () => {
      const bits = this.fields.count_bits;
      if (BigInt(this.length) !== this.size || bits > FORMAT.header.maxCountBits) {
        throw new NotChecked('the packed sizes are not what the fields demand');
      }
      const count = this.frameCount;
      if (count === 0n) throw new NotChecked('the blob has no frames');
      if (count > BigInt(MAX_FRAMES)) throw new NotChecked(`${count} byte counts are too many to look at`);
      return unpack(this.bytes.subarray(FORMAT.header.size), this.fields.count_min, bits, Number(count));
    });
  }
}

// Byte counts from the packed residuals, which touch at most five bytes each.
function unpack(packed, smallest, bits, count) {
  const counts = new Float64Array(count).fill(smallest);
  if (bits === 0) return counts;
  for (let i = 0; i < count; i += 1) {
    const first = Math.floor((i * bits) / 8);
    const shift = (i * bits) % 8;
    let span = 0;
    for (let at = Math.ceil((shift + bits) / 8) - 1; at >= 0; at -= 1) span = span * 256 + packed[first + at];
    counts[i] += Math.floor(span / 2 ** shift) % 2 ** bits;
  }
  return counts;
}
