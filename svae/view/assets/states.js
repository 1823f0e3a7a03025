// The list of states: what they are called, how much there is of each, and which count as one.

import { ask, tell } from './wire.js';
import { store, on, emit, byId, attempt, titleOf, toast } from './store.js';
import { jump } from './player.js';

const chosen = new Set(); // for merging
const TRIANGLE = 'M5 3v14l12-7z', PENCIL = 'M3 17v-3.6L13.2 3.2a1.6 1.6 0 0 1 2.3 0l1.3 1.3a1.6 1.6 0 0 1 0 2.3L6.6 17z';

function make(tag, kind, text) {
  const found = document.createElement(tag);
  if (kind) found.className = kind;
  if (text !== undefined) found.textContent = text;
  return found;
}

function icon(kind, path) {
  const found = make('button', kind), space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg'), line = document.createElementNS(space, 'path');
  svg.setAttribute('viewBox', '0 0 20 20');
  line.setAttribute('d', path);
  svg.append(line);
  found.append(svg);
  return found;
}

function chip(colour) {
  const found = make('span', 'chip');
  found.style.background = colour;
  return found;
}

const change = attempt(async (name, told) => {
  const answer = await tell(name, told);
  store.run.states = answer.states;
  chosen.clear();
  emit('states');
});

const long = (median) => (store.run.fps ? `${median.toFixed(median < 10 ? 2 : 1)} s` : `${median} frames`);

function row(state) {
  const item = make('li', 'state');
  item.dataset.state = state.state;
  item.dataset.focus = store.focus === state.state ? 'yes' : 'no';
  const name = make('button', state.name ? 'name' : 'name unnamed', titleOf(state.state));
  name.title = `${titleOf(state.state)} (state ${state.state}); double-click to change the name`;
  name.addEventListener('dblclick', (event) => { event.stopPropagation(); edit(item, name, state); });
  const bar = make('span', 'bar'), part = make('i');
  part.style.width = `${100 * Math.min(1, state.usage / most())}%`;
  part.style.background = state.colour;
  bar.append(part);
  const more = make('span', 'more', `${state.bouts} × ${long(state.median)}`);
  more.title = `${state.bouts} bouts, median ${long(state.median)}`;
  const seen = observed(state);
  more.prepend(bar);
  const share = make('span', 'share', `${(100 * state.usage).toFixed(1)} %`);
  item.append(chip(state.colour), name, share, tools(item, name, state), more);
  if (seen) item.append(make('span', 'seen', seen));
  if (state.warning) {
    const alert = make('details', 'alert'), head = make('summary', '', 'May be a fault of the tracker');
    alert.append(head, make('p', '', state.warning));
    item.append(alert);
  }
  if (state.members.length) item.append(members(state));
  item.addEventListener('click', ({ target }) => { if (!target.closest('input, .tools, .member, .alert')) focus(state.state); });
  return item;
}

const most = () => Math.max(1e-9, ...store.run.states.map((s) => s.usage));

// What was missing of its frames, how sure the tracker was, and how well other starts of the fit find the state
function observed(state) {
  const parts = [];
  if (state.missing !== null && (state.missing >= 0.005 || state.confidence !== null)) {
    parts.push(`${(100 * state.missing).toFixed(0)} % incomplete`);
  }
  if (state.confidence !== null) parts.push(`confidence ${state.confidence.toFixed(2)}`);
  if (state.again !== null) parts.push(`found again ${state.again.toFixed(2)}`);
  return parts.join(' · ');
}

function tools(item, name, state) {
  const box = make('span', 'tools'), pick = make('input'), next = icon('next', TRIANGLE), pencil = icon('rename', PENCIL);
  pick.type = 'checkbox';
  pick.checked = chosen.has(state.state);
  pick.title = 'Choose for merging';
  pick.setAttribute('aria-label', `Choose ${titleOf(state.state)} for merging`);
  pick.addEventListener('change', () => {
    if (pick.checked) chosen.add(state.state); else chosen.delete(state.state);
    showMerging();
  });
  next.title = 'Next bout of this state';
  next.setAttribute('aria-label', `Next bout of ${titleOf(state.state)}`);
  next.addEventListener('click', async () => {
    const found = await jump('next', state.state);
    if (found === false) toast(`no later bout of ${titleOf(state.state)} in this recording`);
  });
  pencil.title = 'Change the name';
  pencil.setAttribute('aria-label', `Change the name of ${titleOf(state.state)}`);
  pencil.addEventListener('click', () => edit(item, name, state));
  const top = make('span');
  top.append(pick);
  const bottom = make('span');
  bottom.append(pencil, next);
  box.append(top, bottom);
  return box;
}

