// The timeline: what is seen of the recording, asked for as it is needed, and moved by mouse and wheel.

import { askArrays, ask, latest } from './wire.js';
import { store, on, emit, byId, clamp, look, zoom, seek, attempt, titleOf, clock, others } from './store.js';
import { draw, layout, strip, GUTTER, RIGHT } from './tracks.js';
import { timeAt } from './ruler.js';
import { fresh } from './paint.js';
import { playBout } from './player.js';
import { colour } from './theme.js';

let got = null, whole = null, places = [], pending = false;

const room = () => byId('tracks').clientWidth - GUTTER - RIGHT;
const frameAt = (x) => store.first + (x - GUTTER) / room() * (store.last - store.first);
export const secondsAt = (frame) => (got ? timeAt(got, frame) : store.run.fps ? frame / store.run.fps : frame);

// Half a screen more on each side than is seen, so that moving shows something at once
const fetchWindow = latest(attempt(async () => {
  const span = store.last - store.first, { recording, block } = store;
  const first = Math.floor(clamp(store.first - span / 2, 0, store.frames - 1));
  const last = Math.ceil(clamp(store.last + span / 2, first + 1, store.frames));
  const bins = clamp(Math.round(room() * (last - first) / span), 1, 6000);
  const found = await askArrays('window', { recording, first, last, bins });
  if (recording !== store.recording || block !== store.block) return;
  got = Object.assign(found, { span });
  redraw();
}));

const fetchWhole = latest(attempt(async () => {
  const { recording, block } = store;
  const found = await askArrays('window', { recording, first: 0, last: store.frames, bins: clamp(room(), 1, 2400) });
  if (recording === store.recording && block === store.block) { whole = found; redraw(); }
}));

function covered() {
  if (!got) return false;
  const span = store.last - store.first, near = Math.abs(Math.log(span / got.span)) < 0.2;
  return near && store.first >= got.first && store.last <= got.last;
}

export function redraw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; drawTracks(); drawOverview(); });
}

function drawTracks() {
  const canvas = byId('tracks'), paper = store.about && fresh(canvas);
  if (!paper) return;
  places = layout(paper.height);
  draw(paper, places, got);
  const ethogram = places.find((p) => p.name === 'ethogram');
  Object.assign(canvas.dataset, { first: store.first, last: store.last, gutter: GUTTER, right: RIGHT });
  canvas.dataset.ready = got ? 'yes' : 'no';
  if (ethogram) canvas.dataset.ethogram = ethogram.top + ethogram.height / 2;
}

const overviewX = (t) => GUTTER + t / store.frames * room();

function drawOverview() {
  const paper = fresh(byId('overview'));
  if (!paper || !whole) return;
  const { c, height } = paper;
  c.font = '12px system-ui, sans-serif'; c.fillStyle = colour.soft; c.textBaseline = 'middle';
  c.fillText('recording', 14, height / 2);
  c.fillStyle = colour.empty; c.fillRect(GUTTER, 6, room(), height - 12);
  if (store.run.discrete) strip(c, 6, height - 12, whole, overviewX);
  const a = overviewX(store.first), b = Math.max(a + 4, overviewX(store.last));
  c.fillStyle = colour.veil;
  c.fillRect(GUTTER, 5, a - GUTTER, height - 10); c.fillRect(b, 5, GUTTER + room() - b, height - 10);
  c.strokeStyle = colour.frame; c.lineWidth = 1.5; c.beginPath(); c.roundRect(a, 2, b - a, height - 4, 4); c.stroke();
  c.fillStyle = colour.now; c.fillRect(overviewX(store.cursor) - 0.75, 3, 1.5, height - 6);
}

// --- mouse ---------------------------------------------------------------------------------------------------------

function placeAt(y) { return places.find((p) => y >= p.top && y < p.top + p.height)?.name; }

const playAt = attempt(async (frame) => {
  const bout = await ask('bout', { recording: store.recording, frame, go: 'here' });
  if (bout) playBout(bout);
});

