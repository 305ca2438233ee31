// What the generated parsers read, as rows of name and value. Where a parser
// refuses, the fields are read one by one, as far as the bytes go.

const camelCase = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
const firstSentence = (text) => /^.*?[.](?=\s|$)/s.exec(text.trim())?.[0] ?? text.trim();

function parse(Type, bytes) {
  try {
    return { parsed: new Type(new KaitaiStream(bytes.slice().buffer)) };
  } catch (error) {
    return { refusal: error.message || error.name };
  }
}

function parseBlob({ bytes, length }) {
  if (bytes.length < length) return { refusal: `${plural(length, 'byte')} are more than this page reads of a blob` };
  return parse(RumiHeader.RumiHeader, bytes);
}

const parseFile = ({ first }) => parse(RumiFile.RumiFile, first);

function parseGeoreferencing(file) {
  const { ModelTransformation, GeoKeyDirectory } = RumiFile.RumiFile;
  const read = (tag, Type) => {
    try {
      return parse(Type, file.get(tag));
    } catch (error) {
      if (!(error instanceof NotChecked)) throw error;
      return { refusal: error.message };
    }
  };
  return { matrix: read(TAG.model_transformation, ModelTransformation), directory: read(TAG.geo_key_directory, GeoKeyDirectory) };
}

const exact = (number) => (typeof number === 'bigint' || Number.isSafeInteger(number) ? String(number) : 'beyond 2^53');

function encodingNote(format, bits) {
  const encoding = encodingOf(format, bits);
  return encoding ? `${encoding.doc}; ${encoding.dtype} in NumPy` : 'not a listed pair';
}

function unitNote(unit) {
  const member = FORMAT.frameUnits.find(({ value }) => value === unit);
  return member ? `${member.id}: ${member.doc}` : 'neither tile nor cell';
}

function fieldNote(name, fields) {
  if (name === 'sample_format') return FORMAT.formats.find(({ value }) => value === fields.sample_format)?.doc ?? 'not listed';
  if (name === 'bits_per_sample') return encodingNote(fields.sample_format, fields.bits_per_sample);
  if (name === 'frame_unit') return unitNote(fields.frame_unit);
  return firstSentence(FORMAT.header.fields.find((field) => field.name === name).doc);
}

function blobRows(blob, { parsed }) {
  const present = FORMAT.header.fields.filter(({ offset, size }) => offset + size <= blob.bytes.length);
  const read = readFields(blob.bytes, present);
  const fields = parsed ? Object.fromEntries(present.map(({ name }) => [name, parsed[camelCase(name)]])) : read;
  return present.map(({ name, offset }) => ({
    name,
    where: `byte ${offset}`,
    value: name === 'magic' ? hex(fields.magic, 8) : String(fields[name]),
    note: fieldNote(name, fields),
  }));
}

function derivedRows(parsed) {
  const docs = FORMAT.derived;
  return Object.entries(docs).map(([name, doc]) => ({ name, where: 'derived', value: exact(parsed[camelCase(name)]), note: firstSentence(doc) }));
}

function headerRows({ first }) {
  const whole = FORMAT.bigtiff.fields.filter(({ offset, size }) => offset + size <= first.length);
  const view = viewOf(first);
  return whole.map(({ name, offset, size, type, doc }) => ({
    name,
    where: `byte ${offset}`,
    value: type ? String(READERS[type](view, offset)) : hexBytes(first.subarray(offset, offset + size)),
    note: firstSentence(doc),
  }));
}

// Of more values than a matrix or a directory has, only the first few.
const MAX_SHOWN_VALUES = 16;
const SHOWN_VALUES = 4;

function entryValue(file, entry, isFirst) {
  const place = () => (entry.isInline ? hexBytes(entry.value) : `at byte ${entry.offset}`);
  if (!isFirst || !EXPECTED_TAGS.includes(entry.tag)) return place();
  try {
    const values = file.array(entry.tag);
    const isLong = values.length > MAX_SHOWN_VALUES;
    const shown = Array.from(isLong ? values.subarray(0, SHOWN_VALUES) : values, (value) => String(value)).join(', ');
    return isLong ? `${shown}, …` : shown;
  } catch (error) {
    if (!(error instanceof NotChecked)) throw error;
    return `${place()} (${error.message})`;
  }
}

const MAX_SHOWN_ENTRIES = 64;

function entryRows(file) {
  const { entries } = file;
  return entries.slice(0, MAX_SHOWN_ENTRIES).map((entry, i) => {
    const type = FORMAT.types.find(({ value }) => value === entry.type);
    const isFirst = entries.findIndex(({ tag }) => tag === entry.tag) === i;
    return {
      name: TAG_NAMES[entry.tag] ?? NAMED[entry.tag] ?? 'unknown tag',
      where: `tag ${entry.tag}, byte ${entry.position}`,
      value: entryValue(file, entry, isFirst),
      note: `${entry.count} × ${type ? type.name : `type ${entry.type}`}${entry.isInline ? '' : `, at byte ${entry.offset}`}`,
    };
  });
}

function georeferencingRows({ matrix, directory }) {
  const rows = [];
  if (directory.parsed) {
    const { modelType, rasterType, epsg, hasCrs } = directory.parsed;
    const nameOf = (members, value) => members.find((member) => member.value === value);
    rows.push(
      { name: 'CRS', where: 'GeoKeyDirectoryTag', value: hasCrs ? `EPSG:${epsg}` : 'none', note: nameOf(FORMAT.modelTypes, modelType).doc },
      { name: 'raster type', where: 'GeoKeyDirectoryTag', value: String(rasterType), note: nameOf(FORMAT.rasterTypes, rasterType).doc },
    );
  }
  if (matrix.parsed && directory.parsed?.hasCrs) {
    for (const { id } of FORMAT.transformation.filter(({ fixed }) => !fixed)) {
      rows.push({ name: id, where: 'ModelTransformationTag', value: float(matrix.parsed[camelCase(id)]), note: '' });
    }
  }
  return rows;
}

// What to show of a file, and of its refusals: [what refused, why].
function fileFields(file) {
  const main = parseFile(file);
  const groups = [{ title: 'BigTIFF header', rows: headerRows(file) }];
  const refusals = main.refusal ? [['rumi_file', main.refusal]] : [];
  try {
    groups.push({ title: 'IFD', rows: entryRows(file) });
  } catch (error) {
    if (!(error instanceof NotChecked)) throw error;
  }
  if (main.parsed) {
    groups.push({ title: 'Derived', rows: [...derivedRows(main.parsed), unitRow(main.parsed.frameUnit)] });
    const georeferencing = parseGeoreferencing(file);
    groups.push({ title: 'Georeferencing', rows: georeferencingRows(georeferencing) });
    for (const [name, { refusal }] of Object.entries({
      'rumi_file::model_transformation': georeferencing.matrix,
      'rumi_file::geo_key_directory': georeferencing.directory,
    })) {
      if (refusal) refusals.push([name, refusal]);
    }
  }
  return { groups: groups.filter(({ rows }) => rows.length > 0), refusals };
}

const unitRow = (unit) => ({ name: 'frame_unit', where: 'derived', value: String(unit), note: unitNote(unit) });

function blobFields(blob) {
  const main = parseBlob(blob);
  const groups = [{ title: 'Fields', rows: blobRows(blob, main) }];
  if (main.parsed) groups.push({ title: 'Derived', rows: derivedRows(main.parsed) });
  return { groups: groups.filter(({ rows }) => rows.length > 0), refusals: main.refusal ? [['rumi_header', main.refusal]] : [] };
}
