// Time over the frames: an uneven clock comes with the bins and is read between them.

import { store, clock } from './store.js';
import { colour } from './theme.js';

const SECONDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30];
const STEPS = [...SECONDS, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400]; // between two labels

// Times at round steps; the clock of the frames comes with the bins.
export function ruler(c, { top, height }, got, x, room) {
  const span = timeAt(got, store.last) - timeAt(got, store.first), ticks = Math.max(2, Math.floor(room / 110));
  if (!(span > 0)) return;
  const even = store.run.fps ? STEPS.find((s) => s >= span / ticks) || 86400 : tens(span / ticks);
  c.fillStyle = colour.soft; c.strokeStyle = colour.tick; c.lineWidth = 1; c.textAlign = 'left'; c.textBaseline = 'middle';
  for (let s = Math.ceil(timeAt(got, store.first) / even) * even; s <= timeAt(got, store.last); s += even) {
    const place = Math.round(x(frameAt(got, s))) + 0.5;
    c.beginPath(); c.moveTo(place, top + 5); c.lineTo(place, top + height); c.stroke();
    c.fillText(store.run.fps ? short(s, even) : s.toLocaleString('en'), place + 5, top + height / 2 + 1);
  }
}

function tens(step) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, step)));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= step);
}

function short(seconds, step) {
  const text = clock(seconds);
  if (step >= 1) return text.slice(0, -3);
  return step >= 0.1 ? text.slice(0, -1) : text;
}

export function timeAt(got, frame) {
  const { edges, time } = got.arrays, n = edges.data.length - 1;
  const place = Math.max(0, Math.min(n, (frame - edges.data[0]) / (edges.data[n] - edges.data[0]) * n));
  const i = Math.min(n - 1, Math.floor(place)), a = edges.data[i], b = edges.data[i + 1];
  return time.data[i] + (time.data[i + 1] - time.data[i]) * Math.max(0, Math.min(1, (frame - a) / (b - a || 1)));
}

function frameAt(got, seconds) {
  const { edges, time } = got.arrays;
  let low = 0, high = time.data.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (time.data[middle] <= seconds) low = middle; else high = middle;
  }
  const share = (seconds - time.data[low]) / (time.data[high] - time.data[low] || 1);
  return edges.data[low] + share * (edges.data[high] - edges.data[low]);
}
