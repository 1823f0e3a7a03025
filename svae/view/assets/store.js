// What the parts of the page share: the run, the moment, the stretch that is seen; and who wants to know of changes.

export const store = {
  run: null, // what api/run said
  source: null, // how frames are drawn, and why they are not, if they are not
  block: null, // of several discrete blocks the one that is looked at
  recording: 0,
  frames: 0, // of the recording
  about: null, // what api/recording said
  cursor: 0, // frame, may lie between two while it plays
  first: 0, last: 1, // the stretch that is seen, in frames
  focus: null, // the state whose bouts stand out
  forecast: null,
  space: 'body',
};

const listeners = {};

export function on(names, listener) {
  for (const name of names.split(' ')) (listeners[name] ||= []).push(listener);
}

export function emit(name) {
  for (const listener of listeners[name] || []) listener();
}

export const byId = (id) => document.getElementById(id);
export const clamp = (x, low, high) => Math.max(low, Math.min(high, x));
export const frameNow = () => clamp(Math.floor(store.cursor + 1e-6), 0, store.frames - 1);

export function seek(frame) {
  store.cursor = clamp(frame, 0, store.frames - 1);
  emit('cursor');
}

const SHORTEST = 12; // frames that can be seen at least

export function look(first, last) {
  const span = clamp(last - first, Math.min(SHORTEST, store.frames), store.frames);
  store.first = clamp(first, 0, store.frames - span);
  store.last = store.first + span;
  emit('view');
}

export function zoom(factor, at = store.cursor) {
  const span = clamp((store.last - store.first) * factor, Math.min(SHORTEST, store.frames), store.frames);
  const share = clamp((at - store.first) / (store.last - store.first), 0, 1);
  look(at - share * span, at - share * span + span);
}

// The cursor stays in sight.
export function follow(share = 0.8) {
  const span = store.last - store.first;
  const at = (part) => look(store.cursor - part * span, store.cursor + (1 - part) * span);
  if (store.cursor < store.first) at(0.1);
  else if (store.cursor > store.first + share * span) at(share);
}

// Merged states are one: the row of the state that k counts as.
// The other discrete blocks, where there are several: {name, colours, titles} by state
export const others = () => (store.run.blocks || []).filter((b) => b.name !== store.run.block);

export const rootOf = (k) => store.run.states[store.run.states[k].root];
export const colourOf = (k) => rootOf(k).colour;
export const titleOf = (k) => rootOf(k).name || `state ${rootOf(k).state}`;

export const shortOf = (k) => rootOf(k).name || `${rootOf(k).state}`;

export function clock(seconds) {
  if (!store.run.fps) return `${Math.round(seconds)}`;
  const sign = seconds < 0 ? '-' : '', s = Math.abs(seconds);
  const minutes = Math.floor(s / 60), hours = Math.floor(minutes / 60);
  const rest = (s - 60 * minutes).toFixed(2).padStart(5, '0');
  return sign + (hours ? `${hours}:${String(minutes % 60).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`);
}

let fading = 0;
export function toast(text) {
  const box = byId('toast');
  box.textContent = text;
  box.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => { box.hidden = true; }, 6000);
}

export function attempt(work) {
  return async (...words) => {
    try { return await work(...words); } catch (error) { toast(error.message); return undefined; }
  };
}
