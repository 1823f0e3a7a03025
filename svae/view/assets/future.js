// A forecast on the tracks.

import { store, colourOf, rootOf } from './store.js';
import { colour } from './theme.js';

// The forecast: shaded, its mean and interval on the latents, its commonest state under the ethogram
export function future(c, places, x) {
  const f = store.forecast;
  if (!f) return;
  const a = x(f.first), b = x(f.first + f.horizon), bottom = places.at(-1).top + places.at(-1).height;
  c.fillStyle = 'rgba(226, 128, 54, .10)'; c.fillRect(a, 22, b - a, bottom - 22);
  c.fillStyle = colour.future; c.fillRect(a - 0.75, 22, 1.5, bottom - 22);
  for (const { name, top, height } of places) {
    if (name === 'latents') predictedLatents(c, f, top, height, x);
    if (name === 'ethogram') predictedStates(c, f, top + height + 1, x);
  }
}

function predictedStates(c, f, top, x) {
  const { data, shape: [H, K] } = f.arrays.states;
  for (let h = 0; h < H; h++) {
    const shares = {};
    for (let k = 0; k < K; k++) shares[rootOf(k).state] = (shares[rootOf(k).state] || 0) + data[h * K + k];
    const best = Object.keys(shares).reduce((p, q) => (shares[p] >= shares[q] ? p : q));
    c.globalAlpha = 0.25 + 0.75 * shares[best] / 255;
    c.fillStyle = colourOf(Number(best));
    c.fillRect(x(f.first + h), top, x(1) - x(0) + 0.4, 6);
  }
  c.globalAlpha = 1;
}

function predictedLatents(c, f, top, height, x) {
  const { mean, low, high } = f.arrays, [H, L] = mean.shape, lane = height / L;
  for (let l = 0; l < L; l++) {
    const range = store.about.high[l] - store.about.low[l];
    const y = (v) => top + (l + 0.92 - 0.84 * (v - store.about.low[l]) / range) * lane;
    const at = (h) => x(f.first + h + 0.5);
    c.save(); c.beginPath(); c.rect(0, top + l * lane, 1e5, lane); c.clip();
    c.beginPath();
    for (let h = 0; h < H; h++) c.lineTo(at(h), y(high.data[h * L + l]));
    for (let h = H - 1; h >= 0; h--) c.lineTo(at(h), y(low.data[h * L + l]));
    c.fillStyle = 'rgba(226, 128, 54, .26)'; c.fill();
    c.beginPath();
    for (let h = 0; h < H; h++) c.lineTo(at(h), y(mean.data[h * L + l]));
    c.strokeStyle = colour.future; c.lineWidth = 1.5; c.stroke();
    c.restore();
  }
}
