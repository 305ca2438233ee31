// The reference formats/docs: what the specifications say, as pages for people.

import { htmlDocument } from './html.mjs';
import { clauseLink, code, figure, heading, listing, markdown, oneLine, paragraph, slug, subheading, table } from './markup.mjs';
import { clausesOf, externalValue, specificationOf } from './model.mjs';
import { languagesPage } from './docs_languages.mjs';
import { blobMap, fileMap } from './svg.mjs';
import { malformedByClause } from './vectors.mjs';

const BANNER = 'Generated from formats/*.ksy by formats/generate.mjs. Do not edit.';

const clauses = (thing) => clausesOf(thing['doc-ref'] ?? thing.docRef);
const clauseCell = (thing) => clauses(thing).map(clauseLink).join('; ');

// An expression without what only compilers need.
const formula = (text) => code(oneLine(text).replace(/\.as<u\d>/g, '').replace(/^\((.*)\)$/s, (whole, inner) => (isBalanced(inner) ? inner : whole)));

function isBalanced(text) {
  let depth = 0;
  for (const letter of text) {
    depth += (letter === '(') - (letter === ')');
    if (depth < 0) return false;
  }
  return depth === 0;
}

const number = (value) => (value > 0xffff ? `0x${value.toString(16).toUpperCase()}` : String(value));

// What a reader accepts, in words; `enums` are those of the specification.
function accepted({ valid, type, size, enum: enumeration, attribute }, enums) {
  if (attribute?.['-rumi-accepted']) return attribute['-rumi-accepted'];
  if (typeof valid === 'number') return number(valid);
  if (typeof valid === 'string') return code(valid);
  if (valid?.['any-of']) return valid['any-of'].join(', ');
  if (valid?.['in-enum']) {
    const members = Object.entries(enums[enumeration]);
    return members.map(([value, member]) => `${value} (${member['-orig-id'] ?? member.id})`).join(', ');
  }
  if (valid?.expr) return formula(valid.expr);
  const isWhole = /^uint/.test(type ?? '');
  if (valid === undefined && !isWhole) return '';
  const bound = (value) => (/^\d+$/.test(value) ? String(value) : formula(value));
  return `${bound(valid?.min ?? 0)} to ${bound(valid?.max ?? 256n ** BigInt(size) - 1n)}`;
}

function fieldTable(fields, enums) {
  return table(
    ['offset', 'size', 'type', 'name', 'accepted', 'meaning', 'clause'],
    fields.map((field) => [
      field.offset,
      field.size ?? formula(field.attribute.size),
      field.type ?? code(oneLine(field.attribute.type ?? 'bytes').replace(/\(.*/s, '')),
      code(field.origId ?? field.name),
      accepted(field, enums),
      field.doc,
      clauseCell(field),
    ]),
  );
}

function definition(instance) {
  if (instance.value !== undefined) return formula(instance.value);
  if (instance.pos === undefined) return formula(instance.type);
  const size = instance.size === undefined ? '' : `, size ${formula(instance.size)}`;
  return `${code(instance.type ?? 'bytes')} at ${formula(instance.pos)}${instance['size-eos'] ? ' to the end' : size}`;
}

// A column of clauses only where a member has one of its own.
function instanceTable(instances) {
  const rows = Object.entries(instances);
  const hasClauses = rows.some(([, instance]) => instance['doc-ref']);
  return table(
    ['name', 'formula', 'meaning', ...(hasClauses ? ['clause'] : [])],
    rows.map(([name, instance]) => [
      code(instance['-orig-id'] && instance['-orig-id'] !== name ? `${name} (${instance['-orig-id']})` : name),
      definition(instance),
      instance.doc,
      ...(hasClauses ? [clauseCell(instance)] : []),
    ]),
  );
}

function parametricTypes(spec) {
  return Object.entries(spec.types)
    .filter(([, type]) => type.params && !type.seq)
    .flatMap(([name, type]) => [
      subheading(code(`${name}(${type.params.map(({ id }) => id).join(', ')})`), clauses(type)),
      paragraph(oneLine(type.doc)),
      instanceTable(type.instances),
    ]);
}

function enumTable(members) {
  return table(['value', 'name', 'meaning'], members.map((member) => [member.value, code(member['-orig-id'] ?? member.id), member.doc]));
}

// `rumi_header` in a text stands for the page about it.
const introduction = (spec) => [paragraph(spec.doc), paragraph(`Specification: ${clauses(spec).map(clauseLink).join('; ')}. Numbers are little-endian.`)];

function headerPage({ header }) {
  const { spec } = header;
  const field = (name) => header.fields.find((candidate) => candidate.name === name);
  return {
    name: 'header.md',
    title: 'Header blob',
    blocks: [
      ...introduction(spec),
      figure('header.svg', 'Byte map of the header blob', blobMap(header)),
      heading('Fields', ['Header fields']),
      fieldTable(header.fields, spec.enums),
      heading('Frame units', clauses(field('frame_unit'))),
      table(
        ['value', 'name', 'one frame holds', 'decodes to', 'N'],
        header.frameUnits.map((unit) => [unit.value, code(unit.id), unit.doc, code(unit['-rumi-frame-shape']), code(unit['-rumi-frame-count'])]),
      ),
      heading('Sample formats', clauses(field('sample_format'))),
      enumTable(header.formats),
      heading('Sample encodings', clauses(spec.instances.sample_encoding)),
      paragraph('The valid pairs, the dtype that holds their samples in NumPy or ml_dtypes, and the bytes one sample takes in memory.'),
      table(
        ['sample_format', 'bits_per_sample', 'encoding', 'id', 'dtype', 'bytes'],
        header.encodings.map((e) => [e.format, e.bits, e.doc, code(e.id), code(e.dtype), e.itemsize]),
      ),
      heading('Derived values'),
      instanceTable(spec.instances),
      heading('Parametric types'),
      paragraph('Values that depend on more than the blob: on a frame, or on what a reader of the IFD knows.'),
      ...parametricTypes(spec),
    ],
  };
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
    file.tags.map((tag) => [file.ifdOffset + tag.offset, tag.value, tag.name, tag.type['-orig-id'], tag.count, external(tag, file), tag.doc]),
  );
}

