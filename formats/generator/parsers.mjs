// Parsers for any language, by the Kaitai Struct compiler.

import { readFileSync } from 'node:fs';
import KaitaiStructCompiler from 'kaitai-struct-compiler';
import { constructParsers } from './construct.mjs';
import { loadSpec } from './model.mjs';

export const languages = KaitaiStructCompiler.languages;

// What is checked of each language, for the documentation and for the tests.
export const languageTable = JSON.parse(readFileSync(new URL('languages.json', import.meta.url), 'utf8'));

// C# has one namespace for the members and the types of a class, and the compiler
// gives `grid: type: grid` one name for both; so types and enumerations get a suffix.
// It also mixes no unsigned 64-bit number with a signed one, as the compiler's
// literals are; no number in a file that can exist needs the last bit.
function forCSharp(spec, all) {
  const types = new Set(all.flatMap(({ types: named }) => Object.keys(named)));
  const enums = new Set(all.flatMap(({ enums: named }) => Object.keys(named)));
  const type = (name) => (types.has(name) ? `${name}_type` : name);
  const enumeration = (name) => (enums.has(name) ? `${name}_enum` : name);
  const inText = (text) =>
    text
      .replace(/\b(rumi_header::)?(\w+)(?=\()/g, (whole, module = '', name) => module + type(name))
      .replace(/\bsizeof<(\w+)>/g, (whole, name) => `sizeof<${type(name)}>`)
      .replace(/\bu8\b/g, 's8')
      .replace(/\b(\w+)::(?!\w+\()/g, (whole, name) => `${enumeration(name)}::`);
  const renamed = (value, key) => {
    if (typeof value === 'string') {
      if (key === 'doc' || key === 'doc-ref' || key === 'contents') return value;
      if (key === 'enum') return enumeration(value);
      return inText(key === 'type' ? type(value) : value);
    }
    if (Array.isArray(value)) return value.map((item) => renamed(item, key));
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [inText(name), renamed(item, name)]));
  };
  const keyed = (object, rename) => Object.fromEntries(Object.entries(object).map(([name, item]) => [rename(name), item]));
  const { types: ownTypes, enums: ownEnums, meta, ...rest } = spec;
  return { meta, ...renamed(rest), types: keyed(renamed(ownTypes), type), enums: keyed(ownEnums, enumeration) };
}

const PREPARE = { csharp: forCSharp };

// What the compiler leaves to options that its JavaScript build does not have.
const FINISH = {
  go: (text) => text.replace(/^import \(/m, 'package rumi\n\nimport ('),
};

// Compiles both specifications; rumi_file imports rumi_header. Some targets put
// a package directory, which is empty here, before the file name.
export async function compile(language) {
  if (language === 'construct') return constructParsers();
  const all = ['rumi_header', 'rumi_file'].map(loadSpec);
  const prepared = (name) => (PREPARE[language] ?? ((spec) => spec))(loadSpec(name), all);
  const importer = { importYaml: (name) => Promise.resolve(prepared(name)) };
  const files = await KaitaiStructCompiler.compile(language, prepared('rumi_file'), importer, false);
  const finish = FINISH[language] ?? ((text) => text);
  return new Map(Object.entries(files).map(([name, text]) => [name.replace(/^\/+/, ''), finish(text)]));
}
