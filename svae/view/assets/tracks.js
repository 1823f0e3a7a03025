// Drawing of the tracks: ruler, ethogram, probabilities, latents, error; all on the same frames.

import { store, colourOf, shortOf, rootOf, others } from './store.js';
import { ruler } from './ruler.js';
import { future } from './future.js';
import { colour } from './theme.js';

export const GUTTER = 96, RIGHT = 12;
const GAP = 9;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

// [{name, title, top, height}] from top to bottom; latents take the room that is left
export function layout(height) {
  const discrete = store.run.discrete;
  const [e, p, r] = height < 240 ? [22, 30, 22] : height < 330 ? [26, 46, 30] : [34, 64, 44];
  const fixed = { ruler: 22, ethogram: discrete ? e : 0, probability: discrete ? p : 0, error: r };
  const rows = others().map(({ name }) => `block ${name}`);
  for (const name of rows) fixed[name] = Math.round(0.6 * e);
  const shown = ['ruler', 'ethogram', ...rows, 'probability', 'latents', 'error'].filter((name) => fixed[name] !== 0);
  const used = shown.reduce((sum, name) => sum + (fixed[name] || 0), 0) + GAP * (shown.length - 1) + 4;
  const states = store.run.block ? `states of ${store.run.block}` : 'states';
  const titles = { ruler: '', ethogram: states, probability: 'probability', latents: 'latents', error: 'error' };
  for (const { name } of others()) titles[`block ${name}`] = `of ${name}`;
  let top = 0;
  return shown.map((name) => {
    const place = { name, title: titles[name], top, height: fixed[name] || Math.max(40, height - used) };
    top += place.height + GAP;
    return place;
  });
}

export function draw(on, places, got) {
  const { c, width } = on, room = width - GUTTER - RIGHT;
  const x = (t) => GUTTER + (t - store.first) / (store.last - store.first) * room;
  c.font = FONT;
  for (const place of places) label(c, place);
  c.save();
  c.beginPath(); c.rect(GUTTER, 0, room, on.height); c.clip();
  const drawn = { ruler, ethogram, probability, latents, error };
  for (const row of others()) drawn[`block ${row.name}`] = (...given) => otherBlock(row, ...given);
  if (got) for (const place of places) drawn[place.name](c, place, got, x, room);
  future(c, places, x);
  c.restore();
  cursor(c, x(store.cursor), on.height);
}

function label(c, { name, title, top, height }) {
  c.fillStyle = colour.soft; c.textAlign = 'left'; c.textBaseline = 'middle';
  if (name !== 'latents') c.fillText(title, 14, top + height / 2);
  if (name === 'error') bounds(c, top, height);
  if (name !== 'latents') return;
  c.fillText(title, 14, top + 8);
  const lanes = store.about.lanes, lane = height / lanes.length;
  c.fillStyle = colour.faint; c.textAlign = 'right';
  if (lane >= 11) lanes.forEach((d, i) => c.fillText(`${d + 1}`, GUTTER - 8, top + (i + 0.5) * lane));
}

function bounds(c, top, height) {
  c.fillStyle = colour.faint; c.textAlign = 'right';
  c.font = FONT.replace('12px', '10px');
  c.fillText(store.about.error[1].toPrecision(2), GUTTER - 6, top + 5);
  c.fillText(store.about.error[0].toPrecision(2), GUTTER - 6, top + height - 4);
  c.font = FONT;
}

const alphaOf = (k) => (store.focus === null || rootOf(k).state === store.focus ? 1 : 0.16);

function ethogram(c, { top, height }, got, x) {
  const { start, bout } = got.arrays;
  if (!start) { strip(c, top, height, got, x); return; }
  c.textAlign = 'left'; c.textBaseline = 'middle';
  for (let i = 0; i < bout.data.length; i++) {
    const a = x(start.data[i]), b = x(i + 1 < bout.data.length ? start.data[i + 1] : got.last);
    if (b < GUTTER || a > c.canvas.width) continue;
    c.globalAlpha = alphaOf(bout.data[i]);
    c.fillStyle = colourOf(bout.data[i]);
    c.fillRect(a, top, Math.max(0.7, b - a - (b - a > 5 ? 1 : 0)), height);
    if (b - a > 20) written(c, shortOf(bout.data[i]), Math.max(a, GUTTER), b, top + height / 2, c.fillStyle);
  }
  c.globalAlpha = 1;
}

function written(c, text, a, b, y, ground) {
  const [r, g, l] = [1, 3, 5].map((i) => parseInt(ground.slice(i, i + 2), 16));
  let shown = text;
  for (let n = text.length - 1; n > 0 && c.measureText(shown).width > b - a - 12; n--) shown = `${text.slice(0, n)}…`;
  if (shown !== text && shown.length < 5) return;
  c.fillStyle = 0.3 * r + 0.59 * g + 0.11 * l > 150 ? '#1d2228' : '#fff';
  c.fillText(shown, a + 6, y + 0.5);
}