function matrix(values) {
  const rows = [0, 4, 8, 12].map((start) => values.slice(start, start + 4));
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => String(row[column]).length)));
  const line = (row) => row.map((value, column) => String(value).padEnd(widths[column])).join('  ').trimEnd();
  return listing(rows.map(line).join('\n'));
}

function georeferencing(file) {
  const { types, enums } = file.spec;
  return [
    heading('Georeferencing', ['Georeferencing']),
    subheading('ModelTransformationTag', clauses(types.model_transformation)),
    paragraph(oneLine(types.model_transformation.doc)),
    matrix(file.transformation.map(({ id, fixed, undefinedValue }) => (fixed ? undefinedValue : id))),
    paragraph('Without georeferencing:'),
    matrix(file.transformation.map(({ undefinedValue }) => undefinedValue)),
    subheading('GeoKeyDirectoryTag', clauses(types.geo_key_directory)),
    paragraph(oneLine(types.geo_key_directory.doc)),
    fieldTable(file.geoKeyFields.map((f) => ({ ...f, docRef: f.docRef || types.geo_key_directory['doc-ref'] })), enums),
    instanceTable(types.geo_key_directory.instances),
    paragraph('Keys:'),
    enumTable(file.geoKeys),
    paragraph('GTModelTypeGeoKey:'),
    enumTable(file.modelTypes),
    paragraph('GTRasterTypeGeoKey:'),
    enumTable(file.rasterTypes),
  ];
}

function ifd(file) {
  const { types } = file.spec;
  const checks = file.ifdFields.filter(({ size }) => size === 0);
  return [
    heading('IFD', clauses(types.ifd)),
    paragraph(oneLine(types.ifd.doc)),
    paragraph(`B is the band count and N the frame count. Values of at most ${file.inlineSize} bytes are stored in their entry, larger ones from byte ${file.externalOffset} on.`),
    tagTable(file),
    subheading('Field types'),
    table(['value', 'name', 'bytes', 'meaning'], file.types.map((type) => [type.value, type['-orig-id'], type.size, type.doc])),
    subheading('Checks across entries'),
    table(
      ['check', 'expression', 'meaning', 'clause'],
      checks.map((f) => [code(f.name), accepted(f), f.doc.replace('Not a field. ', ''), clauseCell(f)]),
    ),
    heading('IFD entry', clauses(types.entry)),
    paragraph(oneLine(types.entry.doc)),
    fieldTable(file.entryFields.map((f) => ({ ...f, docRef: f.docRef || types.entry['doc-ref'] })), file.spec.enums),
    instanceTable(types.entry.instances),
  ];
}

