// Questions to the server. Addresses are relative: the token is part of the page's own.

import { store } from './store.js';

const TYPES = { Uint8: Uint8Array, Int16: Int16Array, Int32: Int32Array, Float32: Float32Array, Float64: Float64Array };

// Of several discrete blocks the one that is looked at goes along with every question.
const ofBlock = (asked) => (store.block === null ? asked : { block: store.block, ...asked });

function address(name, asked) {
  const words = new URLSearchParams(asked).toString();
  return `api/${name}${words ? `?${decodeURIComponent(words)}` : ''}`;
}

async function checked(response) {
  if (response.ok) return response;
  let told = `the server answered ${response.status}`;
  try { told = (await response.json()).error || told; } catch { /* no sentence came along */ }
  throw new Error(told);
}

// What the page waits for, in words
const WORDS = {
  run: 'Reading the run', recording: 'Reading the answers', window: 'Reading the answers', plane: 'Reading the answers',
  source: 'Finding the recording', frames: 'Reading the recording', decoded: 'Decoding frames', decode: 'Decoding',
  forecast: 'Computing the forecast: the first one has to be compiled', bout: 'Reading the answers',
};
const PATIENCE = 300; // ms before the page says that it waits
const asked = new Map(); // of what is under way: a number -> its words
let number = 0;

function say() {
  const box = document.getElementById('busy'), words = [...asked.values()].at(-1);
  document.body.dataset.asking = words ? 'yes' : 'no';
  box.textContent = words ? `${words} …` : '';
}

async function reached(name, promise) {
  const mine = number++, late = setTimeout(() => { asked.set(mine, WORDS[name] || 'Saving'); say(); }, PATIENCE);
  try { return await answered(promise); } finally {
    clearTimeout(late);
    if (asked.delete(mine)) say();
  }
}

async function answered(promise) {
  let response;
  try { response = await promise; } catch { throw new Error('the server does not answer; start svae view again'); }
  return checked(response);
}

export async function ask(name, asked = {}) {
  return (await reached(name, fetch(address(name, ofBlock(asked))))).json();
}

export async function tell(name, told) {
  const headers = { 'content-type': 'application/json' };
  return (await reached(name, fetch(address(name), { method: 'POST', headers, body: JSON.stringify(ofBlock(told)) }))).json();
}

// {first, last, ..., arrays: {name: {shape, data}}}
export async function askArrays(name, asked) {
  const buffer = await (await reached(name, fetch(address(name, ofBlock(asked))))).arrayBuffer();
  const size = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  for (const [key, { kind, shape, at }] of Object.entries(head.arrays)) {
    const count = shape.reduce((a, b) => a * b, 1);
    head.arrays[key] = { shape, data: new TYPES[kind](buffer, 4 + size + at, count) };
  }
  return head;
}

// A function of which one call is under way at a time; of those that come meanwhile only the last is made.
export function latest(work) {
  let busy = false, next = null;
  return async function call(...words) {
    if (busy) { next = words; return; }
    busy = true;
    try { await work(...words); } finally {
      busy = false;
      if (next) { const again = next; next = null; call(...again); }
    }
  };
}
