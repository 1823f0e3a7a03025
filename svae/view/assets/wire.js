// Questions to the server. Addresses are relative: the token is part of the page's own.

const TYPES = { Uint8: Uint8Array, Int16: Int16Array, Int32: Int32Array, Float32: Float32Array, Float64: Float64Array };

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

async function reached(promise) {
  let response;
  try { response = await promise; } catch { throw new Error('the server has gone; start svae view again'); }
  return checked(response);
}

export async function ask(name, asked = {}) {
  return (await reached(fetch(address(name, asked)))).json();
}

export async function tell(name, told) {
  const headers = { 'content-type': 'application/json' };
  return (await reached(fetch(address(name), { method: 'POST', headers, body: JSON.stringify(told) }))).json();
}

// {first, last, ..., arrays: {name: {shape, data}}}
export async function askArrays(name, asked) {
  const buffer = await (await reached(fetch(address(name, asked)))).arrayBuffer();
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
