// The package rumi/_generated.

import { clauseOf } from './model.mjs';
import { compile } from './parsers.mjs';

const banner = (source) => `# Generated from formats/${source} by formats/generate.mjs. Do not edit.\n`;

const LINE_LENGTH = 100;
const COMPILER_BANNER = /^# This is a generated file!.*\n/;

const INIT = `${banner('*.ksy')}"""Parsers and constants generated from the format specifications."""\n`;

// The compiler knows only top-level modules, and marks its output for no tool
// but mypy.
function adapt(name, text) {
  const body = text
    .replace(COMPILER_BANNER, '# ruff: noqa\n')
    .replace(/^import (rumi_\w+)$/gm, 'from . import $1')
    .replace(/[ \t]+$/gm, '')
    .replace(/\n*$/, '\n');
  return banner(name.replace(/\.py$/, '.ksy')) + body;
}

const tuple = (items) => `(${items.join(', ')}${items.length === 1 ? ',' : ''})`;
const string = (text) => JSON.stringify(text);
const float = (number) => (Number.isInteger(number) ? `${number}.0` : String(number));
const hex = (number, digits) => `0x${number.toString(16).toUpperCase().padStart(digits, '0')}`;

function scalar(name, value, type = 'int') {
  return `${name}: Final[${type}] = ${value}\n`;
}

// One row a line, or one item a line where that is too long, as ruff formats it.
function row(text, items) {
  if (text.length + 5 <= LINE_LENGTH) return `    ${text},\n`;
  return `    (\n${items.map((item) => `        ${item},\n`).join('')}    ),\n`;
}

function table(name, type, rows) {
  const lines = rows.map((items) => (Array.isArray(items) ? row(tuple(items), items) : row(items, [])));
  return `${name}: Final[tuple[${type}, ...]] = (\n${lines.join('')})\n`;
}

function dictionary(name, rows) {
  return `${name}: Final[dict[str, str]] = {\n${rows.map(([key, value]) => `    ${string(key)}: ${string(value)},\n`).join('')}}\n`;
}

function section(title, comment, ...statements) {
  const lines = comment.split('\n').map((line) => `# ${line}\n`).join('');
  return { names: statements.join('').match(/^[A-Z]\w*(?=:)/gm), text: `\n# --- ${title}\n${lines}${statements.join('')}` };
}

function enumeration(prefix, members) {
  return members.map(({ id, value }) => scalar(`${prefix}_${id.toUpperCase()}`, value)).join('');
}

function headerSections(header) {
  return [
    section(
      'Header blob',
      'HEADER_FIELDS: (name, offset, size, type) of every field of the fixed part.\n'
        + 'CLAUSES: the clause of the specification that each field is defined in.',
      scalar('HEADER_SIZE', header.size),
      scalar('MAGIC', hex(header.magic, 8)),
      scalar('VERSION', header.version),
      scalar('MAX_COUNT_BITS', header.maxCountBits),
      table(
        'HEADER_FIELDS',
        'tuple[str, int, int, str]',
        header.fixed.map((f) => [string(f.name), f.offset, f.size, string(f.type)]),
      ),
      dictionary('CLAUSES', header.fixed.map((f) => [f.name, clauseOf(f)])),
      enumeration('FRAME_UNIT', header.frameUnits),
    ),
    section(
      'Sample encodings',
      'SAMPLE_FORMATS: (sample_format, id, meaning).\n'
        + 'ENCODINGS: (sample_format, bits_per_sample, id, dtype, itemsize, meaning) of every valid\n'
        + 'pair; dtype is the name in NumPy or ml_dtypes, itemsize the bytes of a sample in memory.',
      table('SAMPLE_FORMATS', 'tuple[int, str, str]', header.formats.map((f) => [f.value, string(f.id), string(f.doc)])),
      table(
        'ENCODINGS',
        'tuple[int, int, str, str, int, str]',
        header.encodings.map((e) => [e.format, e.bits, string(e.id), string(e.dtype), e.itemsize, string(e.doc)]),
      ),
    ),
  ];
}

function bigtiffHeader(file) {
  return file.bigtiffHeader.map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
}

function fileSections(file) {
  const transformation = file.transformation;
  return [
    section(
      'Placement in the file',
      'EXTERNAL_OFFSET is also the length of the prefix that holds the whole IFD.',
      scalar('BIGTIFF_HEADER', `b"${bigtiffHeader(file)}"`, 'bytes'),
      scalar('IFD_OFFSET', file.ifdOffset),
      scalar('IFD_SIZE', file.ifdSize),
      scalar('IFD_ENTRY_COUNT', file.tags.length),
      scalar('IFD_ENTRY_SIZE', file.entrySize),
      scalar('INLINE_SIZE', file.inlineSize),
      scalar('EXTERNAL_OFFSET', file.externalOffset),
      scalar('MODEL_TRANSFORMATION_SIZE', file.transformationSize),
      scalar('GEO_KEY_DIRECTORY_SIZE', file.geoKeySize),
      scalar('GEOREFERENCING_SIZE', file.transformationSize + file.geoKeySize),
    ),
    section(
      'Tags',
      'FIELD_TYPES: (type, name, bytes of one value).\nTAGS: (tag, name, type) in the order of the IFD.',
      enumeration('FIELD_TYPE', file.types),
      table('FIELD_TYPES', 'tuple[int, str, int]', file.types.map((t) => [t.value, string(t['-orig-id']), t.size])),
      enumeration('TAG', file.tags),
      table('TAGS', 'tuple[int, str, int]', file.tags.map((t) => [t.value, string(t.name), t.type.value])),
    ),
    section(
      'Georeferencing',
      'GEO_KEY_DIRECTORY_HEADER is what a writer writes. MODEL_TRANSFORMATION_FIXED: (position,\n'
        + 'value) of the elements of the 4 x 4 matrix that are the same in every file.',
      scalar('GEO_KEY_DIRECTORY_HEADER', tuple(file.geoKeyHeader), 'tuple[int, int, int, int]'),
      enumeration('GEO_KEY', file.geoKeys),
      enumeration('MODEL_TYPE', file.modelTypes),
      enumeration('RASTER_TYPE', file.rasterTypes),
      scalar('MIN_EPSG', file.minEpsg),
      scalar('MAX_EPSG', file.maxEpsg),
      transformation
        .map(({ id, fixed }, i) => (fixed ? '' : scalar(`MODEL_TRANSFORMATION_${id.toUpperCase()}`, i)))
        .join(''),
      table(
        'MODEL_TRANSFORMATION_FIXED',
        'tuple[int, float]',
        transformation.flatMap(({ fixed, undefinedValue }, i) => (fixed ? [[i, float(undefinedValue)]] : [])),
      ),
      table('UNDEFINED_TRANSFORMATION', 'float', transformation.map(({ undefinedValue }) => float(undefinedValue))),
    ),
  ];
}

function constants({ header, file }) {
  const sections = [...headerSections(header), ...fileSections(file)];
  const names = sections.flatMap((s) => s.names).sort();
  return (
    banner('*.ksy')
    + '"""Every constant of the format, from the format specifications."""\n\n'
    + 'from typing import Final\n\n'
    + `__all__ = [\n${names.map((name) => `    ${string(name)},\n`).join('')}]\n`
    + sections.map((s) => s.text).join('')
  );
}

export async function pythonPackage(model) {
  const parsers = await compile('python');
  return new Map([
    ['rumi/_generated/__init__.py', INIT],
    ['rumi/_generated/constants.py', constants(model)],
    ...[...parsers].map(([name, text]) => [`rumi/_generated/${name}`, adapt(name, text)]),
  ]);
}
