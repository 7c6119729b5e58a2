'use strict';
// Blocks of JSON are parsed when they are first looked at: one board at a time.
const $ = id => document.getElementById(id);
const parsed = {};
const block = id => parsed[id] ??= JSON.parse($(id).textContent);
const shared = block('shared');

const whole = new Intl.NumberFormat('en-US', {maximumFractionDigits: 0});
const three = new Intl.NumberFormat('en-US', {maximumSignificantDigits: 3});
const figure = value => (value >= 100 ? whole : three).format(value);  // as plas run writes times and memory
const general = value => (value >= 1e-4 && value < 1e6 ? String(value) : value.toExponential())
  .replace(/e([+-])(\d)$/, (_, sign, digit) => `e${sign}0${digit}`);  // as Python's format g
const element = (tag, text = '', attributes = {}) => {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};

// Without a time of the user's own (0) the slider stands in the middle of what the board's designs take.
const state = {board: document.body.dataset.first, format: 'q4_k_m', workload: 0, time: 0, memory: Infinity}, wishes = {format: 'q4_k_m', time: 0, memory: Infinity};
let rows, models, here;  // of the case: designs in the order in which they are preferred, published models, the newest first

// Times at the quantile count where they are later than the predicted ones.
const withSafe = (row, sparse) => {
  const factors = here.safe?.[sparse];
  const late = factors ? factors[0] * row.p + factors[1] * (row.t - row.p) : undefined;
  return {...row, sparse, late, safe: Math.max(row.t, late)};
};
const columns = kind => {
  const {id, p, t, m} = here[kind], prefix = kind === 'models' ? 'm' : `${here.space}.`, memory = shared.memory[`${state.format} ${state.workload}`];
  return id.map((key, at) => ({id: key, p: p[at], t: t[at], m: m ? m[at] : memory[prefix + key]}));
};

function open() {
  here = block(state.board).formats[state.format][state.workload];
  rows = columns('designs').map(row => {
    const [size, rest, loss, sparse] = shared.designs[`${here.space}.${row.id}`];
    return {...withSafe(row, sparse), size, rest, loss};
  });
  models = columns('models').map(row => {
    const [name, tokens, licence, loss, sparse] = shared.models[row.id];
    return {...withSafe(row, sparse), name, tokens, licence, loss};
  });
}

// What plas run picks: the first design that keeps the limits, the time in 4 of 5 cases where one does.
function pick(time, memory) {
  const within = name => rows.find(row => row[name] <= time && row.m <= memory);
  const plain = within('t'), safe = here.safe && time < Infinity ? within('safe') : undefined;
  return {plain, safe, own: safe ?? plain};
}

function best(time, memory, name) {
  const fits = models.filter(row => row[name] <= time && row.m <= memory);
  const least = Math.min(...fits.map(row => row.loss));
  return {fits, model: fits.find(row => row.loss <= least + shared.good)};
}

const stops = values => {
  const low = Math.min(...values), high = Math.max(...values);
  return shared.stops.filter((stop, at) => stop >= low && !(shared.stops[at - 1] >= high));
};
let lossTyped = false;
const limits = {};  // of both sliders: what they stop at, no limit last
const units = {time: 'ms', memory: 'GB'};

function sliders() {
  limits.time = [...stops(rows.flatMap(row => here.safe ? [row.t, row.safe] : [row.t])), Infinity];
  limits.memory = [...stops(rows.map(row => row.m)).filter(stop => stop < here.limit), Infinity];
  for (const name of ['time', 'memory']) {
    const slider = $(name), wanted = wishes[name] || limits.time[Math.floor(limits.time.length / 2)];
    slider.max = limits[name].length - 1;
    slider.value = limits[name].findLastIndex(stop => stop <= wanted);
    if (slider.value < 0) slider.value = 0;
    state[name] = limits[name][slider.value];
  }
}

