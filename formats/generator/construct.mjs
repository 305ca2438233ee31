// Parsers for the Python library construct.
//
// The compiler's own target knows neither parameters nor `valid`, computes what
// a size needs after it is needed, and imports nothing: its output runs for no
// specification of this kind. This writer does what the two specifications use.

import { askedOfParent, translate } from './expressions.mjs';
import { loadSpec, sizeOfAll } from './model.mjs';

const NUMBERS = { u1: 'Int8ul', u2: 'Int16ul', u4: 'Int32ul', u8: 'Int64ul', f8: 'Float64l' };

const HEAD = (name, doc) => `# Generated from ${name}.ksy by generate.mjs. Do not edit.
"""${doc}"""

import enum
import io
import sys

from construct import *
from construct.core import StreamError, stream_iseof, stream_read
`;

const HELPERS = `

def _length(number):
    """Refuse to read more bytes than there can be."""
    if number > sys.maxsize:
        raise StreamError(f"{number} bytes wanted")
    return number


def _member(kind, value):
    """Return the member of an enumeration, or the number where there is none."""
    try:
        return kind(value)
    except ValueError:
        return value


class _EnumOf(Adapter):
    """A number as a member of an enumeration."""

    def __init__(self, subcon, kind):
        super().__init__(subcon)
        self.kind = kind

    def _decode(self, obj, context, path):
        return _member(self.kind, obj)

    def _encode(self, obj, context, path):
        return int(obj)


class _Substream(Subconstruct):
    """A stream of its own for some bytes, whose positions count from 0."""

    def __init__(self, length, subcon):
        super().__init__(subcon)
        self.length = length

    def _parse(self, stream, context, path):
        data = stream_read(stream, self.length(context), path)
        return self.subcon._parsereport(io.BytesIO(data), context, path)
`;

// Splits at commas outside parentheses.
function splitArguments(text) {
  const parts = [''];
  let depth = 0;
  for (const letter of text) {
    depth += (letter === '(') - (letter === ')');
    if (letter === ',' && depth === 0) parts.push('');
    else parts[parts.length - 1] += letter;
  }
  return parts;
}

class TypeWriter {
  constructor(module, type) {
    Object.assign(this, { module, type, done: new Set(), lines: [] });
    for (const { id } of [...(type.params ?? []), ...(type.seq ?? [])]) this.done.add(id);
  }

  // Python over `this`; the instances it needs are written first.
  python(expression, subject) {
    const { module } = this;
    const context = { subject: `this.${subject}`, enumOf: (id) => module.enumName(id), sizeOf: (id) => module.sizeOf(id) };
    const { text, names } = translate(expression, context);
    names.forEach((name) => this.instance(name));
    return text;
  }

  lambda(expression) {
    return `lambda this: ${this.python(expression)}`;
  }

  // The instances that exist only now and are asked for.
  instance(name) {
    const instance = this.type.instances?.[name];
    if (!instance || this.done.has(name)) return;
    this.done.add(name);
    this.attribute({ id: name, ...instance });
  }

  userType(text) {
    const [, name, given] = /^([\w:]+)(?:\((.*)\))?$/s.exec(text);
    askedOfParent(this.module.typeOf(name) ?? {}).forEach((asked) => this.instance(asked));
    const values = given === undefined ? [] : splitArguments(given).map((argument) => this.lambda(argument));
    return `LazyBound(lambda: ${this.module.typeName(name)}(${values.join(', ')}))`;
  }

  parserOf(attribute) {
    const { type } = attribute;
    const length = () => `lambda this: _length(${this.python(attribute.size)})`;
    if (attribute.contents !== undefined) return `Const(b${JSON.stringify(attribute.contents)})`;
    if (attribute['size-eos']) return 'GreedyBytes';
    if (type === undefined) return `Bytes(${length()})`;
    if (typeof type === 'object') {
      const cases = Object.entries(type.cases).map(([key, value]) => `${this.python(key)}: ${NUMBERS[value]}`);
      return `Switch(${this.lambda(type['switch-on'])}, {${cases.join(', ')}})`;
    }
    const number = NUMBERS[type];
    if (number) return attribute.enum ? `_EnumOf(${number}, ${this.module.enumName(attribute.enum)})` : number;
    const parser = this.userType(type);
    return attribute.size === undefined ? parser : `_Substream(${length()}, ${parser})`;
  }

