// The expressions of a .ksy in Python, as far as the two specifications use them.

const TOKEN = /\s*(0x[0-9a-f]+|\d+\.\d+|\d+|[a-z_]\w*|::|<<|>>|[<>=!]=|[-+*/%&|<>()[\].,?:])/giy;

const LEVELS = [['or'], ['and'], ['==', '!=', '<=', '>=', '<', '>'], ['|'], ['&'], ['<<', '>>'], ['+', '-'], ['*', '/', '%']];

function tokens(text) {
  const found = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (match === null) throw new Error(`no token at ${at} of ${text}`);
    found.push(match[1]);
  }
  return found;
}

class Parser {
  constructor(text, { subject, enumOf, sizeOf }) {
    Object.assign(this, { text, tokens: tokens(text), at: 0, subject, enumOf, sizeOf, names: new Set() });
  }

  get next() {
    return this.tokens[this.at];
  }

  accept(...wanted) {
    if (wanted.some((token, i) => this.tokens[this.at + i] !== token)) return false;
    this.at += wanted.length;
    return true;
  }

  take(wanted) {
    const token = this.tokens[this.at];
    if (token === undefined || (wanted && token !== wanted)) throw new Error(`${wanted ?? 'more'} expected in ${this.text}`);
    this.at += 1;
    return token;
  }

  expression() {
    const condition = this.binary(0);
    if (!this.accept('?')) return condition;
    const yes = this.expression();
    this.take(':');
    return `(${yes} if ${condition} else ${this.expression()})`;
  }

  binary(level) {
    if (level === LEVELS.length) return this.postfix();
    let left = this.binary(level + 1);
    while (LEVELS[level].includes(this.next)) {
      const operator = this.take();
      left = `(${left} ${operator === '/' ? '//' : operator} ${this.binary(level + 1)})`;
    }
    return left;
  }

  postfix() {
    let value = this.primary();
    for (;;) {
      if (this.accept('[')) {
        value = `${value}[${this.expression()}]`;
        this.take(']');
      } else if (this.accept('.', 'as', '<')) {
        this.take();
        this.take('>');
      } else if (this.accept('.')) {
        const name = this.take();
        value = { to_i: `int(${value})`, length: `len(${value})`, eof: `stream_iseof(${value})` }[name] ?? `${value}.${name}`;
      } else {
        return value;
      }
    }
  }

  primary() {
    if (this.accept('(')) {
      const inner = this.expression();
      this.take(')');
      return inner;
    }
    const token = this.take();
    if (/^\d/.test(token)) return token;
    if (token === 'sizeof') {
      this.take('<');
      const size = this.sizeOf(this.take());
      this.take('>');
      return String(size);
    }
    if (this.accept('::')) return `${this.enumOf(token)}.${this.take()}`;
    if (token === '_') return this.subject;
    if (token === '_parent') return 'this._';
    this.names.add(token);
    return `this.${token}`;
  }
}

// The Python text of an expression over `this`, and the names of its own type it uses.
export function translate(expression, context) {
  const parser = new Parser(String(expression).trim(), context);
  const text = parser.expression();
  if (parser.next !== undefined) throw new Error(`${parser.next} not expected in ${parser.text}`);
  return { text, names: parser.names };
}

// What the types of one type's members ask of it: the names after `_parent.`.
export const askedOfParent = (value) => [...JSON.stringify(value).matchAll(/\b_parent\.(\w+)/g)].map((match) => match[1]);
