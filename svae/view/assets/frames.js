// Frames of the recording and their reconstructions, asked for in chunks and kept for a while.

import { askArrays } from './wire.js';
import { store, emit, clamp, toast } from './store.js';

const CHUNK = 32, KEPT = 60;
const chunks = new Map(); // key -> arrays, null where they cannot be had; the order is that of use
const busy = {}, next = {}; // by what is asked for: whether a question is under way, and the last one that waits

function keyOf(what, number) { return `${what}/${store.recording}/${what === 'frames' ? store.space : ''}/${number}`; }

// One question at a time; of those that come meanwhile only the last is asked, so that nobody waits for what they left.
async function load(what, number) {
  if (busy[what]) { next[what] = number; return; }
  busy[what] = true;
  const key = keyOf(what, number), { recording, space } = store;
  const first = number * CHUNK, last = Math.min(first + CHUNK, store.frames);
  try {
    const found = await askArrays(what, { recording, first, last, ...(what === 'frames' ? { space } : {}) });
    chunks.set(key, found.arrays);
    while (chunks.size > KEPT) chunks.delete(chunks.keys().next().value);
  } catch (error) {
    chunks.set(key, null);
    toast(error.message);
  }
  busy[what] = false;
  const waiting = next[what];
  next[what] = undefined;
  emit('loaded'); // who still needs another chunk asks for it now
  if (waiting !== undefined && waiting * CHUNK < store.frames && !chunks.has(keyOf(what, waiting))) load(what, waiting);
}

function chunk(what, number) {
  const key = keyOf(what, number);
  if (!chunks.has(key)) { load(what, number); return null; }
  const found = chunks.get(key);
  chunks.delete(key);
  chunks.set(key, found);
  return found;
}

// {shape, data} of one frame, or null while it is on its way
export function frameOf(what, t, name = 'frames') {
  const found = chunk(what, Math.floor(t / CHUNK));
  return found && slice(found[name], t % CHUNK);
}

export function prefetch(what, t) {
  const number = Math.floor(clamp(t + CHUNK, 0, store.frames - 1) / CHUNK);
  if (!busy[what] && !chunks.has(keyOf(what, number))) load(what, number);
}

export function slice({ shape, data }, i) {
  const event = shape.slice(1), size = event.reduce((a, b) => a * b, 1);
  return { shape: event, data: data.subarray(i * size, (i + 1) * size) };
}
