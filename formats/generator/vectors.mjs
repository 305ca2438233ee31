// The conformance vectors formats/vectors: JSON, and the page that explains it.

import { fileVectors } from './vector_files.mjs';
import { blobVectors } from './vector_blobs.mjs';

const BANNER = 'Generated from formats/*.ksy by formats/generate.mjs. Do not edit.';

const code = (text) => `\`${text}\``;

// A member a line, and a frame a line.
function vectorText(vector) {
  const lines = Object.entries(vector).map(([key, value]) => {
    const text =
      key === 'frames' ? `[\n${value.map((frame) => `    ${JSON.stringify(frame)}`).join(',\n')}\n   ]` : JSON.stringify(value);
    return `   ${JSON.stringify(key)}: ${text}`;
  });
  return `  {\n${lines.join(',\n')}\n  }`;
}

function documentText(model, vectors) {
  const head = { generated: BANNER, specification: model.header.spec['doc-ref'].split(', ')[0] };
  const members = Object.entries(head).map(([key, value]) => ` ${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  return `{\n${members.join(',\n')},\n "vectors": [\n${vectors.map(vectorText).join(',\n')}\n ]\n}\n`;
}

const CHECKS = {
  structure: 'A parser generated from the `.ksy` refuses it while parsing, or one of `is_single_encoding` and `is_georeferencing_consistent` is false, or `sample_encoding` is no listed pair.',
  values: 'Values have to be compared with each other: offsets with the sums of byte counts, counts with count_min, the last frame with the size of the file.',
  match: 'The file is valid and so is the blob, but they do not belong together.',
  frames: 'The first four bytes of the frames have to be looked at.',
  decoder: 'The frames have to be decoded with OpenZL.',
  registry: 'The EPSG registry, or a PROJ database, has to be asked.',
};

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |\n`;
  return line(head) + line(head.map(() => '---')) + rows.map(line).join('');
}

function listing(vectors) {
  const wrong = vectors.filter(({ verdict }) => verdict === 'malformed');
  return (
    `Valid:\n\n${table(['name', 'what it is'], vectors.filter((v) => !wrong.includes(v)).map((v) => [v.name, v.about]))}\n`
    + `Malformed:\n\n${table(['name', 'check', 'clause', 'what is wrong'], wrong.map((v) => [v.name, v.check, v.clause, v.about]))}`
  );
}

function page(blobs, files) {
  const all = [...blobs, ...files].filter(({ verdict }) => verdict === 'malformed');
  const count = (check) => all.filter((vector) => vector.check === check).length;
  return `<!-- ${BANNER} -->

# Conformance vectors

Header blobs (\`blobs.json\`, ${blobs.length}) and files (\`files.json\`, ${files.length}) with what an implementation in any
language must find in them, or the clause of the specification for which it must refuse them. They
are made by \`formats/generate.mjs\` from the arithmetic of the specification, by no writer of files.

## How to use them

Each document is an object whose \`vectors\` is an array. Of each vector decode \`hex\` to bytes, give
them to your parser, and compare. Nothing else is needed: no file names, no order. In Python:

\`\`\`python
import json, pathlib

for kind in ("blob", "file"):
    for vector in json.loads(pathlib.Path(f"{kind}s.json").read_text())["vectors"]:
        pathlib.Path(f"{vector['name']}.{kind}").write_bytes(bytes.fromhex(vector["hex"]))
\`\`\`

writes them as files for a tool that wants such. Every number in the documents is below 2^53 and so
exact in JSON parsers that know doubles only.

| member | of | meaning |
| --- | --- | --- |
| \`name\` | all | Unique in its document, and stable. |
| \`about\` | all | What the vector is there for. |
| \`verdict\` | all | \`valid\` or \`malformed\`. |
| \`hex\` | all | The bytes. |
| \`check\` | malformed, files | What an implementation must do to see the fault, as below. Of a valid file: how far its frames can be checked. |
| \`clause\` | malformed | The clause that is broken: headings of the specification, from the outer to the inner one. |
| \`fields\` | valid | The fields of the header blob by their names in the specification. |
| \`derived\` | valid | What follows from them. \`encoding\` is the id of the pair in \`rumi_header.ksy\`, \`external\` and \`base_frame_offset\` are those of the specification, \`file_size\` is the end of the last frame. |
| \`frames\` | valid | \`index\`, place (\`row\`, \`col\`, and \`band\`, null for cell frames), true \`height\` and \`width\`, \`byte_count\` and \`offset\` of each frame; where there are more than 16, of the first, middle and last ones. \`samples\`, where present, are the decoded samples in C order, (band, row, column) for cell frames. |
| \`blob\` | valid files, \`match\` | The header blob in hex. That of a valid file is the one blob an indexer must rebuild. |
| \`georeferencing\` | valid files | GTModelTypeGeoKey, GTRasterTypeGeoKey, the EPSG code (0: none) and the 16 elements of the matrix. |

Of an implementation that does not go so far, only some malformed vectors can be asked:

${table(['check', 'vectors', 'what it takes'], Object.entries(CHECKS).map(([check, text]) => [code(check), count(check), text]))}
The frames of most files are opaque: the magic of an OpenZL frame and bytes without meaning, which no
decoder accepts. Files whose \`check\` is \`decoder\` hold real frames (checksums, frame format version 24,
one Numeric output). How samples of less than a byte lie in memory is not said by the specification;
\`samples-uint4\` has what the known implementations do.

A reader may tell more than one broken clause of a vector; it has to refuse it, and should name this
one among them.

## Blobs

${listing(blobs)}
## Files

${listing(files)}`;
}

// Names of malformed vectors under the clause they break, blobs first.
export function malformedByClause(model) {
  const found = new Map();
  const all = [...blobVectors(model).map((v) => ['blob', v]), ...fileVectors(model).map((v) => ['file', v])];
  for (const [kind, { clause, name }] of all.filter(([, { verdict }]) => verdict === 'malformed')) {
    found.set(clause, [...(found.get(clause) ?? []), `${kind} ${name}`]);
  }
  return found;
}

export function conformanceVectors(model) {
  const blobs = blobVectors(model);
  const files = fileVectors(model);
  for (const vectors of [blobs, files]) {
    const names = new Set(vectors.map(({ name }) => name));
    if (names.size !== vectors.length) throw new Error('two vectors of one name');
  }
  return new Map([
    ['formats/vectors/blobs.json', documentText(model, blobs)],
    ['formats/vectors/files.json', documentText(model, files)],
    ['formats/vectors/README.md', page(blobs, files)],
  ]);
}
