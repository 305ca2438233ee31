// Parsers for any language, by the Kaitai Struct compiler.

import KaitaiStructCompiler from 'kaitai-struct-compiler';
import { loadSpec } from './model.mjs';

const importer = { importYaml: (name) => Promise.resolve(loadSpec(name)) };

export const languages = KaitaiStructCompiler.languages;

// Compiles both specifications; rumi_file imports rumi_header. Some targets put
// a package directory, which is empty here, before the file name.
export async function compile(language) {
  const files = await KaitaiStructCompiler.compile(language, loadSpec('rumi_file'), importer, false);
  return new Map(Object.entries(files).map(([name, text]) => [name.replace(/^\/+/, ''), text]));
}
