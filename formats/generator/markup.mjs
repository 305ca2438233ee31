// The blocks that pages are made of, as Markdown and as HTML.
//
// Text has three marks: `code`, [text](clause:NAME) for a clause of the
// specification, and [text](NAME.md) for another page.

export const code = (text) => `\`${String(text).trim().replace(/\s+/g, ' ')}\``;
export const oneLine = (text) => String(text ?? '').trim().replace(/\s+/g, ' ');

export const heading = (text, clauses = []) => ({ kind: 'heading', text, clauses });
export const subheading = (text, clauses = []) => ({ kind: 'subheading', text, clauses });
export const paragraph = (text) => ({ kind: 'paragraph', text });
export const listing = (text) => ({ kind: 'listing', text });
export const figure = (name, title, svg) => ({ kind: 'figure', name, title, svg });
export const table = (head, rows) => ({ kind: 'table', head, rows: rows.map((row) => row.map((cell) => oneLine(cell))) });

export const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
export const clauseLink = (clause) => `[${clause}](clause:${clause})`;

// --- Markdown

const linked = (text) => text.replace(/\]\(clause:([^)]+)\)/g, (_, clause) => `](clauses.md#${slug(clause)})`);
const cellText = (text) => linked(text).replaceAll('|', '\\|');
const clauseLine = (clauses) => (clauses.length > 0 ? `\nSpecification: ${linked(clauses.map(clauseLink).join('; '))}.\n` : '');

const MARKDOWN = {
  heading: ({ text, clauses }) => `## ${text}\n${clauseLine(clauses)}`,
  subheading: ({ text, clauses }) => `### ${text}\n${clauseLine(clauses)}`,
  paragraph: ({ text }) => `${linked(text.trim())}\n`,
  listing: ({ text }) => `\`\`\`text\n${text}\n\`\`\`\n`,
  figure: ({ name, title }) => `![${title}](${name})\n`,
  table: ({ head, rows }) => {
    const line = (cells) => `| ${cells.join(' | ')} |\n`;
    return line(head) + line(head.map(() => '---')) + rows.map((row) => line(row.map(cellText))).join('');
  },
};

export function markdown(banner, { title, blocks }) {
  return `<!-- ${banner} -->\n\n# ${title}\n\n${blocks.map((block) => MARKDOWN[block.kind](block)).join('\n')}`;
}

// --- HTML

export const escape = (text) => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');

// Code longer than this may be broken at its blanks.
const LONGEST_UNBROKEN = 26;

export const pageId = (name) => slug(name.replace(/\.md$/, ''));

function address(target, isClause) {
  if (isClause) return `#clause-${slug(target)}`;
  return target.startsWith('../') || target.endsWith('.html') ? target : `#${pageId(target)}`;
}

// Code first, since a mark inside of it is none.
export function inline(text) {
  return text
    .split(/(`[^`]*`)/)
    .map((part) =>
      part.startsWith('`')
        ? `<code${part.length <= LONGEST_UNBROKEN ? ' class="short"' : ''}>${escape(part.slice(1, -1))}</code>`
        : escape(part).replace(
            /\[([^\]]*)\]\(((?:clause:)?)([^)]+)\)/g,
            (_, label, isClause, target) => `<a href="${address(target, isClause)}">${label}</a>`,
          ),
    )
    .join('');
}

const clauseNote = (clauses) =>
  clauses.length > 0 ? `<p class="clause">Specification: ${clauses.map((c) => inline(clauseLink(c))).join('; ')}</p>\n` : '';
const titleHtml = (level) => ({ text, clauses, id }) => `<h${level} id="${id}">${inline(text)}</h${level}>\n${clauseNote(clauses)}`;
const isNumber = (text) => /^-?[\d.]+$/.test(text);

const HTML = {
  heading: titleHtml(3),
  subheading: titleHtml(4),
  paragraph: ({ text }) => text.trim().split(/\n\n+/).map((part) => `<p>${inline(oneLine(part))}</p>\n`).join(''),
  listing: ({ text }) => `<pre>${escape(text)}</pre>\n`,
  figure: ({ svg, title }) => `<figure tabindex="0" aria-label="${escape(title)}">\n${svg}</figure>\n`,
  table: ({ head, rows }) => {
    // A column of numbers is set to the right.
    const numeric = head.map((_, i) => rows.every((row) => isNumber(row[i])));
    const cells = (row, tag) => row.map((cell, i) => `<${tag}${numeric[i] ? ' class="number"' : ''}>${tag === 'th' ? escape(cell) : inline(cell)}</${tag}>`);
    const body = rows.map((row) => `<tr>${cells(row, 'td').join('')}</tr>\n`).join('');
    return `<div class="table" tabindex="0"><table${head.length > 4 ? ' class="wide"' : ''}>\n<thead><tr>${cells(head, 'th').join('')}</tr></thead>\n<tbody>\n${body}</tbody>\n</table></div>\n`;
  },
};

// Blocks with an id for every heading, none of them twice in a document.
export function withIds(page) {
  const prefix = pageId(page.name);
  return page.blocks.map((block) =>
    /heading$/.test(block.kind) ? { id: `${prefix}-${slug(block.text)}`, ...block } : block,
  );
}

export const htmlBlocks = (blocks) => blocks.map((block) => HTML[block.kind](block)).join('');
