// The reference pages formats/docs/*.md, and the pictures they show.

import { externalValue } from './model.mjs';
import { blobMap, fileMap } from './svg.mjs';

const BANNER = '<!-- Generated from formats/*.ksy by formats/generate.mjs. Do not edit. -->\n';

const code = (text) => `\`${String(text).replaceAll('|', '\\|')}\``;
const oneLine = (text) => String(text ?? '').trim().replace(/\s+/g, ' ');
const cell = (text) => oneLine(text).replace(/(?<!\\)\|/g, '\\|');
const expression = (text) => code(oneLine(text));

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |\n`;
  return line(head) + line(head.map(() => '---')) + rows.map(line).join('');
}

function section(title, ...parts) {
  return `\n## ${title}\n\n${parts.join('\n')}`;
}

function number(value) {
  return value > 0xffff ? `0x${value.toString(16).toUpperCase()}` : String(value);
}

// What a reader accepts, in words.
function accepted({ valid, enum: enumeration }) {
  if (valid === undefined) return '';
  if (typeof valid === 'number') return number(valid);
  if (typeof valid === 'string') return expression(valid);
  if (valid['any-of']) return valid['any-of'].join(', ');
  if (valid['in-enum']) return `one of ${code(enumeration)}`;
  if (valid.expr) return expression(valid.expr);
  return ['min', 'max'].filter((key) => key in valid).map((key) => `${key} ${code(oneLine(valid[key]))}`).join(', ');
}

function fieldTable(fields, base = 0) {
  return table(
    ['offset', 'size', 'type', 'name', 'accepted', 'meaning'],
    fields.map((field) => [
      base + field.offset,
      field.size ?? expression(field.attribute.size),
      field.type ?? code(oneLine(field.attribute.type ?? 'bytes').replace(/\(.*/s, '')),
      code(field.origId ?? field.name),
      accepted(field),
      cell(field.doc),
    ]),
  );
}

function definition(instance) {
  if (instance.value !== undefined) return expression(instance.value);
  if (instance.pos === undefined) return expression(instance.type);
  const type = typeof instance.type === 'object' ? `by ${code(instance.type['switch-on'])}` : code(instance.type ?? 'bytes');
  const size = instance.size === undefined ? '' : `, size ${expression(instance.size)}`;
  return `${type} at ${expression(instance.pos)}${instance['size-eos'] ? ' to the end' : size}`;
}

function instanceTable(instances) {
  return table(
    ['name', 'definition', 'meaning'],
    Object.entries(instances).map(([name, instance]) => [code(name), definition(instance), cell(instance.doc)]),
  );
}

function parametricTypes(spec) {
  return Object.entries(spec.types)
    .filter(([, type]) => type.params && !type.seq)
    .map(([name, type]) => {
      const parameters = type.params.map(({ id }) => id).join(', ');
      return `### ${code(`${name}(${parameters})`)}\n\n${oneLine(type.doc)}\n\n${instanceTable(type.instances)}`;
    });
}

function enumTable(members) {
  return table(
    ['value', 'name', 'meaning'],
    members.map((member) => [member.value, code(member['-orig-id'] ?? member.id), cell(member.doc)]),
  );
}

function headerPage({ header }) {
  const { spec } = header;
  return [
    BANNER,
    `\n# ${spec.meta.title}\n\n${spec.doc.trim()}\n\nSource: ${spec['doc-ref']}. Numbers are little-endian.\n`,
    '\n![Byte map of the header blob](header.svg)\n',
    section('Fields', fieldTable(header.fields)),
    section(
      'Frame units',
      table(
        ['value', 'name', 'one frame holds', 'decodes to', 'N'],
        header.frameUnits.map((unit) => [
          unit.value,
          code(unit.id),
          cell(unit.doc),
          code(unit['-rumi-frame-shape']),
          code(unit['-rumi-frame-count']),
        ]),
      ),
    ),
    section('Sample formats', enumTable(header.formats)),
    section(
      'Sample encodings',
      'The valid pairs, the dtype that holds their samples in NumPy or ml_dtypes, and the bytes one\nsample takes in memory.\n',
      table(
        ['sample_format', 'bits_per_sample', 'encoding', 'id', 'dtype', 'bytes'],
        header.encodings.map((e) => [e.format, e.bits, cell(e.doc), code(e.id), code(e.dtype), e.itemsize]),
      ),
    ),
    section('Derived values', instanceTable(spec.instances)),
    section('Parametric types', ...parametricTypes(spec)),
  ].join('');
}

function external(tag, file) {
  const isScalar = Number.isInteger(tag.count) && tag.count * tag.type.size <= file.inlineSize;
  if (isScalar) return 'never';
  const { size, condition } = externalValue(tag, file.inlineSize);
  return `${code(size)} bytes ${condition ? `if ${code(condition)}` : 'always'}`;
}

function tagTable(file) {
  return table(
    ['entry at', 'tag', 'name', 'type', 'count', 'external', 'meaning'],
    file.tags.map((tag) => [
      file.ifdOffset + tag.offset,
      tag.value,
      tag.name,
      tag.type['-orig-id'],
      tag.count,
      external(tag, file),
      cell(tag.doc),
    ]),
  );
}

function matrix(values) {
  const rows = [0, 4, 8, 12].map((start) => values.slice(start, start + 4));
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => String(row[column]).length)));
  const line = (row) => row.map((value, column) => String(value).padEnd(widths[column])).join('  ').trimEnd();
  return `\`\`\`text\n${rows.map(line).join('\n')}\n\`\`\`\n`;
}

