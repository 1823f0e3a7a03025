// The recording, its reconstruction and its forecast, side by side at one moment.

import { store, on, byId, frameNow } from './store.js';
import { frameOf, prefetch, slice } from './frames.js';
import { paint, paintTraces, fresh, nameAt } from './paint.js';
import { colour } from './theme.js';


function note(canvas, text) {
  const box = canvas.parentElement.querySelector('.note');
  box.textContent = text;
  box.hidden = !text;
}

function valueOf(what) {
  return (t, row) => {
    if (t < 0 || t >= store.frames) return null;
    const frame = frameOf(what, t);
    return frame ? frame.data[row] : null;
  };
}

function futureValue(name) {
  return (t, row) => {
    const f = store.forecast;
    const i = f ? t - f.first : -1;
    return f && i >= 0 && i < f.horizon ? f.arrays[name].data[i * f.arrays[name].shape[1] + row] : null;
  };
}

const futureBand = (t, row) => {
  const low = futureValue('least')(t, row);
  return low === null ? null : [low, futureValue('most')(t, row)];
};

export const around = () => Math.max(8, Math.round(1.5 * (store.run.fps || 20)));

function drawTraces(look) {
  const t = store.cursor, real = { at: valueOf('frames'), colour: colour.real, width: 1.4 };
  const shown = store.source.why ? [] : [real];
  paintTraces(byId('real'), look, t, around(), shown);
  const faint = shown.map((line) => ({ ...line, colour: colour.before }));
  paintTraces(byId('decoded'), look, t, around(), [...faint, { at: valueOf('decoded'), colour: colour.model, width: 1.5 }]);
  if (!store.forecast) { fresh(byId('predicted')); return; }
  const future = { at: futureValue(store.future || 'frames'), band: futureBand, colour: colour.future, width: 1.5 };
  paintTraces(byId('predicted'), look, t, around(), [...faint, future]);
}

function drawForecast(look) {
  const f = store.forecast, i = f ? frameNow() - f.first : -1;
  if (!f) return;
  const inside = i >= 0 && i < f.horizon;
  const seen = inside || look.kind === 'traces';
  note(byId('predicted'), seen ? '' : 'The cursor is outside the forecast, which is shaded below.');
  if (look.kind === 'traces') return;
  if (inside) paint(byId('predicted'), look, slice(f.arrays[store.future || 'frames'], i), colour.future);
  else fresh(byId('predicted'));
}

export function drawPictures() {
  if (!store.source || !store.about) return;
  const { look, arena, why } = store.source, t = frameNow();
  note(byId('real'), why ? `Without its recording: ${why}.` : '');
  if (look.kind === 'traces') drawTraces(look);
  else {
    const real = store.space === 'arena' && arena ? arena : look;
    if (!why) paintIfThere('real', real, frameOf('frames', t), colour.real);
    paintIfThere('decoded', look, frameOf('decoded', t), colour.model);
  }
  drawForecast(look);
  if (!why) prefetch('frames', t);
  prefetch('decoded', t);
}

// While a frame is on its way the one before it stays.
function paintIfThere(id, look, frame, ink) {
  byId(id).parentElement.dataset.waiting = frame ? 'no' : 'yes';
  if (frame) { paint(byId(id), look, frame, ink); byId(id).dataset.frame = frameNow(); }
}

// The name of the point under the pointer
function hovered({ target, offsetX, offsetY, clientX, clientY }) {
  const box = byId('point'), name = nameAt(target, offsetX, offsetY);
  box.hidden = !name;
  if (!name) return;
  box.textContent = name;
  box.style.left = `${clientX}px`;
  box.style.top = `${clientY - 14}px`;
}

function switching(id, choose) {
  byId(id).addEventListener('click', ({ target }) => {
    if (!target.dataset.value) return;
    for (const button of byId(id).children) button.setAttribute('aria-pressed', String(button === target));
    choose(target.dataset.value);
    drawPictures();
  });
}

export function startPictures() {
  for (const id of ['real', 'decoded', 'predicted', 'imagined']) {
    byId(id).addEventListener('pointermove', hovered);
    byId(id).addEventListener('pointerleave', () => { byId('point').hidden = true; });
  }
  switching('space', (value) => { store.space = value; });
  switching('future', (value) => { store.future = value; });
  on('cursor loaded source forecast recording', drawPictures);
  new ResizeObserver(drawPictures).observe(byId('stage'));
}
