// Colours of what is drawn on canvases, as the style sheet has them: light or dark, as the system asks.

import { emit } from './store.js';

const NAMES = ['ink', 'soft', 'faint', 'line', 'tick', 'empty', 'veil', 'frame', 'spread', 'error', 'now', 'real', 'model',
  'future', 'before', 'bone', 'ring', 'cross', 'cloud', 'middle'];
export const colour = {};

function read() {
  const style = getComputedStyle(document.documentElement);
  for (const name of NAMES) colour[name] = style.getPropertyValue(`--canvas-${name}`).trim();
}

export function startTheme() {
  read();
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { read(); emit('cursor'); emit('view'); emit('states'); });
}
