// All pages as one HTML document that needs nothing else: no script, no network.

import { escape, htmlBlocks, inline, pageId, withIds } from './markup.mjs';

const STYLE = `
:root { color-scheme: light dark; --text: #1f2328; --dim: #59636e; --page: #ffffff; --raised: #f6f8fa;
  --line: #d1d9e0; --link: #0758b3; --accent: #0a7a3d; }
@media screen and (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --dim: #9aa4af; --page: #0f1318; --raised: #181d24; --line: #343c46; --link: #79b8ff;
    --accent: #56d388; }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.55 system-ui, "Segoe UI", Roboto,
  "Helvetica Neue", Arial, sans-serif; }
a { color: var(--link); text-decoration-thickness: 1px; text-underline-offset: 2px; }
a:focus-visible, .table:focus-visible, figure:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.layout { display: grid; grid-template-columns: minmax(11rem, 14rem) minmax(0, 1fr); max-width: 96rem; margin: 0 auto; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 2rem 1rem 2rem 1.5rem;
  border-right: 1px solid var(--line); font-size: 0.875rem; }
nav ul { list-style: none; margin: 0 0 0.75rem; padding: 0; }
nav ul ul { margin: 0.25rem 0 0.75rem; padding-left: 0.75rem; border-left: 1px solid var(--line); }
nav li { margin: 0.2rem 0; }
nav a { text-decoration: none; color: var(--dim); }
nav > ul > li > a { color: var(--text); font-weight: 600; }
nav a:hover { color: var(--link); text-decoration: underline; }
main { padding: 2rem clamp(1rem, 2.5vw, 3rem) 6rem; }
header h1 { margin: 0; font-size: 2rem; line-height: 1.2; letter-spacing: -0.01em; }
header p { color: var(--dim); margin: 0.5rem 0 0; max-width: 46rem; }
section { border-top: 1px solid var(--line); margin-top: 2.5rem; padding-top: 0.5rem; }
h2 { font-size: 1.6rem; margin: 1.25rem 0 0.75rem; }
h3 { font-size: 1.2rem; margin: 2.25rem 0 0.5rem; }
h4 { font-size: 1rem; margin: 1.75rem 0 0.5rem; }
p { margin: 0.6rem 0; max-width: 46rem; }
.clause { color: var(--dim); font-size: 0.85rem; margin-top: 0; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { font-size: 0.86em; background: var(--raised); border-radius: 4px; padding: 0.1em 0.3em; overflow-wrap: break-word; }
pre { background: var(--raised); border: 1px solid var(--line); border-radius: 6px; padding: 0.75rem 1rem; overflow-x: auto;
  font-size: 0.85rem; line-height: 1.5; }
.table { overflow-x: auto; margin: 0.9rem 0; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-size: 0.85rem; line-height: 1.45; }
th, td { padding: 0.4rem 0.5rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
td { min-width: 2.5rem; }
td:nth-last-child(-n+2):not(.number) { min-width: 7rem; }
thead th { background: var(--raised); font-weight: 600; white-space: nowrap; }
tbody tr:last-child td { border-bottom: 0; }
tbody tr:hover { background: var(--raised); }
.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
figure svg { display: block; min-width: 46rem; width: 100%; max-width: 60rem; height: auto; margin: 0 auto; }
code.short { white-space: nowrap; }
h2 code, h3 code, h4 code { background: none; padding: 0; }
table.wide { min-width: 52rem; }
table.wide td:nth-last-child(2):not(.number) { min-width: 13rem; }
:target { scroll-margin-top: 1rem; }
@media (max-width: 60rem) {
  .layout { display: block; }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); padding: 1rem; columns: 2; }
  nav > ul > li { break-inside: avoid; }
}
@media (max-width: 30rem) { nav { columns: 1; } header h1 { font-size: 1.6rem; } }
@media print {
  @page { size: A4; margin: 16mm 14mm; }
  body { font-size: 9.5pt; line-height: 1.4; }
  .layout { display: block; }
  nav { display: none; }
  main { padding: 0; }
  a { color: inherit; text-decoration: none; }
  section { border: 0; margin: 0; padding: 0; }
  section + section { break-before: page; }
  h2, h3, h4, .clause { break-after: avoid; }
  .table, figure, pre { overflow: visible; border-radius: 0; }
  table { font-size: 7.5pt; }
  th, td { padding: 2pt 4pt; }
  td { min-width: 0; }
  td:nth-last-child(-n+2):not(.number) { min-width: 24mm; }
  table.wide, table.wide td:nth-last-child(2):not(.number) { min-width: 0; }
  thead { display: table-header-group; }
  tr, figure { break-inside: avoid; }
  figure { border: 0; }
  figure svg { min-width: 0; }
  code { padding: 0; background: none; }
}
`;

function contents(pages) {
  const entry = (id, text) => `<a href="#${id}">${inline(text)}</a>`;
  const items = pages.map(({ name, title, blocks }) => {
    const inner = blocks.filter(({ kind }) => kind === 'heading').map(({ id, text }) => `<li>${entry(id, text)}</li>\n`);
    return `<li>${entry(pageId(name), title)}\n${inner.length > 0 ? `<ul>\n${inner.join('')}</ul>\n` : ''}</li>\n`;
  });
  return `<nav aria-label="Contents">\n<ul>\n${items.join('')}</ul>\n</nav>\n`;
}

export function htmlDocument(banner, { title, summary, pages }) {
  const filled = pages.map((page) => ({ ...page, blocks: withIds(page) }));
  const sections = filled.map(
    ({ name, title: heading, blocks }) => `<section aria-labelledby="${pageId(name)}">\n<h2 id="${pageId(name)}">${escape(heading)}</h2>\n${htmlBlocks(blocks)}</section>\n`,
  );
  return (
    `<!doctype html>\n<!-- ${banner} -->\n<html lang="en">\n<head>\n<meta charset="utf-8">\n`
    + `<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>${escape(title)}</title>\n<style>${STYLE}</style>\n</head>\n`
    + `<body>\n<div class="layout">\n${contents(filled)}<main>\n<header>\n<h1>${escape(title)}</h1>\n<p>${inline(summary)}</p>\n</header>\n`
    + `${sections.join('')}</main>\n</div>\n</body>\n</html>\n`
  );
}