// Many bouts: the commonest state of each bin
export function strip(c, top, height, got, x) {
  const { edges, state } = got.arrays, n = state.data.length;
  for (let i = 0, j = 0; i < n; i = j) {
    while (j < n && state.data[j] === state.data[i]) j++;
    c.globalAlpha = alphaOf(state.data[i]);
    c.fillStyle = colourOf(state.data[i]);
    c.fillRect(x(edges.data[i]), top, x(edges.data[j]) - x(edges.data[i]) + 0.3, height);
  }
  c.globalAlpha = 1;
}

// The commonest state of each bin of a block that is not looked at
function otherBlock({ name, colours }, c, { top, height }, got, x) {
  const { edges } = got.arrays, state = got.arrays[`state_${name}`];
  if (!state) return;
  for (let i = 0, j = 0, n = state.data.length; i < n; i = j) {
    while (j < n && state.data[j] === state.data[i]) j++;
    c.fillStyle = colours[state.data[i]];
    c.fillRect(x(edges.data[i]), top, x(edges.data[j]) - x(edges.data[i]) + 0.3, height);
  }
}

function probability(c, { top, height }, got, x) {
  const { edges, probability: p } = got.arrays, [n, K] = p.shape;
  const level = new Float32Array(n);
  const order = [...new Set(store.run.states.map((s) => s.root))];
  for (const root of order) {
    const members = store.run.states.filter((s) => s.root === root).map((s) => s.state);
    c.globalAlpha = alphaOf(root);
    c.fillStyle = store.run.states[root].colour;
    c.beginPath();
    let some = false;
    for (let i = 0; i < n; i++) {
      let share = 0;
      for (const k of members) share += p.data[i * K + k];
      if (share < 2) continue;
      const y0 = top + height * (1 - level[i] / 255), h = height * share / 255, a = x(edges.data[i]);
      c.rect(a, y0 - h, x(edges.data[i + 1]) - a + 0.35, h + 0.35);
      level[i] += share;
      some = true;
    }
    if (some) c.fill();
  }
  c.globalAlpha = 1;
}

function latents(c, { top, height }, got, x) {
  const { edges, low, high, sd } = got.arrays, [n, L] = low.shape, lane = height / L;
  for (let l = 0; l < L; l++) {
    const range = store.about.high[l] - store.about.low[l];
    const y = (v) => top + (l + 0.92 - 0.84 * (v - store.about.low[l]) / range) * lane;
    c.strokeStyle = colour.line; c.lineWidth = 1;
    if (l) { c.beginPath(); c.moveTo(GUTTER, top + l * lane); c.lineTo(1e5, top + l * lane); c.stroke(); }
    c.save(); c.beginPath(); c.rect(GUTTER, top + l * lane, 1e5, lane); c.clip();
    const middle = (i) => x((edges.data[i] + edges.data[i + 1] - 1) / 2 + 0.5);
    c.beginPath();
    for (let i = 0; i < n; i++) c.lineTo(middle(i), y(high.data[i * L + l] + 2 * sd.data[i * L + l]));
    for (let i = n - 1; i >= 0; i--) c.lineTo(middle(i), y(low.data[i * L + l] - 2 * sd.data[i * L + l]));
    c.fillStyle = colour.spread; c.fill();
    c.beginPath();
    for (let i = 0; i < n; i++) {
      const a = high.data[i * L + l], b = low.data[i * L + l];
      c.lineTo(middle(i), y(a));
      if (a !== b) c.lineTo(middle(i), y(b));
    }
    c.strokeStyle = colour.ink; c.lineWidth = 1.15; c.lineJoin = 'round'; c.stroke();
    c.restore();
  }
}

function error(c, { top, height }, got, x) {
  const { edges, error: e } = got.arrays, [low, high] = store.about.error;
  const y = (v) => top + height * (1 - 0.97 * Math.max(0, Math.min(1, (v - low) / (high - low))));
  c.beginPath(); c.moveTo(x(edges.data[0]), top + height);
  for (let i = 0; i < e.data.length; i++) {
    const v = Number.isFinite(e.data[i]) ? e.data[i] : low;
    c.lineTo(x(edges.data[i]), y(v)); c.lineTo(x(edges.data[i + 1]), y(v));
  }
  c.lineTo(x(got.last), top + height); c.closePath();
  c.fillStyle = colour.error; c.fill();
}

function cursor(c, x, height) {
  if (x < GUTTER - 1 || x > c.canvas.width) return;
  c.fillStyle = colour.now;
  c.fillRect(x - 0.75, 8, 1.5, height);
  c.beginPath(); c.moveTo(x - 5, 2); c.lineTo(x + 5, 2); c.lineTo(x, 10); c.fill();
}