function placement({ header }) {
  const type = header.spec.types.placement;
  return [heading('Placement', clauses(type)), paragraph(oneLine(type.doc)), instanceTable(type.instances)];
}

function filePage(model) {
  const { file } = model;
  const { spec } = file;
  return {
    name: 'file.md',
    title: 'File',
    blocks: [
      ...introduction(spec),
      figure('file.svg', 'Byte map of the file', fileMap(file)),
      heading('BigTIFF header', ['File profile']),
      fieldTable(file.fields, spec.enums),
      ...ifd(file),
      ...placement(model),
      ...georeferencing(file),
      heading('Derived values'),
      instanceTable(spec.instances),
    ],
  };
}

// --- Clauses

// Every thing of a specification that names a clause, with what it is called.
function* references(spec, path) {
  if (spec === null || typeof spec !== 'object') return;
  if (spec['doc-ref']) yield [path, spec['doc-ref']];
  for (const attribute of spec.seq ?? []) yield* references(attribute, `${path}.${attribute.id}`);
  for (const [id, instance] of Object.entries(spec.instances ?? {})) yield* references(instance, `${path}.${id}`);
  for (const [id, type] of Object.entries(spec.types ?? {})) yield* references(type, `${path}::${id}`);
}

function clausesPage(model) {
  const found = new Map();
  const add = (clause, kind, name) => {
    if (!found.has(clause)) found.set(clause, { fields: [], vectors: [] });
    found.get(clause)[kind].push(name);
  };
  for (const [name, { spec }] of [['rumi_header', model.header], ['rumi_file', model.file]]) {
    for (const [path, reference] of references(spec, name)) clausesOf(reference).forEach((clause) => add(clause, 'fields', path));
  }
  for (const [clause, names] of malformedByClause(model)) names.forEach((name) => add(clause, 'vectors', name));
  // Clauses that sections name and nothing else.
  for (const clause of ['Header fields', 'Georeferencing']) if (!found.has(clause)) found.set(clause, { fields: [], vectors: [] });
  const names = (list) => list.map(code).join(', ') || '-';
  return {
    name: 'clauses.md',
    title: 'Clauses',
    blocks: [
      paragraph('The clauses of the specification, by their headings, with what follows them in the Kaitai Struct specifications and the malformed [conformance vectors](../vectors/README.md) that break them.'),
      ...[...found].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([clause, { fields, vectors }]) => [
        { ...subheading(clause), id: `clause-${slug(clause)}` },
        table(['in the specifications', 'malformed vectors'], [[names(fields), names(vectors)]]),
      ]),
    ],
  };
}

// --- All

const TITLE = 'The rumi format';

function indexPage(pages, summary) {
  return {
    title: TITLE,
    blocks: [
      paragraph(summary),
      table(['page', 'what it is'], [
        ...pages.map(({ name, title, about }) => [`[${title}](${name})`, about]),
        ['[index.html](index.html)', 'All of these as one page for a browser and for print.'],
        ['[inspector.html](inspector.html)', 'Look into a file or a header blob, in a browser and without uploading it.'],
      ]),
    ],
  };
}

export function documentation(model) {
  const pages = [
    { ...headerPage(model), about: 'Fields, sample encodings, byte counts and offsets of frames.' },
    { ...filePage(model), about: 'BigTIFF header, IFD, placement, georeferencing.' },
    { ...languagesPage(), about: 'Parsers for other languages, and how far each is checked.' },
    { ...clausesPage(model), about: 'Where each clause of the specification is found, and what breaks it.' },
  ];
  const summary = `Fields, valid values, formulas and byte maps of ${specificationOf(model.header.spec['doc-ref'])}, generated from its Kaitai Struct specifications. To look into a file, open the [inspector](inspector.html).`;
  const svgs = pages.flatMap(({ blocks }) => blocks.filter(({ kind }) => kind === 'figure').map(({ name, svg }) => [`formats/docs/${name}`, svg]));
  return new Map([
    ...pages.map((page) => [`formats/docs/${page.name}`, markdown(BANNER, page)]),
    ...svgs,
    ['formats/docs/README.md', markdown(BANNER, indexPage(pages, summary))],
    ['formats/docs/index.html', htmlDocument(BANNER, { title: TITLE, summary, pages })],
  ]);
}