function members(state) {
  const box = make('div', 'members');
  for (const k of state.members) {
    const one = store.run.states[k], tag = make('span', 'member'), away = make('button', '', '×');
    away.title = 'Un-merge';
    away.setAttribute('aria-label', `Un-merge ${one.name || `state ${k}`}`);
    away.addEventListener('click', () => change('part', { state: k }));
    tag.append(chip(one.colour), make('span', '', one.name || `state ${k}`), away);
    box.append(tag);
  }
  return box;
}

function edit(item, name, state) {
  const input = make('input', 'edit');
  input.value = state.name;
  input.placeholder = `state ${state.state}`;
  input.maxLength = 80;
  input.setAttribute('aria-label', `Name of state ${state.state}`);
  name.replaceWith(input);
  input.focus();
  input.select();
  let done = false;
  const finish = (keep) => {
    if (done) return;
    done = true;
    if (keep && input.value.trim() !== state.name) change('name', { state: state.state, name: input.value });
    else show();
  };
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') finish(true);
    if (event.key === 'Escape') finish(false);
  });
  input.addEventListener('blur', () => finish(true));
}

function focus(state) {
  store.focus = store.focus === state ? null : state;
  for (const { dataset } of document.querySelectorAll('.state')) {
    dataset.focus = Number(dataset.state) === store.focus ? 'yes' : 'no';
  }
  emit('focus');
}

const byUsage = (states) => [...states].sort((a, b) => b.usage - a.usage || a.state - b.state);

function showMerging() {
  const picked = byUsage(store.run.states.filter((s) => chosen.has(s.state)));
  byId('merging').hidden = picked.length === 0;
  byId('merge').disabled = picked.length < 2;
  const words = () => `Merge ${picked.length} into ${titleOf(picked[0].state)}`;
  byId('merge').textContent = picked.length < 2 ? 'Choose another to merge' : words();
}

function merge() {
  const picked = byUsage(store.run.states.filter((s) => chosen.has(s.state)));
  change('join', { states: picked.map((s) => s.state), into: picked[0].state });
}

export function show() {
  const roots = byUsage(store.run.states.filter((s) => s.root === s.state));
  const used = roots.filter((s) => s.usage > 0 || s.members.length);
  if (store.focus !== null && store.run.states[store.focus].root !== store.focus) store.focus = null;
  if (!store.run.discrete) {
    byId('states').replaceChildren(make('li', 'none', `The model (${store.run.model}) has no discrete states.`));
    return;
  }
  byId('states-about').textContent = `${used.length} in use`;
  byId('states').replaceChildren(...used.map(row));
  const unused = roots.filter((s) => !used.includes(s));
  byId('unused').hidden = unused.length === 0;
  byId('unused').querySelector('summary').textContent = `${unused.length} unused`;
  byId('unused').querySelector('ol').replaceChildren(...unused.map(row));
  showMerging();
}

// Another discrete block: its states, bouts and probabilities take the place of those that are seen.
const turnTo = attempt(async (name) => {
  const run = await ask('run', { block: name }); // nothing changes before it is there: what is drawn fits together
  Object.assign(store, { block: name, run, focus: null });
  chosen.clear();
  showBlocks();
  emit('states');
  emit('block');
});

function showBlocks() {
  const box = byId('blocks'), blocks = store.run.blocks || [];
  box.hidden = blocks.length < 2;
  box.replaceChildren(...blocks.map(({ name }) => {
    const button = make('button', '', name);
    button.setAttribute('aria-pressed', String(name === store.run.block));
    button.title = `States of ${name}`;
    button.addEventListener('click', () => turnTo(name));
    return button;
  }));
  document.body.dataset.block = store.run.block || '';
}

export function startStates() {
  showBlocks();
  byId('merge').addEventListener('click', merge);
  byId('merge-cancel').addEventListener('click', () => { chosen.clear(); show(); });
  on('states', show);
}
