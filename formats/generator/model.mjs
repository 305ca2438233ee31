// What the two specifications say, as plain data for the writers of constants
// and documentation. Nothing here knows a value of its own; where a value is
// implied twice (an offset by field widths and by `pos`, say), the two have to
// agree or generation fails.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import YAML from 'yaml';

const FORMATS = new URL('../', import.meta.url);
const NUMERIC_TYPE = /^([usf])([1248])$/;
const TYPE_NAMES = { u: 'uint', s: 'int', f: 'float' };

export function loadSpec(name) {
  return YAML.parse(readFileSync(fileURLToPath(new URL(`${name}.ksy`, FORMATS)), 'utf8'));
}

function typeName(type) {
  const [, kind, size] = NUMERIC_TYPE.exec(type);
  return `${TYPE_NAMES[kind]}${8 * size}`;
}

// Size of one attribute in bytes, or null where only data can tell.
function sizeOf(attribute, spec) {
  if (attribute.contents !== undefined) return Buffer.from(attribute.contents, 'latin1').length;
  if (attribute.size !== undefined) return Number.isInteger(attribute.size) ? attribute.size : null;
  const numeric = NUMERIC_TYPE.exec(attribute.type);
  if (numeric) return Number(numeric[2]);
  return sizeOfAll(spec.types[attribute.type.replace(/\(.*/s, '')].seq, spec);
}

export function sizeOfAll(seq, spec) {
  return seq.reduce((sum, attribute) => sum + sizeOf(attribute, spec), 0);
}

function layOut(seq, spec) {
  let offset = 0;
  return seq.map((attribute) => {
    const field = {
      name: attribute.id,
      origId: attribute['-orig-id'],
      offset,
      size: sizeOf(attribute, spec),
      type: NUMERIC_TYPE.test(attribute.type ?? '') ? typeName(attribute.type) : null,
      enum: attribute.enum,
      valid: attribute.contents ?? attribute.valid,
      doc: attribute.doc ?? '',
      docRef: attribute['doc-ref'] ?? '',
      attribute,
    };
    offset += field.size ?? 0;
    return field;
  });
}

// The clauses of the specification that a `doc-ref` names: NAME, CLAUSE; CLAUSE.
export const clausesOf = (docRef) => (docRef ? docRef.replace(/^[^,]*, /, '').split('; ') : []);
export const specificationOf = (docRef) => docRef.split(', ')[0];

// The first of them, for where only one can stand.
export const clauseOf = ({ docRef }) => clausesOf(docRef)[0];

function members(table) {
  return Object.entries(table).map(([value, member]) => ({ value: Number(value), ...member }));
}

function constantsOf(type) {
  const literals = Object.entries(type.instances).filter(([, { value }]) => typeof value === 'number');
  return Object.fromEntries(literals.map(([name, { value }]) => [name, value]));
}

// Bytes per value of each TIFF field type, from the cascade of conditions that
// defines `entry.width`.
function fieldSizes(spec) {
  const expression = spec.types.entry.instances.width.value;
  const listed = new Map([...expression.matchAll(/::(\w+) \? (\d+)/g)].map((m) => [m[1], Number(m[2])]));
  const otherwise = Number(/: (\d+)\)*$/.exec(expression)[1]);
  return (id) => listed.get(id) ?? otherwise;
}

function headerModel(spec) {
  const fields = layOut(spec.seq, spec);
  const fixed = fields.filter((field) => field.size !== null);
  const size = fixed.reduce((sum, field) => sum + field.size, 0);
  const byName = Object.fromEntries(fixed.map((field) => [field.name, field]));
  const formats = members(spec.enums.sample_format);
  const encodings = members(spec.enums.sample_encoding).map((member) => ({
    id: member.id,
    format: member.value >> 8,
    bits: member.value & 0xff,
    doc: member.doc,
    dtype: member['-rumi-dtype'],
    itemsize: member['-rumi-itemsize'],
  }));
  assert.equal(spec.instances.sample_encoding.pos, byName.bits_per_sample.offset);
  assert.equal(byName.sample_format.offset, byName.bits_per_sample.offset + 1);
  for (const { id, format, bits } of encodings) {
    assert(formats.some(({ value }) => value === format), `${id}: unknown sample format`);
    assert(byName.bits_per_sample.valid['any-of'].includes(bits), `${id}: unknown width`);
  }
  return {
    spec,
    fields,
    fixed,
    size,
    magic: byName.magic.valid,
    version: byName.version.valid,
    maxCountBits: byName.count_bits.valid.max,
    formats,
    encodings,
    frameUnits: members(spec.enums.frame_unit),
    placement: constantsOf(spec.types.placement),
  };
}

