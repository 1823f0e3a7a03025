// Time: playing, stepping, and jumping from bout to bout.

import { ask } from './wire.js';
import {
  store, on, byId, seek, follow, frameNow, attempt, look, zoom, clock, titleOf, colourOf,
} from './store.js';
import { secondsAt } from './timeline.js';
import { frameOf } from './frames.js';

const state = { playing: false, until: null, before: 0 };

export function play(until = null) {
  if (!state.playing && until === null && frameNow() >= store.frames - 1) seek(0);
  state.until = until;
  if (state.playing) return;
  state.playing = true;
  state.before = performance.now();
  document.body.dataset.playing = 'yes';
  byId('play').setAttribute('aria-label', 'Pause');
  requestAnimationFrame(tick);
}

export function stop() {
  state.playing = false;
  state.until = null;
  document.body.dataset.playing = 'no';
  byId('play').setAttribute('aria-label', 'Play');
}

// The clock waits for pictures that are on their way, so that none is left out.
function tick(now) {
  if (!state.playing) return;
  const rate = (store.run.fps || 20) * Number(byId('speed').value);
  const passed = Math.min(0.25, (now - state.before) / 1000);
  state.before = now;
  if (store.source?.why || !store.source || frameOf('frames', frameNow())) {
    const end = Math.min(state.until ?? store.frames, store.frames) - 1;
    seek(Math.min(end + 0.5, store.cursor + passed * rate));
    follow();
    if (store.cursor >= end + 0.49) { seek(end); stop(); return; }
  }
  requestAnimationFrame(tick);
}

export function playBout({ first, last }) {
  stop();
  seek(first);
  if (first < store.first || last > store.last) {
    const span = Math.max(store.last - store.first, 1.4 * (last - first));
    look(first - (span - last + first) / 2, first - (span - last + first) / 2 + span);
  }
  play(last);
}

export function step(frames) { stop(); seek(frameNow() + frames); follow(0.95); }

export const jump = attempt(async (go, ofState) => {
  const asked = { recording: store.recording, frame: frameNow(), go };
  if (ofState !== undefined) asked.state = ofState;
  stop();
  const bout = await ask('bout', asked);
  if (!bout) return false;
  seek(bout.first);
  const span = store.last - store.first;
  if (bout.first < store.first || bout.last > store.last) look(bout.first - span / 3, bout.first + 2 * span / 3);
  return true;
});

const boutHere = () => ask('bout', { recording: store.recording, frame: frameNow(), go: 'here' });
const hereState = attempt(async () => (await boutHere()).state);

const KEYS = {
  ' ': () => (state.playing ? stop() : play()),
  ArrowLeft: (shift) => (shift ? jump('previous') : step(-1)),
  ArrowRight: (shift) => (shift ? jump('next') : step(1)),
  '+': () => zoom(1 / 1.6), '=': () => zoom(1 / 1.6), '-': () => zoom(1.6), '−': () => zoom(1.6),
  0: () => look(0, store.frames),
  Home: () => { stop(); seek(0); follow(); },
  End: () => { stop(); seek(store.frames - 1); follow(); },
  n: async () => jump('next', await hereState()),
  p: async () => jump('previous', await hereState()),
  v: () => enlarge(),
  f: () => byId('predict').click(),
  '?': () => byId('help').showModal(),
};

export function enlarge() { document.body.dataset.large = document.body.dataset.large === 'yes' ? 'no' : 'yes'; }

function pressed(event) {
  const typing = event.target.closest('input, select, dialog');
  const work = KEYS[event.key];
  if (typing || !work || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === ' ' && event.target.closest('button')) event.target.blur();
  event.preventDefault();
  work(event.shiftKey);
}

function showMoment() {
  if (!store.about) return;
  const t = frameNow();
  byId('clock').textContent = store.run.fps ? `${clock(secondsAt(t))} ` : '';
  const small = document.createElement('span');
  small.textContent = `frame ${t.toLocaleString('en')} of ${store.frames.toLocaleString('en')}`;
  byId('clock').append(small);
  document.body.dataset.frame = t;
}

let told = '';
const showState = attempt(async () => {
  if (!store.run.discrete || !store.about) return;
  const key = `${store.recording}/${frameNow()}`;
  if (told === key) return;
  told = key;
  const bout = await boutHere();
  if (told !== key || !bout) return;
  const [chip, name, more] = byId('now').children;
  chip.style.background = colourOf(bout.state);
  name.textContent = titleOf(bout.state);
  const length = bout.last - bout.first;
  more.textContent = store.run.fps ? `bout of ${(length / store.run.fps).toFixed(2)} s` : `bout of ${length} frames`;
});

export function startPlayer() {
  window.addEventListener('keydown', pressed);
  byId('play').addEventListener('click', () => (state.playing ? stop() : play()));
  byId('step-back').addEventListener('click', () => step(-1));
  byId('step-on').addEventListener('click', () => step(1));
  byId('bout-back').addEventListener('click', () => jump('previous'));
  byId('bout-on').addEventListener('click', () => jump('next'));
  byId('zoom-in').addEventListener('click', () => zoom(1 / 1.6));
  byId('zoom-out').addEventListener('click', () => zoom(1.6));
  byId('zoom-all').addEventListener('click', () => look(0, store.frames));
  byId('help-open').addEventListener('click', () => byId('help').showModal());
  byId('real').addEventListener('dblclick', enlarge);
  byId('enlarge').addEventListener('click', enlarge);
  let waiting = 0;
  on('cursor view', showMoment);
  on('cursor', () => { clearTimeout(waiting); waiting = setTimeout(showState, state.playing ? 0 : 15); });
  on('states', () => { told = ''; showState(); });
  on('stop', stop);
}
