// What the generated JavaScript parser makes of the conformance vectors, as JSON.
// usage: node javascript.cjs BLOBS.json FILES.json, run beside the generated parser
// with the runtime (npm kaitai-struct) on NODE_PATH.

const { readFileSync } = require('node:fs');
const KaitaiStream = require('kaitai-struct/KaitaiStream');
const { RumiHeader } = require(`${process.cwd()}/RumiHeader.js`);
const { RumiFile } = require(`${process.cwd()}/RumiFile.js`);

const FIELDS = [
  'magic', 'version', 'image_width', 'image_length', 'tile_width', 'tile_length',
  'samples_per_pixel', 'bits_per_sample', 'sample_format', 'frame_unit', 'count_min', 'count_bits',
];
const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
const stream = (hex) => {
  const bytes = Buffer.from(hex, 'hex');
  return new KaitaiStream(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
};

function blob({ hex, frames = [] }) {
  const header = new RumiHeader(stream(hex));
  return {
    fields: Object.fromEntries(FIELDS.map((name) => [name, header[camel(name)]])),
    derived: {
      encoding: RumiHeader.SampleEncoding[header.sampleEncoding].toLowerCase(),
      tiles_across: header.tilesAcross,
      tiles_down: header.tilesDown,
      frame_count: header.frameCount,
      external: header.lenExternal,
      base_frame_offset: header.baseFrameOffset,
    },
    frames: frames.map(({ index }) => ({
      byte_count: new RumiHeader.ByteCount(header._io, null, header, index).value,
      offset: new RumiHeader.FrameOffset(header._io, null, header, index).value,
    })),
  };
}

function file({ hex, frames = [] }) {
  const parsed = new RumiFile(stream(hex));
  const encoding = RumiHeader.SampleEncoding[parsed.sampleEncoding];
  if (!parsed.isSingleEncoding) throw new Error('check failed: isSingleEncoding');
  if (encoding === undefined) throw new Error('check failed: sampleEncoding');
  if (!parsed.isGeoreferencingConsistent) throw new Error('check failed: isGeoreferencingConsistent');
  const first = parsed.firstTileOffset;
  void parsed.modelTransformation; // parsed, and so checked, when it is asked for
  const raw = (entry) => Buffer.from(entry.valueRaw);
  const offsets = raw(parsed.ifd.tileOffsets);
  const counts = raw(parsed.ifd.tileByteCounts);
  const keys = parsed.geoKeyDirectory;
  const matrix = raw(parsed.ifd.modelTransformation);
  return {
    fields: Object.fromEntries(FIELDS.slice(2, 10).map((name) => [name, parsed[camel(name)]])),
    derived: {
      encoding: encoding.toLowerCase(),
      tiles_across: parsed.tilesAcross,
      tiles_down: parsed.tilesDown,
      frame_count: parsed.frameCount,
      external: parsed.placement.lenExternal,
      base_frame_offset: first,
      file_size: first + parsed.frameData.length,
    },
    frames: frames.map(({ index }) => ({
      byte_count: counts.readUInt32LE(4 * index),
      offset: Number(offsets.readBigUInt64LE(8 * index)),
    })),
    georeferencing: {
      model_type: keys.modelType,
      raster_type: keys.rasterType,
      epsg: keys.epsg,
      model_transformation: Array.from({ length: 16 }, (_, i) => matrix.readDoubleLE(8 * i)),
    },
  };
}

// Only errors that say what is wrong with the bytes count as a refusal.
function attempt(parse, vector) {
  try {
    return parse(vector);
  } catch (error) {
    const isRefusal = /^(EOFError|Validation\w+Error)$/.test(error.name) || /^check failed/.test(error.message);
    if (!isRefusal) throw error;
    return { refused: `${error.name}: ${error.message}` };
  }
}

const results = process.argv.slice(2).map((path, i) => {
  const { vectors } = JSON.parse(readFileSync(path, 'utf8'));
  return Object.fromEntries(vectors.map((vector) => [vector.name, attempt([blob, file][i], vector)]));
});
process.stdout.write(JSON.stringify(results));