function georeferencing(file) {
  const { spec } = file;
  return [
    `### ModelTransformationTag\n\n${oneLine(spec.types.model_transformation.doc)}\n`,
    matrix(file.transformation.map(({ id, fixed, undefinedValue }) => (fixed ? undefinedValue : id))),
    'Without georeferencing:\n',
    matrix(file.transformation.map(({ undefinedValue }) => undefinedValue)),
    `### GeoKeyDirectoryTag\n\n${oneLine(spec.types.geo_key_directory.doc)}\n`,
    fieldTable(file.geoKeyFields),
    instanceTable(spec.types.geo_key_directory.instances),
    'Keys:\n',
    enumTable(file.geoKeys),
    'GTModelTypeGeoKey:\n',
    enumTable(file.modelTypes),
    'GTRasterTypeGeoKey:\n',
    enumTable(file.rasterTypes),
  ];
}

function filePage({ file }) {
  const { spec } = file;
  const checks = file.ifdFields.filter(({ size }) => size === 0);
  return [
    BANNER,
    `\n# ${spec.meta.title}\n\n${spec.doc.trim()}\n\nSource: ${spec['doc-ref']}. Numbers are little-endian.\n`,
    '\n![Byte map of the file](file.svg)\n',
    section('BigTIFF header', fieldTable(file.fields)),
    section(
      'IFD',
      `${oneLine(spec.types.ifd.doc)}\n\nB is the band count and N the frame count. Values of at most ${file.inlineSize} bytes are stored in\ntheir entry, larger ones from byte ${file.externalOffset} on.\n`,
      tagTable(file),
      'Field types:\n',
      table(
        ['value', 'name', 'bytes', 'meaning'],
        file.types.map((type) => [type.value, type['-orig-id'], type.size, cell(type.doc)]),
      ),
      'Checks across entries:\n',
      table(['check', 'expression', 'meaning'], checks.map((f) => [code(f.name), accepted(f), cell(f.doc.replace('Not a field. ', ''))])),
    ),
    section('IFD entry', `${oneLine(spec.types.entry.doc)}\n`, fieldTable(file.entryFields), instanceTable(spec.types.entry.instances)),
    section('Georeferencing', ...georeferencing(file)),
    section('Derived values', instanceTable(spec.instances)),
  ].join('');
}

export function documentation(model) {
  return new Map([
    ['formats/docs/header.md', headerPage(model)],
    ['formats/docs/header.svg', blobMap(model.header)],
    ['formats/docs/file.md', filePage(model)],
    ['formats/docs/file.svg', fileMap(model.file)],
  ]);
}