const limitText = name => name === 'memory' && state.memory === Infinity ? `${figure(here.limit)} GB, all that is free on the board`
  : state[name] === Infinity ? 'no limit'
  : `${figure(state[name])} ${units[name]}${wishes[name] && wishes[name] !== state[name] ? `, as your ${figure(wishes[name])} ${units[name]} lies beyond what changes anything here` : ''}`;

function command() {
  const [, wanted, written] = shared.workloads[state.workload];
  const words = ['plas run --algo exact', `--device ${state.board}`, `--precision ${state.format}`];
  if (wanted !== 1024 || written !== 16) words.push(`--input-tokens ${wanted} --output-tokens ${written}`);
  if (state.time < Infinity) words.push(`--budget total_ms=${state.time}`);
  if (state.memory < Infinity) words.push(`--budget resident_gb=${state.memory}`);
  return words.join(' ');
}

function sentences({own, plain, safe}) {
  if (!own) return ['Nothing fits: no design is within these limits.'];
  const [, , written] = shared.workloads[state.workload], lines = [];
  const {model} = best(state.time, state.memory, safe ? 'safe' : 't');
  const [take, level] = model ? shared.levels[`${here.space}.${own.id}-${model.id}`] : [0, ''];
  const taken = model && `${model.name} (${model.tokens}, ${model.licence}): loss ${model.loss.toFixed(2)}, ${three.format(model.t)} ms, ${model.m.toFixed(2)} GB.`;
  if (take) lines.push(`Take ${taken}`);
  lines.push(`${take ? 'Or train' : 'Best design'}: ${own.size}`, own.rest, `Predicted loss ${own.loss.toFixed(2)} nats${state.format === 'fp16' ? '' : '; what rounding costs is not in it'}`);
  if (model && !take) lines.push(`Train it: the best published model that fits is ${taken}`);
  if (model) lines.push(level);
  const of = limit => limit === Infinity ? '' : ` of ${figure(limit)}`;
  lines.push(`Takes total time ${figure(own.t)}${of(state.time)} ms, memory ${figure(own.m)}${of(Math.min(state.memory, here.limit))} GB`);
  lines.push(`First token after ${figure(own.p)} ms, then ${figure(1000 * written / (own.t - own.p))} tokens per second.`);
  if (here.ranges.length) {
    const [a, b, c, d] = here.ranges[own.sparse], decode = own.t - own.p;
    lines.push(`${here.share} % of ${here.typical ? 'devices of this class' : 'measured models'}${here.share < 80 ? ' (of so few no more is claimed)' : ''} take ${figure(a * own.p + c * decode)} to ${figure(b * own.p + d * decode)} ms.`);
  }
  if (state.time < Infinity && here.safe) lines.push(margin(plain, safe));
  return lines;
}

function margin(plain, safe) {
  const limit = `total_ms <= ${general(state.time)}`, nats = safe ? safe.loss - plain.loss : 0;
  if (!safe) return `No design keeps ${limit} in 4 of 5 cases; this one is within it as predicted.`;
  return `Keeps ${limit} in 4 of 5 cases, which costs ${nats > shared.nothing ? `${general(Number(nats.toPrecision(2)))} nats` : 'no loss'}.`;
}

function table(heads, body, name, words = 1) {
  const made = element('table', '', {'aria-label': name}), head = made.createTHead().insertRow();
  heads.forEach((text, at) => head.append(element('th', text, {scope: 'col', class: at < words ? 'words' : ''})));
  const inside = made.createTBody();
  for (const cells of body) {
    const line = inside.insertRow();
    cells.forEach((text, at) => line.append(element('td', text, {class: at < words ? 'words' : ''})));
  }
  return made;
}

const later = () => here.safe ? 'safe' : 't';  // the time that limits are kept at
const timeName = () => here.safe ? 'time kept in 4 of 5 cases (ms)' : 'time (ms)';

