// A frame on a canvas: as an image, as the points of a body, or as traces around the moment.

import { colour } from './theme.js';

const MAGMA = '#000004 #180f3d #440f76 #721f81 #9e2f7f #cd4071 #f1605d #fd9668 #feca8d #fcfdbf'.split(' ');
const tables = { gray: ramp(['#000000', '#ffffff']), magma: ramp(MAGMA) };
const places = new WeakMap(); // canvas -> where the points of a body are on it
const NEAR = 13; // pixels
const scratch = document.createElement('canvas');

function ramp(stops) {
  const rgb = stops.map((s) => [1, 3, 5].map((i) => parseInt(s.slice(i, i + 2), 16)));
  const table = new Uint8Array(768);
  for (let v = 0; v < 256; v++) {
    const place = (v / 255) * (stops.length - 1), i = Math.min(Math.floor(place), stops.length - 2), f = place - i;
    for (let c = 0; c < 3; c++) table[3 * v + c] = Math.round(rgb[i][c] * (1 - f) + rgb[i + 1][c] * f);
  }
  return table;
}

// A context in CSS pixels on a canvas that is as sharp as the screen; null for one that is not seen.
export function fresh(canvas) {
  const { width, height } = canvas.getBoundingClientRect(), sharp = window.devicePixelRatio || 1;
  if (width < 1 || height < 1) return null;
  const w = Math.round(width * sharp), h = Math.round(height * sharp);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const c = canvas.getContext('2d');
  c.setTransform(sharp, 0, 0, sharp, 0, 0);
  c.clearRect(0, 0, width, height);
  return { c, width, height };
}

export function paint(canvas, look, frame, ink = colour.model) {
  const on = fresh(canvas);
  if (!on || !frame) return;
  places.delete(canvas);
  if (look.kind === 'image') image(on, look, frame);
  else places.set(canvas, points(on, look, frame, ink));
}

function image({ c, width, height }, look, { shape: [h, w, channels], data }) {
  scratch.width = w; scratch.height = h;
  const brush = scratch.getContext('2d'), pixels = brush.createImageData(w, h), table = tables[look.colours];
  for (let i = 0; i < w * h; i++) {
    for (let k = 0; k < 3; k++) pixels.data[4 * i + k] = channels ? data[i * channels + k] : table[3 * data[i] + k];
    pixels.data[4 * i + 3] = 255;
  }
  brush.putImageData(pixels, 0, 0);
  const scale = Math.min(width / w, height / h);
  c.imageSmoothingEnabled = true;
  c.imageSmoothingQuality = 'high';
  const box = [(width - scale * w) / 2, (height - scale * h) / 2, scale * w, scale * h];
  c.save();
  c.beginPath(); c.roundRect(...box, 6); c.clip();
  c.drawImage(scratch, ...box);
  c.restore();
}

export function nameAt(canvas, x, y) {
  const found = (places.get(canvas) || []).map((p) => [Math.hypot(p.x - x, p.y - y), p.name]).filter(([d]) => d < NEAR);
  return found.length ? found.reduce((a, b) => (a[0] <= b[0] ? a : b))[1] : '';
}

// The ink lighter for what is left, darker for what is right; a ring is the nose
function shade(ink, side) {
  if (!side) return ink;
  const rgb = [1, 3, 5].map((i) => parseInt(ink.slice(i, i + 2), 16));
  const to = (v) => Math.round(side === 'left' ? v + (255 - v) * 0.55 : v * 0.58);
  return `rgb(${rgb.map(to).join(',')})`;
}

function points({ c, width, height }, look, { shape: [P], data }, ink) {
  const [lx, ly] = look.low, [hx, hy] = look.high, scale = Math.min(width / (hx - lx), height / (hy - ly));
  const left = (width - scale * (hx - lx)) / 2, top = (height - scale * (hy - ly)) / 2;
  const x = (p) => left + scale * (data[2 * p] - lx);
  const y = (p) => top + scale * (look.upwards ? hy - data[2 * p + 1] : data[2 * p + 1] - ly);
  const seen = (p) => Number.isFinite(data[2 * p]) && Number.isFinite(data[2 * p + 1]);
  const drawn = [];
  c.lineCap = 'round';
  c.lineWidth = Math.max(1.5, Math.min(2.5, height / 110));
  c.strokeStyle = colour.bone;
  for (const [p, q] of look.edges) {
    if (!seen(p) || !seen(q)) continue;
    c.beginPath(); c.moveTo(x(p), y(p)); c.lineTo(x(q), y(q)); c.stroke();
  }
  const r = Math.max(2.6, Math.min(5, Math.min(height, width) / 58));
  for (let p = 0; p < P; p++) {
    if (!seen(p)) continue;
    const nose = p === look.nose, tint = shade(ink, look.sides[p]);
    c.beginPath(); c.arc(x(p), y(p), nose ? 1.5 * r : r, 0, 7);
    c.fillStyle = nose ? colour.ring : tint; c.fill();
    c.lineWidth = nose ? 0.7 * r : 1.2; c.strokeStyle = nose ? tint : colour.ring; c.stroke();
    if (look.names[p]) drawn.push({ x: x(p), y: y(p), name: look.names[p] });
  }
  return drawn;
}

// Columns through time, the moment in the middle, as lines: {at(t, row) -> value or null, colour, width, and perhaps
// band(t, row) -> [low, high] or null}
export function paintTraces(canvas, look, moment, around, lines) {
  const on = fresh(canvas);
  if (!on) return;
  const { c, width, height } = on, rows = look.columns.length, lane = height / rows;
  const x = (t) => ((t - moment) / around + 1) * width / 2;
  const y = (v, row) => (row + 0.94 - 0.88 * (v - look.low[row]) / (look.high[row] - look.low[row])) * lane;
  c.strokeStyle = colour.middle; c.lineWidth = 1;
  c.beginPath(); c.moveTo(width / 2, 0); c.lineTo(width / 2, height); c.stroke();
  const from = Math.floor(moment - around), to = Math.ceil(moment + around);
  for (let row = 0; row < rows; row++) {
    c.fillStyle = colour.faint; c.font = '11px system-ui, sans-serif';
    c.fillText(`${look.columns[row]}`, 5, row * lane + 12);
    for (const line of lines) traced(c, line, row, from, to, x, y);
  }
}

function traced(c, line, row, from, to, x, y) {
  if (line.band) {
    const seen = [];
    for (let t = from; t <= to; t++) { const b = line.band(t, row); if (b) seen.push([t, ...b]); }
    c.beginPath();
    seen.forEach(([t, , high], i) => (i ? c.lineTo(x(t), y(high, row)) : c.moveTo(x(t), y(high, row))));
    seen.reverse().forEach(([t, low]) => c.lineTo(x(t), y(low, row)));
    c.globalAlpha = 0.18; c.fillStyle = line.colour; c.fill(); c.globalAlpha = 1;
  }
  c.beginPath();
  let pen = false;
  for (let t = from; t <= to; t++) {
    const v = line.at(t, row);
    if (v === null || !Number.isFinite(v)) { pen = false; continue; }
    if (pen) c.lineTo(x(t), y(v, row)); else c.moveTo(x(t), y(v, row));
    pen = true;
  }
  c.strokeStyle = line.colour; c.lineWidth = line.width; c.lineJoin = 'round'; c.stroke();
}
