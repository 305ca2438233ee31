// The frame grid: a picture of compressed sizes, on which a window is drawn with
// pointer or keys.

// Viridis, which reads the same for colour-blind eyes and in print.
const COLOURS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
const MAX_BINS = 1024;
const MIN_HEIGHT = 48;
const PAGE_ROWS = 10;

function colour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (COLOURS.length - 1);
  const below = Math.min(Math.floor(at), COLOURS.length - 2);
  return COLOURS[below].map((channel, i) => Math.round(channel + (COLOURS[below + 1][i] - channel) * (at - below)));
}

// Sizes of one band's frames by grid position, the mean where several share a bin.
function binSizes(layout, band) {
  if (layout.isConstant) {
    const size = layout.size(0);
    return { across: 1, down: 1, values: [size], least: size, most: size };
  }
  const across = Math.min(layout.across, MAX_BINS);
  const down = Math.min(layout.down, MAX_BINS);
  const sums = new Float64Array(across * down);
  const counts = new Uint32Array(across * down);
  let [least, most] = [Infinity, 0];
  for (let row = 0; row < layout.down; row += 1) {
    const start = Math.floor((row * down) / layout.down) * across;
    for (let column = 0; column < layout.across; column += 1) {
      const bin = start + Math.floor((column * across) / layout.across);
      const size = layout.size(frameIndex(layout, row, column, band));
      sums[bin] += size;
      counts[bin] += 1;
      least = Math.min(least, size);
      most = Math.max(most, size);
    }
  }
  return { across, down, values: sums.map((sum, i) => sum / counts[i]), least, most };
}

function paintBins({ across, down, values, least, most }) {
  const picture = document.createElement('canvas');
  picture.width = across;
  picture.height = down;
  const image = new ImageData(across, down);
  values.forEach((value, i) => image.data.set([...colour(most > least ? (value - least) / (most - least) : 0.5), 255], 4 * i));
  picture.getContext('2d').putImageData(image, 0, 0);
  return picture;
}

function paintLegend(canvas) {
  const context = canvas.getContext('2d');
  for (let x = 0; x < canvas.width; x += 1) {
    context.fillStyle = `rgb(${colour(x / (canvas.width - 1))})`;
    context.fillRect(x, 0, 1, canvas.height);
  }
}

const clamp = (value, least, most) => Math.min(Math.max(value, least), most);

class Grid {
  // `choose` takes a window in pixels, `point` a grid position or null.
  constructor(canvas, { choose, point }) {
    Object.assign(this, { canvas, choose, point, layout: null, cursor: null, anchor: null });
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', () => this.release());
    canvas.addEventListener('pointercancel', () => this.release());
    canvas.addEventListener('pointerleave', () => this.drag || this.point(this.isFocused ? this.cursor : null));
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('focus', () => this.look());
    canvas.addEventListener('blur', () => this.draw());
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
  }

  get isFocused() {
    return document.activeElement === this.canvas;
  }

  show(layout, band) {
    const isOther = this.layout !== layout;
    this.layout = layout;
    if (isOther) Object.assign(this, { cursor: { row: 0, column: 0 }, anchor: null, window: null, drag: null });
    this.bins = binSizes(layout, band);
    this.picture = paintBins(this.bins);
    this.draw();
  }

  mark(window) {
    this.window = window;
    this.draw();
  }

