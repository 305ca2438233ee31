#!/usr/bin/env node
// The only writer of everything that is generated from rumi_header.ksy and
// rumi_file.ksy. Output depends on these two files alone, and the inspector also on
// the code in generator/inspector.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { layoutPxd } from './generator/cython.mjs';
import { documentation } from './generator/docs.mjs';
import { inspector } from './generator/inspector.mjs';
import { loadModel } from './generator/model.mjs';
import { compile, languages, languageTable } from './generator/parsers.mjs';
import { pythonPackage } from './generator/python.mjs';
import { conformanceVectors } from './generator/vectors.mjs';

const USAGE = `usage: node formats/generate.mjs            write rumi/_generated, rumi/_core/layout.pxd and formats/docs
       node formats/generate.mjs --check    write nothing; name the files that differ and exit with 1
       node formats/generate.mjs --targets  list the languages there are
       node formats/generate.mjs --target LANGUAGE -o DIRECTORY
                                            write parsers for another language, or for
                                            all in folders of their own
languages: ${languages.join(' ')} all
`;

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

function write(root, files) {
  for (const [name, text] of files) {
    const target = path.join(root, name);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, text);
  }
}

function isCurrent(name, text) {
  try {
    return readFileSync(path.join(ROOT, name), 'utf8') === text;
  } catch (error) {
    if (error.code === 'ENOENT') return false;
    throw error;
  }
}

async function generated() {
  const model = loadModel();
  return new Map([
    ...(await pythonPackage(model)),
    ...layoutPxd(model),
    ...documentation(model),
    ...conformanceVectors(model),
    ...(await inspector(model)),
  ]);
}

async function writeParsers(language, folder) {
  let files;
  try {
    files = await compile(language);
  } catch (error) {
    // The compiler lacks parts of some targets and then says no more than this.
    const known = languageTable[language]?.run === 'fails' ? ` (${languageTable[language].note})` : '';
    process.stderr.write(`${language}: the compiler fails: ${error.message}${known}\n`);
    process.exitCode = 1;
    return;
  }
  write(folder, files);
}

function parse() {
  const options = {
    check: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
    output: { type: 'string', short: 'o' },
    target: { type: 'string' },
    targets: { type: 'boolean' },
  };
  try {
    const { values } = parseArgs({ options });
    if ((values.target === undefined) !== (values.output === undefined)) throw new Error('--target and -o go together');
    if (values.check && values.target) throw new Error('--check and --target exclude each other');
    if (values.target && ![...languages, 'all'].includes(values.target)) throw new Error(`unknown language ${values.target}`);
    return values;
  } catch (error) {
    process.stderr.write(`${error.message}\n${USAGE}`);
    return process.exit(2);
  }
}

const { check, help, output, target, targets } = parse();
if (help) {
  process.stdout.write(USAGE);
} else if (targets) {
  process.stdout.write(languages.map((language) => `${language}\n`).join(''));
} else if (target) {
  for (const language of target === 'all' ? languages : [target]) {
    await writeParsers(language, target === 'all' ? path.join(output, language) : output);
  }
} else if (check) {
  const different = [...(await generated())].filter(([name, text]) => !isCurrent(name, text)).map(([name]) => name);
  process.stdout.write(different.map((name) => `${name} differs from what the specifications generate\n`).join(''));
  process.exitCode = different.length > 0 ? 1 : 0;
} else {
  write(ROOT, await generated());
}
