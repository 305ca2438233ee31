// The page about parsers for other languages. It says what the tests are set up to
// run, not what ran on some machine, so it is the same on every one.

import { code, heading, listing, paragraph, table } from './markup.mjs';
import { languageTable } from './parsers.mjs';

const RUNS = {
  vectors: () => 'Parses every conformance vector to the expected values, and refuses every malformed one that a structural parser can tell.',
  compiler: ({ command }) => `Compiles with ${code(command[0])}, against declarations of the runtime library.`,
  syntax: ({ command }) => `Passes the syntax check ${code(command.filter((part) => !part.includes('{')).join(' '))}.`,
  generated: () => 'Is generated; it is no parser.',
  fails: () => 'Cannot be generated.',
};

export function languagesPage() {
  const rows = Object.entries(languageTable).map(([target, language]) => [
    code(target),
    language.name,
    RUNS[language.run](language),
    language.with ?? '',
    language.note ?? '',
  ]);
  return {
    name: 'languages.md',
    title: 'Parsers for other languages',
    blocks: [
      paragraph(
        'The two specifications, `rumi_header.ksy` and `rumi_file.ksy`, give parsers in every language that the Kaitai Struct compiler writes. A parser checks what a structure can show; what needs more (comparing offsets with byte counts, say) is listed with the [conformance vectors](../vectors/README.md).',
      ),
      listing('node formats/generate.mjs --target java -o parsers\nrumi formats --target java -o parsers'),
      paragraph('The first line is for a checkout, after `npm install --prefix formats`; the second for an installation. Both take `all`.'),
      heading('What is checked'),
      paragraph('By the tests of this repository, where the tool is at hand. Python and JavaScript always are in continuous integration.'),
      table(['target', 'language', 'checked', 'needs', 'note'], rows),
    ],
  };
}