function pressed(down) {
  if (down.button !== 0) return;
  const canvas = byId('tracks'), { first, last } = store, place = placeAt(down.offsetY);
  let moved = false;
  canvas.setPointerCapture(down.pointerId);
  const go = (move) => {
    moved ||= Math.abs(move.offsetX - down.offsetX) > 3;
    if (place === 'ruler') seek(frameAt(move.offsetX));
    else if (moved) {
      const shift = (down.offsetX - move.offsetX) / room() * (last - first);
      look(first + shift, last + shift);
    }
  };
  const up = (event) => {
    canvas.removeEventListener('pointermove', go);
    const frame = clamp(Math.floor(frameAt(event.offsetX)), 0, store.frames - 1);
    if (moved || event.offsetX < GUTTER) return;
    if (place === 'ethogram') playAt(frame);
    else { emit('stop'); seek(frame); }
  };
  canvas.addEventListener('pointermove', go);
  canvas.addEventListener('pointerup', up, { once: true });
  if (place === 'ruler') go(down);
}

function wheeled(event) {
  event.preventDefault();
  const [across, along] = event.shiftKey ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
  const shift = across / 900 * (store.last - store.first);
  if (Math.abs(across) > Math.abs(along)) look(store.first + shift, store.last + shift);
  else zoom(Math.exp(clamp(event.deltaY, -240, 240) / 420), clamp(frameAt(event.offsetX), 0, store.frames));
}

function overviewed(down) {
  const canvas = byId('overview'), go = ({ offsetX }) => {
    const middle = (offsetX - GUTTER) / room() * store.frames, half = (store.last - store.first) / 2;
    look(middle - half, middle + half);
  };
  canvas.setPointerCapture(down.pointerId);
  canvas.addEventListener('pointermove', go);
  canvas.addEventListener('pointerup', () => canvas.removeEventListener('pointermove', go), { once: true });
  go(down);
}

// What lies under the pointer, in words beside it
function hovered({ offsetX, offsetY, buttons }) {
  const track = places.find((p) => offsetY >= p.top && offsetY < p.top + p.height), box = byId('under');
  const frame = clamp(Math.floor(frameAt(offsetX)), 0, store.frames - 1);
  byId('tracks').style.cursor = { ethogram: 'pointer', ruler: 'col-resize' }[track?.name] || 'default';
  box.hidden = !got || !track || buttons > 0 || offsetX < GUTTER || frame < got.first || frame >= got.last;
  if (box.hidden) return;
  box.textContent = `${clock(secondsAt(frame))}  ${wordsAt(track.name, frame, (offsetY - track.top) / track.height)}`;
  const half = box.offsetWidth / 2, { offsetTop, clientWidth } = byId('tracks');
  box.style.left = `${clamp(offsetX, GUTTER + half, clientWidth - half - 6)}px`;
  box.style.top = `${offsetTop + offsetY - 12}px`;
}

function latentAt({ data, shape: [, L] }, i, share) {
  const l = Math.min(L - 1, Math.floor(share * L));
  return `latent ${store.about.lanes[l] + 1}: ${data[i * L + l].toFixed(2)}`;
}

// lane: how far down in the track, from 0 to 1
function wordsAt(place, frame, lane) {
  const { edges, probability: p, state, error, low } = got.arrays, n = state.data.length;
  let i = Math.min(n - 1, Math.floor((frame - edges.data[0]) / (edges.data[n] - edges.data[0]) * n));
  while (i + 1 < n && edges.data[i + 1] <= frame) i++;
  while (i > 0 && edges.data[i] > frame) i--;
  if (place === 'error') return `error ${error.data[i].toPrecision(3)}`;
  if (place === 'latents') return latentAt(low, i, lane);
  const row = others().find((block) => place === `block ${block.name}`);
  if (row) return `${row.name}: ${row.titles[got.arrays[`state_${row.name}`]?.data[i]] || ''}`;
  if (!store.run.discrete) return '';
  const k = state.data[i], K = p.shape[1];
  const share = store.run.states.filter((s) => s.root === k).reduce((sum, s) => sum + p.data[i * K + s.state], 0) / 255;
  return `${titleOf(k)}, probability ${share.toFixed(2)}`;
}

export function forget() { got = null; whole = null; fetchWindow(); fetchWhole(); }

export function startTimeline() {
  const tracks = byId('tracks');
  tracks.addEventListener('pointerdown', pressed);
  tracks.addEventListener('pointermove', hovered);
  tracks.addEventListener('pointerleave', () => { byId('under').hidden = true; });
  tracks.addEventListener('wheel', wheeled, { passive: false });
  byId('overview').addEventListener('pointerdown', overviewed);
  on('view', () => { if (!covered()) fetchWindow(); });
  on('view cursor focus forecast', redraw);
  on('states', forget);
  new ResizeObserver(() => { if (store.about) { fetchWindow(); fetchWhole(); redraw(); } }).observe(byId('timeline'));
}