  field(attribute) {
    if (attribute.value !== undefined) {
      const text = this.python(attribute.value);
      return `Computed(lambda this: ${attribute.enum ? `_member(${this.module.enumName(attribute.enum)}, ${text})` : text})`;
    }
    let parser = this.parserOf(attribute);
    if (attribute.pos !== undefined) {
      const stream = attribute.io === undefined ? '' : `, stream=${this.lambda(attribute.io)}`;
      parser = `Pointer(${this.lambda(attribute.pos)}, ${parser}${stream})`;
    }
    return attribute.if === undefined ? parser : `If(${this.lambda(attribute.if)}, ${parser})`;
  }

  check({ id, valid, enum: enumeration }) {
    const value = `this.${id}`;
    if (valid === undefined) return [];
    if (typeof valid !== 'object') return [`${value} == ${this.python(valid)}`];
    if (valid['any-of']) return [`${value} in (${valid['any-of'].join(', ')})`];
    if (valid['in-enum']) return [`isinstance(${value}, ${this.module.enumName(enumeration)})`];
    if (valid.expr) return [this.python(valid.expr, id)];
    return [
      ...('min' in valid ? [`${value} >= ${this.python(valid.min)}`] : []),
      ...('max' in valid ? [`${value} <= ${this.python(valid.max)}`] : []),
    ];
  }

  attribute(attribute) {
    const parser = this.field(attribute);
    this.lines.push(`    "${attribute.id}" / ${parser},`);
    this.check(attribute).forEach((test, i) => {
      this.lines.push(`    "valid_${attribute.id}${i || ''}" / Check(lambda this: ${test}),`);
    });
  }

  text(name) {
    const params = (this.type.params ?? []).map(({ id }) => id);
    (this.type.seq ?? []).forEach((attribute) => this.attribute(attribute));
    Object.keys(this.type.instances ?? {}).forEach((id) => this.instance(id));
    const given = params.map((id) => `    "${id}" / Computed(lambda this: ${id}(this._)),`);
    const lines = [...given, ...this.lines].map((line) => `    ${line}\n`).join('');
    return `\n\ndef ${name}(${params.join(', ')}):\n    return Struct(\n${lines}    )\n`;
  }
}

class Module {
  constructor(name, specs) {
    Object.assign(this, { name, specs, spec: specs[name], imported: new Set() });
  }

  // `module::type` of an imported specification, or a type of this one.
  parts(name) {
    const path = name.split('::');
    return path.length === 2 ? path : [this.name, name];
  }

  typeOf(name) {
    const [module, type] = this.parts(name);
    return this.specs[module].types[type];
  }

  typeName(name) {
    const [module, type] = this.parts(name);
    const full = `${module}__${type}`;
    if (module !== this.name) this.imported.add(full);
    return full;
  }

  enumName(id) {
    return `${this.name}__${id}_enum`;
  }

  sizeOf(id) {
    return sizeOfAll(this.spec.types[id].seq, this.spec);
  }

  text() {
    const { name, spec } = this;
    const enums = Object.entries(spec.enums).map(([id, members]) => {
      const lines = Object.entries(members).map(([value, member]) => `    ${member.id} = ${value}\n`).join('');
      return `\n\nclass ${this.enumName(id)}(enum.IntEnum):\n${lines}`;
    });
    const types = Object.entries(spec.types).map(([id, type]) => new TypeWriter(this, type).text(this.typeName(id)));
    const root = new TypeWriter(this, spec).text(`${name}__root`);
    const imports = [...this.imported].sort();
    const imported = imports.length > 0 ? `\nfrom rumi_header import ${imports.join(', ')}\n` : '';
    return `${HEAD(name, spec.meta.title)}${imported}${HELPERS}${enums.join('')}${types.join('')}${root}\n\n${name} = ${name}__root()\n`;
  }
}

export function constructParsers() {
  const names = ['rumi_header', 'rumi_file'];
  const specs = Object.fromEntries(names.map((name) => [name, loadSpec(name)]));
  return new Map(names.map((name) => [`${name}.py`, new Module(name, specs).text()]));
}
