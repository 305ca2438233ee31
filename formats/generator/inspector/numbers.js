// Bytes and numbers. What a file says may be any 64-bit number, so such numbers
// are BigInt until they are known to be places in a file.

// The numbers of frames, windows and bytes that the page goes along with. More
// than this is said to be too much, never tried.
const MAX_FRAMES = 1 << 22;
const MAX_PLANNED = 1 << 18;

class Broken extends Error {
  constructor(expected, found, { offset = null, reason = '' } = {}) {
    super(`expected ${expected}, found ${found}`);
    Object.assign(this, { expected: String(expected), found: String(found), offset, reason });
  }
}

class NotChecked extends Error {}

// A request that the page declines, with a sentence for the reader.
class Refused extends Error {}

const isSafe = (big) => big <= BigInt(Number.MAX_SAFE_INTEGER);

function viewOf(bytes) {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

// Bytes of a file, fewer where it is shorter. Only what is asked for is read.
async function readBytes(file, start, size) {
  return new Uint8Array(await file.slice(start, start + size).arrayBuffer());
}

const READERS = {
  uint8: (view, at) => view.getUint8(at),
  uint16: (view, at) => view.getUint16(at, true),
  uint32: (view, at) => view.getUint32(at, true),
  uint64: (view, at) => view.getBigUint64(at, true),
};

function readFields(bytes, fields) {
  const view = viewOf(bytes);
  return Object.fromEntries(fields.map(({ name, offset, type }) => [name, READERS[type](view, offset)]));
}

// 64-bit numbers as doubles where all of them are exact with room for a sum of
// two, else as they are. Both kinds of array calculate alike.
function read64(bytes) {
  const view = viewOf(bytes);
  const count = bytes.byteLength / 8;
  const numbers = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    const high = view.getUint32(8 * i + 4, true);
    if (high >= 2 ** 20) return BigUint64Array.from({ length: count }, (_, k) => view.getBigUint64(8 * k, true));
    numbers[i] = high * 2 ** 32 + view.getUint32(8 * i, true);
  }
  return numbers;
}

function readNumbers(bytes, width, read, Type) {
  const view = viewOf(bytes);
  const numbers = new Type(bytes.byteLength / width);
  for (let i = 0; i < numbers.length; i += 1) numbers[i] = read(view, width * i);
  return numbers;
}

const ARRAYS = {
  SHORT: (bytes) => readNumbers(bytes, 2, READERS.uint16, Uint16Array),
  LONG: (bytes) => readNumbers(bytes, 4, READERS.uint32, Uint32Array),
  DOUBLE: (bytes) => readNumbers(bytes, 8, (view, at) => view.getFloat64(at, true), Float64Array),
  LONG8: read64,
};

const hex = (number, digits) => `0x${number.toString(16).toUpperCase().padStart(digits, '0')}`;

const hexBytes = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ');

// A double as Python writes it, so that both validations say the same.
function float(number) {
  if (Number.isNaN(number)) return 'nan';
  if (!Number.isFinite(number)) return number > 0 ? 'inf' : '-inf';
  if (Object.is(number, -0)) return '-0.0';
  const [digits, exponent] = number.toExponential().split('e');
  const power = Math.abs(exponent);
  if (exponent < -4 || exponent >= 16) return `${digits}e${exponent < 0 ? '-' : '+'}${String(power).padStart(2, '0')}`;
  return Number.isInteger(number) ? `${number}.0` : String(number);
}

const ceilDiv = (a, b) => (BigInt(a) + BigInt(b) - 1n) / BigInt(b);

// Where frames start, by the specification's formula; BigInt in and out.
function frameDataOffset(frames, bands) {
  const { placement, tags } = FORMAT;
  const counts = { B: BigInt(bands), N: BigInt(frames) };
  return tags.reduce((offset, tag) => {
    const size = (counts[tag.count] ?? BigInt(tag.count)) * BigInt(tag.width);
    return size > BigInt(placement.inlineSize) ? offset + size : offset;
  }, BigInt(placement.externalOffset));
}

// For reading, not for copying.
const grouped = (number) => number.toLocaleString('en');
const plural = (number, word) => `${grouped(number)} ${word}${number === 1 ? '' : 's'}`;
