// Where the frames lie, from the index of a file or from a header blob, and
// what a window needs of them.

// A file whose frames fit a grid, however wrong the rest may be.
function fileLayout(file) {
  const { offsets, counts, isExact } = file.frames;
  if (isExact) {
    const frame = offsets.findIndex((offset) => !isSafe(offset));
    throw new Refused(`frame ${frame} is said to start at byte ${offsets[frame]}, beyond 2^53`);
  }
  const [length, width, tileLength, tileWidth, bands] = [
    TAG.image_length, TAG.image_width, TAG.tile_length, TAG.tile_width, TAG.samples_per_pixel,
  ].map((tag) => Number(file.number(tag)));
  const unit = file.frameUnit;
  const [down, across] = file.grid.map(Number);
  return {
    origin: 'file', length, width, tileLength, tileWidth, bands, unit, down, across,
    count: offsets.length,
    size: (k) => counts[k],
    offset: (k) => offsets[k],
    isConstant: false,
  };
}

function blobLayout(blob) {
  const { fields } = blob;
  for (const name of ['image_width', 'image_length', 'tile_width', 'tile_length', 'samples_per_pixel', 'count_min']) {
    if (fields[name] === 0) throw new Refused(`${name} is 0`);
  }
  if (!Object.values(FORMAT.frameUnit).includes(fields.frame_unit)) throw new Refused('frame_unit is neither tile nor cell');
  if (BigInt(blob.length) !== blob.size) throw new Refused('the packed sizes are not what the fields demand');
  if (!isSafe(blob.frameCount)) throw new Refused(`the blob claims ${blob.frameCount} frames, beyond 2^53`);
  const base = Number(frameDataOffset(blob.frameCount, fields.samples_per_pixel));
  const [down, across] = blob.grid.map(Number);
  const common = {
    origin: 'blob', length: fields.image_length, width: fields.image_width, tileLength: fields.tile_length,
    tileWidth: fields.tile_width, bands: fields.samples_per_pixel, unit: fields.frame_unit, down, across,
    count: Number(blob.frameCount),
  };
  if (fields.count_bits === 0) {
    const size = fields.count_min;
    const offset = (k) => {
      const exact = BigInt(base) + BigInt(k) * BigInt(size);
      if (!isSafe(exact + BigInt(size))) throw new Refused(`frame ${k} would start at byte ${exact}, beyond 2^53`);
      return Number(exact);
    };
    return { ...common, size: () => size, offset, isConstant: true };
  }
  const { counts } = blob;
  const offsets = new Float64Array(counts.length);
  let position = base;
  counts.forEach((count, k) => {
    offsets[k] = position;
    position += count;
  });
  if (position > Number.MAX_SAFE_INTEGER) throw new Refused('the frames of the blob end beyond byte 2^53');
  return { ...common, size: (k) => counts[k], offset: (k) => offsets[k], isConstant: false };
}

const isCell = (layout) => layout.unit === FORMAT.frameUnit.cell;

function frameIndex(layout, row, column, band) {
  const position = row * layout.across + column;
  return isCell(layout) ? position : position * layout.bands + band;
}

function checkWindow(layout, { row, column, height, width }) {
  if (row >= 0 && column >= 0 && height >= 1 && width >= 1 && row + height <= layout.length && column + width <= layout.width) return;
  throw new Refused(
    `window (row ${row}, column ${column}, height ${height}, width ${width}) is empty or outside the image of `
    + `${layout.length} x ${layout.width} (height x width) pixels`,
  );
}

// Zero-based bands such as "0,2" or "0-3"; nothing stands for all.
function parseBands(text, count) {
  const parts = text.split(',').map((part) => part.trim());
  if (parts.length === 1 && parts[0] === '') return null;
  const bands = new Set();
  for (const part of parts) {
    const [, first, last = first] = /^(\d{1,6})(?:\s*-\s*(\d{1,6}))?$/.exec(part) ?? [];
    if (first === undefined) throw new Refused(`expected zero-based bands such as 0,2 or 0-3, found "${text}"`);
    for (const band of [Number(first), Number(last)]) {
      if (band >= count) throw new Refused(`band ${band} is outside 0..${count - 1} (bands are zero-based)`);
    }
    for (let band = Number(first); band <= Number(last); band += 1) bands.add(band);
  }
  if (bands.size === 0) throw new Refused(`"${text}" selects no band`);
  return [...bands].sort((a, b) => a - b);
}

// The grid positions that a window meets, first and last of each axis.
function tilesOf(layout, { row, column, height, width }) {
  return {
    top: Math.floor(row / layout.tileLength),
    bottom: Math.floor((row + height - 1) / layout.tileLength),
    left: Math.floor(column / layout.tileWidth),
    right: Math.floor((column + width - 1) / layout.tileWidth),
  };
}

const tileAt = ({ tileLength, tileWidth }, { row, column }) => ({
  row: Math.floor(row / tileLength),
  column: Math.floor(column / tileWidth),
});

// The window of the pixels that the tiles from one to another cover.
function windowOf({ tileLength, tileWidth, length, width }, first, last) {
  const row = Math.min(first.row, last.row) * tileLength;
  const column = Math.min(first.column, last.column) * tileWidth;
  const bottom = Math.min((Math.max(first.row, last.row) + 1) * tileLength, length);
  const right = Math.min((Math.max(first.column, last.column) + 1) * tileWidth, width);
  return { row, column, height: bottom - row, width: right - column };
}

// The frames that meet window and bands, in file order.
function planFrames(layout, window, bands) {
  checkWindow(layout, window);
  const { top, bottom, left, right } = tilesOf(layout, window);
  const slots = isCell(layout) ? 1 : (bands?.length ?? layout.bands);
  const count = (bottom - top + 1) * (right - left + 1) * slots;
  if (count > MAX_PLANNED) {
    throw new Refused(`the window meets ${grouped(count)} frames, more than the ${grouped(MAX_PLANNED)} this page lists; take a smaller one`);
  }
  const frames = [];
  for (let row = top; row <= bottom; row += 1) {
    for (let column = left; column <= right; column += 1) {
      for (let slot = 0; slot < slots; slot += 1) {
        const band = bands ? bands[slot] : slot;
        const index = frameIndex(layout, row, column, band);
        frames.push({ index, row, column, band, offset: layout.offset(index), size: layout.size(index) });
      }
    }
  }
  return frames;
}

// Byte ranges, the ends exclusive; frames at most `gap` bytes apart share one.
function mergeRanges(frames, gap) {
  const ranges = [];
  for (const { offset, size } of frames) {
    const last = ranges.at(-1);
    if (last && offset >= last.stop && offset - last.stop <= gap) {
      last.stop = offset + size;
      last.frames += 1;
    } else {
      ranges.push({ start: offset, stop: offset + size, frames: 1 });
    }
  }
  return ranges;
}
