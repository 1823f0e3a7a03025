// How the model thinks that it goes on from the cursor.

import { askArrays } from './wire.js';
import { store, on, emit, byId, attempt, frameNow, look, clock } from './store.js';
import { play, stop } from './player.js';
import { secondsAt } from './timeline.js';

function note(text) {
  const box = byId('card-forecast').querySelector('.note');
  box.textContent = text;
  box.hidden = !text;
}

function invitation() {
  if (!store.run.temporal) return `The model (${store.run.model}) has no dynamics in time, so it cannot forecast.`;
  if (store.source?.why) return 'A forecast needs the recording, which is not there.';
  return 'Press “Forecast from here” to let the model go on from the cursor.';
}

export function clear() {
  store.forecast = null;
  byId('future').hidden = true;
  byId('card-forecast').dataset.on = 'no';
  note(invitation());
  byId('predict').disabled = !store.run.temporal || Boolean(store.source?.why);
  emit('forecast');
}

const predict = attempt(async () => {
  const frame = frameNow(), { recording, block } = store, button = byId('predict');
  stop();
  button.disabled = true;
  document.body.dataset.busy = 'yes';
  note('Computing the forecast …');
  try {
    const found = await askArrays('forecast', { recording, frame });
    if (recording !== store.recording || block !== store.block) return;
    store.forecast = found;
    byId('future').hidden = false;
    byId('card-forecast').dataset.on = 'yes';
    byId('card-forecast').title = `${found.horizon} frames from ${clock(secondsAt(frame))}`;
    const end = found.first + found.horizon, span = store.last - store.first;
    if (end > store.last) look(end - 0.85 * span, end + 0.15 * span);
    note('');
    emit('forecast');
    document.body.dataset.forecast = found.first;
    play(end);
  } finally {
    if (!store.forecast) note(invitation());
    button.disabled = false;
    document.body.dataset.busy = 'no';
  }
});

export function startForecast() {
  byId('predict').addEventListener('click', predict);
  on('recording source block', clear);
}
