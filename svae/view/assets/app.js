// The page comes to life: the run, then its first recording, then its pictures.

import { ask } from './wire.js';
import { store, on, emit, byId, seek, look, attempt } from './store.js';
import { startTheme } from './theme.js';
import { startPictures } from './pictures.js';
import { startTimeline, forget } from './timeline.js';
import { startPlayer, stop } from './player.js';
import { startStates, show as showStates } from './states.js';
import { startPlayground } from './playground.js';
import { startForecast } from './forecast.js';

const SEEN = 900; // frames that are seen at first, at most

const choose = attempt(async (number) => {
  stop();
  const about = await ask('recording', { recording: number });
  Object.assign(store, { recording: number, about, frames: store.run.recordings[number].frames, focus: null });
  document.body.dataset.recording = number;
  look(0, Math.min(SEEN, store.frames));
  forget();
  emit('recording');
  seek(0);
});

function introduce() {
  const { run } = store, frames = run.recordings.reduce((sum, r) => sum + r.frames, 0);
  document.title = `${run.name} · svae`;
  byId('run-name').textContent = run.name;
  const parts = [run.model, `${run.latents} latent dimensions`];
  if (run.blocks.length) parts.splice(1, 0, run.blocks.map((b) => `${b.colours.length} states of ${b.name}`).join(', '));
  else if (run.discrete) parts.splice(1, 0, `${run.states.length} states`);
  if (run.fps) parts.push(`${Number(run.fps.toFixed(2))} fps`);
  parts.push(`${frames.toLocaleString('en')} frames`);
  if (run.recordings.length > 1) parts.push(`${run.recordings.length} recordings`);
  byId('about').textContent = parts.join('  ·  ');
  byId('recording').replaceChildren(...run.recordings.map((r, i) => new Option(r.name, i)));
  byId('recording').addEventListener('change', ({ target }) => { choose(Number(target.value)); target.blur(); });
}

const loadSource = attempt(async () => {
  store.source = await ask('source');
  byId('space').hidden = !store.source.arena || Boolean(store.source.why);
  emit('source');
  document.body.dataset.source = store.source.why ? 'absent' : 'there';
});

const start = attempt(async () => {
  startTheme();
  store.run = await ask('run');
  introduce();
  for (const begin of [startPictures, startTimeline, startPlayer, startStates, startPlayground, startForecast]) begin();
  showStates();
  await choose(0);
  document.body.dataset.ready = 'yes';
  await loadSource();
});

on('recording', () => { byId('recording').value = store.recording; });
start();
