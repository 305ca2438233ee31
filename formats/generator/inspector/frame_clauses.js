// Clauses about the frames. This page has no OpenZL decoder, so it looks at how
// they start and no further.

const FRAMES = new Registry('frame');
const NEEDS_DECODER = 'needs an OpenZL decoder, which this page has not; `rumi validate` has one';

// Checks what a look into frames takes for granted, then gives each frame's version, -1 for what is none.
function versionsOf(file) {
  return file.keep('versions', () => {
    const { offsets } = file.frames;
    if (file.end > file.size) throw new NotChecked('frames reach beyond the end of the file');
    if (!encodingOf(file.number(TAG.sample_format), file.number(TAG.bits_per_sample))) {
      throw new NotChecked('the sample encoding is not listed');
    }
    file.frameUnit;
    const view = viewOf(file.get('starts'));
    return Int8Array.from(offsets, (_, frame) => {
      const version = view.getUint32(4 * frame, true) - FRAME_MAGIC;
      return version >= 0 && version < FRAME_VERSIONS ? version : -1;
    });
  });
}

FRAMES.clause('magic', 'Frames', 'each frame starts as an OpenZL frame', (file) => {
  const frame = versionsOf(file).indexOf(-1);
  if (frame < 0) return;
  const { offsets, counts } = file.frames;
  const length = Math.min(4, Number(counts[frame]));
  const found = hexBytes(file.get('starts').subarray(4 * frame, 4 * frame + length));
  throw new Broken(`the magic of an OpenZL frame in frame ${frame}`, found, { offset: Number(offsets[frame]) });
});

FRAMES.clause('version', 'Frames', 'all frames use the same pinned frame format version', (file) => {
  const versions = versionsOf(file);
  const known = versions.find((version) => version >= 0);
  const frame = versions.findIndex((version) => version >= 0 && version !== known);
  if (frame < 0) return;
  throw new Broken(`version ${known} in frame ${frame}`, versions[frame], { offset: Number(file.frames.offsets[frame]) });
});

FRAMES.clause('declared-size', FORMAT.clauses.tile_width, "each frame declares its tile's size", () => {
  throw new NotChecked(NEEDS_DECODER);
});

FRAMES.clause('decodes', 'Frames', 'each frame decodes alone to the samples of its tile, cut', () => {
  throw new NotChecked(NEEDS_DECODER);
});

// One finding for each clause, in the order of `rumi.validate`.
function validate(file, blob) {
  const absent = 'no file was given';
  const findings = file ? [...FILE.run(file), ...FRAMES.run(file)] : [...FILE.skip(absent), ...FRAMES.skip(absent)];
  findings.push(...(blob ? BLOB.run(blob) : BLOB.skip('no blob was given')));
  if (file && blob) return [...findings, ...MATCH.run({ blob, file })];
  return [...findings, ...MATCH.skip(file ? 'no blob was given' : absent)];
}