  // Pixels of the image that a point of the canvas shows.
  at({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    return {
      column: clamp(Math.floor(((clientX - box.left) / box.width) * this.layout.width), 0, this.layout.width - 1),
      row: clamp(Math.floor(((clientY - box.top) / box.height) * this.layout.length), 0, this.layout.length - 1),
    };
  }

  press(event) {
    if (!this.layout || event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { from: this.at(event), x: event.clientX, y: event.clientY, isClick: true };
  }

  move(event) {
    if (!this.layout) return;
    const here = this.at(event);
    this.point(tileAt(this.layout, here));
    if (!this.drag) return;
    this.drag.isClick &&= Math.hypot(event.clientX - this.drag.x, event.clientY - this.drag.y) < 4;
    if (this.drag.isClick) return;
    const { from } = this.drag;
    this.choose({
      row: Math.min(from.row, here.row),
      column: Math.min(from.column, here.column),
      height: Math.abs(from.row - here.row) + 1,
      width: Math.abs(from.column - here.column) + 1,
    });
  }

  // A click or tap without a movement takes the tile.
  release() {
    if (this.drag?.isClick) {
      const tile = tileAt(this.layout, this.drag.from);
      this.cursor = tile;
      this.choose(windowOf(this.layout, tile, tile));
    }
    this.drag = null;
  }

  key(event) {
    const { across, down } = this.layout;
    const { row, column } = this.cursor;
    const target = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      PageUp: [row - PAGE_ROWS, column],
      PageDown: [row + PAGE_ROWS, column],
      Home: [event.ctrlKey ? 0 : row, 0],
      End: [event.ctrlKey ? down - 1 : row, across - 1],
      Enter: [row, column],
      ' ': [row, column],
    }[event.key];
    if (!target || event.altKey || event.metaKey) return;
    event.preventDefault();
    const before = this.cursor;
    this.cursor = { row: clamp(target[0], 0, down - 1), column: clamp(target[1], 0, across - 1) };
    const isChosen = event.key === 'Enter' || event.key === ' ';
    if (event.shiftKey && !isChosen) {
      this.anchor ??= before;
      this.choose(windowOf(this.layout, this.anchor, this.cursor));
    } else {
      this.anchor = null;
      if (isChosen) this.choose(windowOf(this.layout, this.cursor, this.cursor));
    }
    this.look();
  }

  look() {
    if (!this.layout) return;
    this.point(this.cursor);
    this.draw();
  }

  draw() {
    const { layout, canvas } = this;
    const width = canvas.parentElement.clientWidth;
    if (!layout || width === 0) return;
    // To scale, unless the image is so long or so flat that it could not be seen.
    const height = Math.round(clamp((width * layout.length) / layout.width, MIN_HEIGHT, 0.7 * window.innerHeight));
    const density = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * density);
    canvas.height = Math.round(height * density);
    canvas.style.height = `${height}px`;
    this.paint(canvas.getContext('2d'), canvas.width / layout.width, canvas.height / layout.length, density);
  }

  paint(context, x, y, density) {
    const { layout, picture } = this;
    const [tileWidth, tileHeight] = [layout.tileWidth * x, layout.tileLength * y];
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, 0, 0, layout.across * tileWidth, layout.down * tileHeight);
    this.paintLines(context, tileWidth, tileHeight, density);
    const outline = ({ row, column, height, width }, colours, dash) => {
      colours.forEach(([style, line]) => {
        context.setLineDash(dash.map((length) => length * density));
        context.strokeStyle = style;
        context.lineWidth = line * density;
        const inset = density;
        context.strokeRect(
          column * x + inset, row * y + inset, Math.max(width * x - 2 * inset, density), Math.max(height * y - 2 * inset, density),
        );
      });
    };
    if (this.window) {
      const { top, bottom, left, right } = tilesOf(layout, this.window);
      outline(windowOf(this.layout, { row: top, column: left }, { row: bottom, column: right }), [['rgb(0 0 0 / 0.75)', 3], ['#fff', 1]], [5, 4]);
      const { row, column, height, width } = this.window;
      context.fillStyle = 'rgb(255 255 255 / 0.28)';
      context.fillRect(column * x, row * y, width * x, height * y);
      outline(this.window, [['#000', 4], ['#fff', 2]], []);
    }
    if (this.isFocused && this.cursor) outline(windowOf(this.layout, this.cursor, this.cursor), [['#000', 5], ['#ff5d8f', 3]], []);
  }

  paintLines(context, tileWidth, tileHeight, density) {
    if (Math.min(tileWidth, tileHeight) < 8 * density) return;
    context.fillStyle = 'rgb(255 255 255 / 0.35)';
    for (let x = tileWidth; x < context.canvas.width; x += tileWidth) context.fillRect(Math.round(x), 0, 1, context.canvas.height);
    for (let y = tileHeight; y < context.canvas.height; y += tileHeight) context.fillRect(0, Math.round(y), context.canvas.width, 1);
  }
}
