// The page formats/docs/inspector.html: generated parsers, the library they need, the
// constants of the two specifications and the code in inspector/, all in one file.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import vm from 'node:vm';
import { clauseOf } from './model.mjs';
import { compile } from './parsers.mjs';

const SOURCES = new URL('inspector/', import.meta.url);
const RUNTIME = new URL('../node_modules/kaitai-struct/', import.meta.url);

// In the order in which they need each other; they share one scope.
const PARTS = [
  'numbers.js', 'report.js', 'facts.js', 'file_clauses.js', 'georef_clauses.js', 'frame_clauses.js', 'blob_clauses.js',
  'layout.js', 'fields.js', 'grid.js', 'view.js', 'main.js',
];

const read = (name, base = SOURCES) => readFileSync(new URL(name, base), 'utf8');
const byId = (members) => Object.fromEntries(members.map(({ id, value }) => [id, value]));
const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

// For each of the 16 shorts the values it may have, or null where that depends on others.
function geoKeyDirectory(file) {
  const keys = byId(file.geoKeys);
  const allowed = [];
  const at = {};
  for (const { name, attribute } of file.geoKeyFields) {
    at[name] = allowed.length;
    if (attribute.type.startsWith('key(')) {
      const ids = [...attribute.type.matchAll(/geo_key::(\w+)/g)].map((match) => keys[match[1]]).sort((a, b) => a - b);
      const [, location, count] = file.spec.types.key.seq;
      allowed.push(ids, [location.valid], [count.valid]);
    } else {
      const { valid } = attribute;
      allowed.push(typeof valid === 'number' ? [valid] : (valid['any-of'] ?? null));
    }
  }
  assert.equal(2 * allowed.length, file.geoKeySize);
  return { at, allowed };
}

function format({ header, file }) {
  const { spec } = header;
  const derived = ['tiles_across', 'tiles_down', 'frame_count', 'base_frame_offset'];
  return {
    header: {
      size: header.size,
      magic: header.magic,
      version: header.version,
      maxCountBits: header.maxCountBits,
      fields: header.fixed.map(({ name, offset, size, type, doc }) => ({ name, offset, size, type, doc })),
    },
    clauses: Object.fromEntries(header.fixed.map((field) => [field.name, clauseOf(field)])),
    encodings: header.encodings.map(({ id, format: code, bits, doc, dtype }) => ({ id, format: code, bits, doc, dtype })),
    formats: header.formats.map(({ value, doc }) => ({ value, doc })),
    frameUnits: header.frameUnits.map(({ id, value, doc }) => ({ id, value, doc })),
    frameUnit: byId(header.frameUnits),
    derived: Object.fromEntries(derived.map((name) => [name, spec.instances[name].doc])),
    placement: {
      ifdOffset: file.ifdOffset,
      inlineSize: file.inlineSize,
      entrySize: file.entrySize,
      externalOffset: file.externalOffset,
    },
    bigtiff: {
      bytes: file.bigtiffHeader,
      offsets: Object.fromEntries(file.fields.map(({ name, offset }) => [name, offset])),
      fields: file.fields.filter(({ name }) => name !== 'ifd').map(({ name, offset, size, type, doc }) => ({ name, offset, size, type, doc })),
    },
    ifd: {
      countSize: file.ifdFields[0].size,
      entry: Object.fromEntries(file.entryFields.map(({ name, offset }) => [name, offset])),
    },
    types: file.types.map((type) => ({ value: type.value, name: type['-orig-id'] })),
    type: Object.fromEntries(file.types.map((type) => [type['-orig-id'], type.value])),
    tags: file.tags.map(({ id, value, name, type, count }) => ({ id, value, name, type: type.value, width: type.size, count })),
    transformation: file.transformation,
    geoKeys: geoKeyDirectory(file),
    geoKey: byId(file.geoKeys),
    modelType: byId(file.modelTypes),
    modelTypes: file.modelTypes.map(({ value, doc }) => ({ value, doc })),
    rasterType: byId(file.rasterTypes),
    rasterTypes: file.rasterTypes.map(({ value, doc }) => ({ value, doc })),
    minEpsg: file.minEpsg,
    maxEpsg: file.maxEpsg,
  };
}

// One function of all parts; names that two of them declare would hide each other.
function pageCode(model) {
  const parts = [`const FORMAT = ${JSON.stringify(format(model), null, 1)};\n`, ...PARTS.map((name) => read(name))];
  const names = parts.flatMap((text) => [...text.matchAll(/^(?:async )?(?:function|class|const|let) (\w+)/gm)].map((match) => match[1]));
  const twice = names.filter((name, i) => names.indexOf(name) !== i);
  assert.deepEqual(twice, [], 'names declared twice in formats/generator/inspector');
  return `(() => {\n'use strict';\n\n${parts.join('\n')}})();\n`;
}

function checkScript(text, name) {
  // A syntax error, and an end of the script inside it, would show in the browser only.
  new vm.Script(text, { filename: name });
  assert(!/<\/script|<!--/i.test(text), name);
  return text;
}

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

// Nothing but the page's own scripts and style runs, and nothing is fetched or sent.
function policy(scripts, style) {
  return [
    "default-src 'none'", `script-src ${scripts.map(hash).join(' ')}`, `style-src ${hash(style)}`,
    "base-uri 'none'", "form-action 'none'",
  ].join('; ');
}

export async function inspector(model) {
  const parsers = await compile('javascript');
  // A browser takes every end of a line for a line feed before it compares hashes.
  const library = read('KaitaiStream.js', RUNTIME).replace(/\r\n?/g, '\n');
  const { version } = JSON.parse(read('package.json', RUNTIME));
  const licence = read('LICENSE', RUNTIME);
  const notice = `// Kaitai Struct runtime library for JavaScript ${version}, Apache License 2.0 (text at the end of the page).\n`;
  const scripts = [
    ['KaitaiStream.js', notice + library],
    ...['RumiHeader.js', 'RumiFile.js'].map((name) => [name, parsers.get(name).replace(/[ \t]+$/gm, '')]),
    ['inspector', pageCode(model)],
  ].map(([name, text]) => checkScript(`\n${text}`, name));
  const style = `\n${read('page.css')}`;
  const values = {
    policy: policy(scripts, style),
    style,
    runtime_version: version,
    runtime_licence: escape(licence.trim()),
    scripts: scripts.map((text) => `<script>${text}</script>`).join('\n'),
  };
  const page = read('page.html').replace(/\{\{(\w+)\}\}/g, (_, name) => values[name]);
  return new Map([['formats/docs/inspector.html', page]]);
}