// `entry(tag::x, field_type::y, ...)` in the sequence of the IFD.
function tagsOf(spec) {
  const width = fieldSizes(spec);
  const types = members(spec.enums.field_type).map((member) => ({ ...member, size: width(member.id) }));
  const tags = members(spec.enums.tag);
  const entries = layOut(spec.types.ifd.seq, spec).filter((field) => /^entry\(/.test(field.attribute.type ?? ''));
  return {
    types,
    tags: entries.map((field) => {
      const [, id, typeId, min, max] = /^entry\(tag::(\w+), field_type::(\w+), ([^,]+), ([^,]+),/.exec(field.attribute.type);
      const tag = tags.find((candidate) => candidate.id === id);
      const type = types.find((candidate) => candidate.id === typeId);
      const count = tag['-rumi-count'];
      if (Number.isInteger(count)) assert.deepEqual([min, max], [String(count), String(count)], `count of ${id}`);
      assert.equal(field.name, id);
      assert.equal(field.origId, tag['-orig-id']);
      return { id, value: tag.value, name: tag['-orig-id'], type, count, doc: tag.doc, offset: field.offset };
    }),
    total: tags.length,
  };
}

function transformationOf(spec) {
  const type = spec.types.model_transformation;
  const undefinedValues = new Map(
    [...type.instances.is_undefined.value.matchAll(/(\w+) == ([\d.]+)/g)].map((m) => [m[1], Number(m[2])]),
  );
  return type.seq.map(({ id, valid }) => ({
    id,
    fixed: valid !== undefined,
    undefinedValue: valid ?? undefinedValues.get(id),
  }));
}

// The BigTIFF header has no variable part, so its bytes are one constant.
function bigtiffHeader(fields) {
  return fields
    .filter(({ name }) => name !== 'ifd')
    .flatMap(({ size, valid }) =>
      typeof valid === 'string'
        ? [...Buffer.from(valid, 'latin1')]
        : Array.from({ length: size }, (_, i) => Math.floor(valid / 256 ** i) % 256),
    );
}

function fileModel(spec, placement) {
  const fields = layOut(spec.seq, spec);
  const byName = Object.fromEntries(fields.map((field) => [field.name, field]));
  const { types, tags, total } = tagsOf(spec);
  const entrySize = sizeOfAll(spec.types.entry.seq, spec);
  const ifdSize = sizeOfAll(spec.types.ifd.seq, spec);
  const directory = spec.types.geo_key_directory;
  const ifdOffset = byName.ofs_ifd.valid;
  assert.equal(byName.ifd.offset, ifdOffset);
  assert.equal(placement.ofs_ifd, ifdOffset);
  assert.equal(placement.len_ifd, ifdSize);
  assert.equal(placement.len_inline, sizeOfAll(spec.types.value_or_offset.seq, spec));
  assert.equal(spec.types.ifd.seq[0].valid, tags.length);
  assert.equal(total, tags.length);
  assert.deepEqual(tags.map(({ value }) => value).sort((a, b) => a - b), tags.map(({ value }) => value));
  for (const { id, type, count } of tags.filter(({ count: n }) => n > 1)) {
    assert.equal(placement[`len_${id}`], count * type.size);
  }
  assert.equal(sizeOfAll(spec.types.model_transformation.seq, spec), placement.len_model_transformation);
  assert.equal(sizeOfAll(directory.seq, spec), placement.len_geo_key_directory);
  return {
    spec,
    fields,
    bigtiffHeader: bigtiffHeader(fields),
    types,
    tags,
    entryFields: layOut(spec.types.entry.seq, spec),
    entrySize,
    ifdOffset,
    ifdSize,
    ifdFields: layOut(spec.types.ifd.seq, spec),
    inlineSize: placement.len_inline,
    externalOffset: ifdOffset + ifdSize,
    transformationSize: placement.len_model_transformation,
    geoKeySize: placement.len_geo_key_directory,
    geoKeys: members(spec.enums.geo_key),
    modelTypes: members(spec.enums.model_type),
    rasterTypes: members(spec.enums.raster_type),
    geoKeyFields: layOut(directory.seq, spec),
    // The first of several valid values is the one to write.
    geoKeyHeader: directory.seq.slice(0, 4).map(({ valid }) => valid['any-of']?.[0] ?? valid),
    minEpsg: directory.instances.min_epsg.value,
    maxEpsg: directory.instances.max_epsg.value,
    transformation: transformationOf(spec),
  };
}

// Size of an external value, and the condition under which it is external.
export function externalValue({ count, type }, inlineSize) {
  if (Number.isInteger(count)) return { size: String(count * type.size), condition: '' };
  return { size: `${type.size} * ${count}`, condition: `${count} >= ${Math.floor(inlineSize / type.size) + 1}` };
}

export function loadModel() {
  const header = headerModel(loadSpec('rumi_header'));
  return { header, file: fileModel(loadSpec('rumi_file'), header.placement) };
}
