// The constants of the compiled core, rumi/_core/layout.pxd.

function enumeration(members) {
  return `cdef enum:\n${members.map(([name, value]) => `    ${name} = ${value}\n`).join('')}`;
}

// Cython turns a chain of comparisons with constants into one C switch.
function itemsizeFunction(encodings) {
  const sizes = [...new Set(encodings.map(({ itemsize }) => itemsize))].sort((a, b) => a - b);
  const branches = sizes.map((size, i) => {
    const pairs = encodings
      .filter(({ itemsize }) => itemsize === size)
      .map(({ format, bits, id }) => `        (${format} << 8) | ${bits},  # ${id}\n`);
    return `    ${i === 0 ? 'if' : 'elif'} pair in (\n${pairs.join('')}    ):\n        return ${size}\n`;
  });
  return (
    'cdef inline int encoding_itemsize(int sample_format, int bits_per_sample) noexcept nogil:\n'
    + '    """Bytes of one sample in memory, or 0 if the pair is not a listed one."""\n'
    + '    cdef int pair\n'
    + '    # Both are single bytes in the header; wider values would overlap in the pair.\n'
    + '    if (sample_format | bits_per_sample) & ~0xFF:\n'
    + '        return 0\n'
    + '    pair = (sample_format << 8) | bits_per_sample\n'
    + branches.join('')
    + '    return 0\n'
  );
}

export function layoutPxd({ header, file }) {
  const blob = [
    ['HEADER_SIZE', header.size],
    ['MAGIC', `0x${header.magic.toString(16).toUpperCase()}`],
    ['VERSION', header.version],
    ['MAX_COUNT_BITS', header.maxCountBits],
    ...header.fixed.map(({ name, offset }) => [`OFFSET_${name.toUpperCase()}`, offset]),
    ...header.frameUnits.map(({ id, value }) => [`FRAME_UNIT_${id.toUpperCase()}`, value]),
  ];
  const placement = [
    ['IFD_OFFSET', file.ifdOffset],
    ['IFD_SIZE', file.ifdSize],
    ['EXTERNAL_OFFSET', file.externalOffset],
    ['GEOREFERENCING_SIZE', file.transformationSize + file.geoKeySize],
    ['INLINE_SIZE', file.inlineSize],
  ];
  const text = [
    '# Generated from formats/*.ksy by formats/generate.mjs. Do not edit.\n"""Constants of the format for the compiled core."""\n',
    `# Header blob\n${enumeration(blob)}`,
    `# Placement in the file\n${enumeration(placement)}`,
    itemsizeFunction(header.encodings),
  ].join('\n');
  return new Map([['rumi/_core/layout.pxd', text]]);
}
