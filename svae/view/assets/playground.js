// A plane of the latent space through the moment's latent: drag the point, and the decoder draws what it means.

import { askArrays, latest } from './wire.js';
import { store, on, byId, attempt, colourOf, frameNow, clamp } from './store.js';
import { fresh, paint, paintTraces } from './paint.js';
import { frameOf, slice } from './frames.js';
import { colour } from './theme.js';

let cloud = null, point = null, held = false, range = null;
const axis = (id) => Number(byId(id).value);

const fetchCloud = attempt(async () => {
  const { recording, block } = store, found = await askArrays('plane', { recording });
  if (recording !== store.recording || block !== store.block) return;
  cloud = Object.assign(found.arrays, { of: store.run.block });
  range = null;
  drawPlane();
});

// Limits of the two axes, with room around all but the most remote frames
function limits() {
  if (range) return range;
  const { data, shape: [n, D] } = cloud.latents;
  range = [axis('axis-x'), axis('axis-y')].map((d) => {
    const sorted = Float32Array.from({ length: n }, (_, i) => data[i * D + d]).sort();
    const low = sorted[Math.floor(0.01 * (n - 1))], high = sorted[Math.ceil(0.99 * (n - 1))];
    const room = 0.22 * (high - low) + 1e-6;
    return [low - room, high + room];
  });
  return range;
}

function drawPlane() {
  const paper = fresh(byId('plane'));
  if (!paper || !cloud || !store.source) return;
  const { c, width, height } = paper, { data, shape: [n, D] } = cloud.latents;
  const [[lx, hx], [ly, hy]] = limits(), i = axis('axis-x'), j = axis('axis-y');
  const x = (v) => (v - lx) / (hx - lx) * width, y = (v) => height - (v - ly) / (hy - ly) * height;
  c.globalAlpha = 0.42;
  for (let k = 0; k < n; k++) {
    c.fillStyle = store.run.discrete && cloud.of === store.run.block ? colourOf(cloud.state.data[k]) : colour.cloud;
    c.beginPath(); c.arc(x(data[k * D + i]), y(data[k * D + j]), 1.7, 0, 7); c.fill();
  }
  c.globalAlpha = 1;
  if (!point) return;
  const px = x(point[i]), py = y(point[j]);
  c.strokeStyle = colour.cross; c.lineWidth = 1;
  c.beginPath(); c.moveTo(px, 0); c.lineTo(px, height); c.moveTo(0, py); c.lineTo(width, py); c.stroke();
  c.beginPath(); c.arc(px, py, 7, 0, 7); c.fillStyle = colour.model; c.fill();
  c.strokeStyle = colour.ring; c.lineWidth = 2.5; c.stroke();
}

const imagine = latest(attempt(async () => {
  const asked = point, found = await askArrays('decode', { x: asked.map((v) => v.toFixed(5)).join(',') });
  show(slice(found.arrays.frames, 0));
}));

function show(frame) {
  const { look } = store.source, canvas = byId('imagined');
  const line = { at: (t, row) => frame.data[row], colour: colour.model, width: 2 };
  if (look.kind === 'traces') paintTraces(canvas, look, 0, 1, [line]);
  else paint(canvas, look, frame);
  canvas.dataset.drawn = Number(canvas.dataset.drawn || 0) + 1;
}

// The point goes with the moment until somebody takes it.
function followMoment() {
  if (!store.source || !store.about || held) return;
  const latents = frameOf('decoded', frameNow(), 'latents'), frame = frameOf('decoded', frameNow());
  if (!latents) return;
  point = Array.from(latents.data);
  show(frame);
  drawPlane();
}

function moveTo({ offsetX, offsetY }) {
  const { width, height } = byId('plane').getBoundingClientRect(), [[lx, hx], [ly, hy]] = limits();
  point = [...point];
  point[axis('axis-x')] = lx + clamp(offsetX / width, 0, 1) * (hx - lx);
  point[axis('axis-y')] = hy - clamp(offsetY / height, 0, 1) * (hy - ly);
  drawPlane();
  imagine();
}

function pressed(down) {
  if (!point || !cloud) return;
  const canvas = byId('plane');
  held = true;
  canvas.setPointerCapture(down.pointerId);
  moveTo(down);
  canvas.addEventListener('pointermove', moveTo);
  canvas.addEventListener('pointerup', () => { canvas.removeEventListener('pointermove', moveTo); }, { once: true });
}

function fillAxes() {
  const [first, second = first] = store.about.spread;
  for (const [id, chosen] of [['axis-x', first], ['axis-y', second]]) {
    const option = (_, d) => new Option(`x${d + 1}`, d, false, d === chosen);
    const options = Array.from({ length: store.run.latents }, option);
    byId(id).replaceChildren(...options);
  }
}

export function startPlayground() {
  byId('plane').addEventListener('pointerdown', pressed);
  for (const id of ['axis-x', 'axis-y']) byId(id).addEventListener('change', () => { range = null; drawPlane(); });
  on('recording', () => { cloud = null; held = false; if (!byId('axis-x').length) fillAxes(); fetchCloud(); });
  on('cursor', () => { held = false; });
  on('cursor loaded source', followMoment);
  on('states', drawPlane);
  on('block', fetchCloud);
  new ResizeObserver(() => { drawPlane(); if (point && store.source) imagine(); }).observe(byId('plane'));
}