// The frontier of loss over time within the memory: each design that is better than all faster ones.
function frontier() {
  const name = later(), kept = [];
  for (const row of rows.filter(row => row.m <= state.memory).sort((a, b) => a[name] - b[name] || a.loss - b.loss))
    if (!kept.length || row.loss < kept.at(-1).loss) kept.push({...row, x: row[name]});
  return kept;
}

const WIDTH = 720, HEIGHT = 350, LEFT = 52, BOTTOM = 50, SPACE = 'http://www.w3.org/2000/svg';

function curve(points, own) {
  const near = models.map(row => ({...row, x: row[later()]})).filter(row => row.m <= state.memory && row.x >= points[0].x / 2 && row.x <= points.at(-1).x * 2);
  const xs = [...points, ...near].map(row => row.x).concat(state.time < Infinity ? state.time : []), ys = [...points, ...near].map(row => row.loss);
  const [low, high, least, most] = [Math.min(...xs) / 1.1, Math.max(...xs) * 1.1, Math.min(...ys) - 0.03, Math.max(...ys) + 0.03];
  const x = value => LEFT + (WIDTH - LEFT - 8) * Math.log(value / low) / Math.log(high / low);
  const y = value => 8 + (HEIGHT - BOTTOM - 8) * (most - value) / (most - least);
  const svg = document.createElementNS(SPACE, 'svg');
  const add = (tag, attributes, text = '') => {
    const made = document.createElementNS(SPACE, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    svg.append(made);
  };
  svg.setAttribute('viewBox', `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', `Loss over time: from ${points[0].loss.toFixed(2)} at ${figure(points[0].x)} ms to ${points.at(-1).loss.toFixed(2)} at ${figure(points.at(-1).x)} ms; the table below has every point.`);
  const step = most - least > 1 ? 0.2 : most - least > 0.4 ? 0.1 : 0.05;
  for (let at = Math.ceil(least / step); at * step <= most; at += 1) {
    add('line', {x1: LEFT, x2: WIDTH, y1: y(at * step), y2: y(at * step), stroke: 'var(--line)'});
    add('text', {x: LEFT - 6, y: y(at * step) + 4, 'text-anchor': 'end'}, (at * step).toFixed(2));
  }
  let last = -Infinity;
  for (const tick of [0, 1, 2, 3, 4, 5, 6, 7].flatMap(power => [1, 2, 5].map(digit => digit * 10 ** power)))
    if (tick > low && tick < high && x(tick) - last > 90 && x(tick) < WIDTH - 34) {
      last = x(tick);
      add('text', {x: last, y: HEIGHT - BOTTOM + 20, 'text-anchor': 'middle'}, whole.format(tick));
    }
  add('text', {x: WIDTH, y: HEIGHT - 4, 'text-anchor': 'end'}, timeName());
  add('text', {x: WIDTH - 8, y: 22, 'text-anchor': 'end'}, 'loss (nats)');
  const path = points.map((row, at) => `${at ? `H${x(row.x)}V` : `M${x(row.x)},`}${y(row.loss)}`).join('') + `H${WIDTH}`;
  add('path', {d: path, fill: 'none', stroke: 'var(--curve)', 'stroke-width': 2});
  if (state.time < Infinity)
    add('line', {x1: x(state.time), x2: x(state.time), y1: 8, y2: HEIGHT - BOTTOM, stroke: 'var(--quiet)', 'stroke-dasharray': '4 4'});
  for (const row of near) {
    const [a, b] = [x(row.x), y(row.loss)];
    add('path', {d: `M${a},${b - 5}l5,5l-5,5l-5,-5z`, fill: 'var(--model)'});
  }
  if (own) add('circle', {cx: x(own[later()]), cy: y(own.loss), r: 6, fill: 'var(--pick)'});
  return svg;
}

function leastMemory() {
  const wanted = Number($('loss').value.replace(',', '.')), within = state.time === Infinity ? '' : ` within ${figure(state.time)} ms`;
  if (!(wanted >= 1 && wanted <= 9)) return ['Enter a loss from 1 to 9, for example 2.5.'];
  const memory = limits.memory.find(stop => Number(pick(state.time, stop).own?.loss.toFixed(2)) <= wanted), {own} = pick(state.time, memory ?? 0);
  const [small] = models.filter(row => row.loss <= wanted && row[later()] <= state.time).sort((a, b) => a.m - b.m);
  return [
    memory === undefined ? `To train: no design has ${wanted} or less${within}.`
      : `To train: ${wanted} or less${within} takes ${figure(own.m)} GB: ${own.size}, loss ${own.loss.toFixed(2)}, ${figure(own.t)} ms.`,
    small ? `To take: ${small.name}, ${small.m.toFixed(2)} GB, loss ${small.loss.toFixed(2)}, ${three.format(small.t)} ms.` : `To take: no published model has such a loss${within}.`,
  ];
}

const percent = text => text ? `${text}\u00a0%` : '-';
const PHASES = {prefill: 'first token', decode: 'next tokens'};

function errors() {
  const {classes, groups, rows: single} = block('accuracy'), parts = [], {label, class: kind} = shared.boards[state.board];
  const line = (name, row) => [name, PHASES[row.phase], row.rows, percent(row.median), percent(row.p90), percent(row.datasheet), percent(row.llmfit)];
  const own = classes.filter(row => row.device === label), alike = classes.filter(row => row.class === kind && !row.device);
  const add = (name, heads, body) => parts.push(element('h3', name), table(heads, body, name, 2));
  if (!own.length) parts.push(element('p', 'This board: not measured.'));
  if (!alike.length) parts.push(element('p', `Boards of its class (${kind}): not measured.`));
  add('Error of boards that are left out of the fit: how far measured times lie from predicted ones', ['boards', 'of the', 'rows', 'median error', '90 % are under', 'by data sheet', 'by llmfit'], [
    ...own.map(row => line('this board', row)),
    ...alike.map(row => line(`${row.devices} like it (${kind})`, row)),
    ...own.length ? [] : classes.filter(row => row.class === kind && row.device).map(row => line(row.device, row)),
    ...classes.filter(row => row.class === 'all').map(row => line(`all ${row.devices}`, row)),
  ]);
  const profiles = groups.filter(row => row.device.toLowerCase() === state.board);
  if (profiles.length) add('Error with measurements of this board, on rows that were not used', ['engine', 'format', 'batch', 'predicted from', 'first token', 'rows', 'next tokens', 'rows'], profiles.map(row => [
    row.engine, row.format, row.batch, row.predicted_from, percent(row.prefill_median_percent), row.prefill_rows, percent(row.decode_median_percent), row.decode_rows,
  ]));
  const shown = single.filter(row => row.device === state.board);
  if (shown.length) add(`Rows of ${shown[0].engine}, predicted without this chip`, ['model', 'format', 'of the', 'measured (ms)', 'PLAS (ms)', 'llmfit (ms)'], shown.map(row => [
    row.model, row.format, PHASES[row.phase] ?? row.phase, figure(Number(row.measured_ms)), figure(Number(row.predicted_ms)), row.llmfit_ms ? figure(Number(row.llmfit_ms)) : '-',
  ]));
  return parts.map(part => {
    if (part.tagName !== 'TABLE') return part;
    const wide = element('div', '', {class: 'wide'});
    wide.append(part);
    return wide;
  });
}

function show() {
  const answer = pick(state.time, state.memory), points = frontier(), lines = sentences(answer);
  for (const name of ['time', 'memory']) {
    $(`${name}-limit`).textContent = limitText(name);
    $(name).setAttribute('aria-valuetext', limitText(name));
  }
  $('answer').replaceChildren(...lines.map(text => element('p', text, /^Or train/.test(text) ? {class: 'title'} : {})));
  $('command').textContent = command();
  $('curve').replaceChildren(...points.length ? [curve(points, answer.own)] : []);
  $('points').replaceChildren(table(['design', timeName(), 'predicted (ms)', 'loss (nats)', 'memory (GB)'], points.map(row => [row.size, figure(row.x), figure(row.t), row.loss.toFixed(2), figure(row.m)]), 'The curve'));
  const {fits} = best(state.time, state.memory, answer.safe ? 'safe' : 't');
  $('models').replaceChildren(fits.length ? table(['model', 'loss', 'ms', 'GB', 'trained on (tokens)', 'licence'],
    fits.sort((a, b) => a.loss - b.loss).map(row => [row.name, row.loss.toFixed(2), three.format(row.t), row.m.toFixed(2), row.tokens.replace(' tokens', ''), row.licence]), 'Published models')
    : element('p', 'No published model is known to fit these limits.'));
  if (!lossTyped && answer.own) $('loss').value = (answer.own.loss + 0.05).toFixed(2);
  $('least').replaceChildren(...(rows.length ? leastMemory() : []).map(text => element('p', text)));
  history.replaceState(null, '', '#' + [state.board, state.format, state.workload, wishes.time, wishes.memory].join('/'));
}

const choose = (id, choices, value) => {
  $(id).replaceChildren(...choices);
  $(id).value = value;
};
const ENGINES = {q8_0: 'llama.cpp', q4_k_m: 'llama.cpp', mlx_8bit: 'MLX', mlx_4bit: 'MLX'};
const option = (value, text) => element('option', text, {value});

function moved(name) {
  if (name === 'board' || name === 'format' || name === 'workload') {
    state[name] = name === 'workload' ? Number($(name).value) : $(name).value;
    if (name === 'format') wishes.format = state.format;
    const {formats} = shared.boards[state.board];
    state.format = formats.includes(wishes.format) ? wishes.format : 'int4';  // the wanted one comes back with the next board that has it
    choose('format', formats.map(format => option(format, ENGINES[format] ? `${format} (${ENGINES[format]})` : format)), state.format);
    open();
    sliders();
    if (name !== 'workload') $('errors').replaceChildren(...errors());
  } else if (name === 'loss') lossTyped = true;
  else state[name] = wishes[name] = limits[name][$(name).value];
  show();
}

function start() {
  const [board, format, workload, time, memory] = location.hash.slice(1).split('/');
  if (shared.boards[board] && !$(board)) {  // the link is of a board that is further down
    document.addEventListener('DOMContentLoaded', start, {once: true});
    return;
  }
  if (shared.boards[board]?.formats.includes(format) && shared.workloads[workload])
    Object.assign(state, {board, format, workload: Number(workload)}, Object.assign(wishes, {format, time: Number(time) || 0, memory: Number(memory) || Infinity}));
  const kinds = new Map();
  for (const [id, {name, class: kind}] of Object.entries(shared.boards)) {
    if (!kinds.has(kind)) kinds.set(kind, element('optgroup', '', {label: kind}));
    kinds.get(kind).append(option(id, name));
  }
  choose('board', kinds.values(), state.board);
  choose('workload', shared.workloads.map(([name, wanted, written], at) => option(at, `${whole.format(wanted)} in, ${whole.format(written)} out: ${name}`)), state.workload);
  moved('board');
}

for (const name of ['board', 'format', 'workload']) $(name).addEventListener('change', () => moved(name));
for (const name of ['time', 'memory', 'loss']) $(name).addEventListener('input', () => moved(name));
for (const link of document.querySelectorAll('a[href^="#"]')) link.addEventListener('click', event => {  // the address keeps the state
  event.preventDefault();
  const section = document.querySelector(link.hash);
  section.scrollIntoView();
  section.focus({preventScroll: true});
});
window.addEventListener('hashchange', () => location.hash.includes('/') && start());
start();
performance.mark('answered');
document.documentElement.dataset.loaded = 'yes';
