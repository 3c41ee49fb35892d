// Draws the report from the JSON in #run. No library, no network.
'use strict';

const run = JSON.parse(document.getElementById('run').textContent);
const byId = (id) => document.getElementById(id);
const CAUSES = run.cause_names;
const STALLS = run.timeline.waiting.length;  // causes before the last two are stalls
const UNITS = run.unit_names;
const TRANSFER_UNITS = [4, 5, 6];

// ------------------------------------------------------------ words and numbers

const whole = (n) => Math.round(n).toLocaleString('en-US');
const percent = (part, all, digits = 1) => (all ? (100 * part / all).toFixed(digits) : '0') + ' %';
function amount(n, unit) {
  for (const [size, prefix] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (n >= size) return (n / size).toPrecision(3) + ' ' + prefix + unit;
  return whole(n) + ' ' + unit;
}
function duration(cycles) {
  const seconds = cycles / (run.clock_mhz * 1e6);
  for (const [size, unit] of [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs']])
    if (seconds >= size) return (seconds / size).toPrecision(3) + ' ' + unit;
  return (seconds / 1e-9).toPrecision(3) + ' ns';
}
const total = (causes) => causes.reduce((sum, cycles) => sum + cycles, 0);

// ------------------------------------------------------------ elements

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}
function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function causesInWords(causes) {
  const all = total(causes);
  return CAUSES.map((name, c) => [name, causes[c]])
      .filter(([, cycles]) => cycles > 0)
      .sort((a, b) => b[1] - a[1])
      .map(([name, cycles]) => `${name} ${percent(cycles, all, 0)}`)
      .join(', ');
}

// The causes as lengths of one bar; `of` is what the whole width stands for.
function stack(causes, of = total(causes), idle = '') {
  const bar = make('div', {class: 'stack', role: 'img',
                           'aria-label': causesInWords(causes) || 'nothing',
                           title: (causesInWords(causes) || 'nothing') + idle});
  causes.forEach((cycles, c) => {
    if (cycles > 0)
      bar.append(make('i', {style: `width:${100 * cycles / of}%;background:var(--c${c})`}));
  });
  return bar;
}

function legend(causes) {
  const all = total(causes);
  const list = make('ul', {class: 'legend'});
  CAUSES.forEach((name, c) => {
    if (causes[c] === 0) return;
    list.append(make('li', {}, make('i', {style: `background:var(--c${c})`}), name,
                     make('span', {}, `${whole(causes[c])} · ${percent(causes[c], all)}`)));
  });
  return list;
}

// ------------------------------------------------------------ the head of the page

function showHead() {
  document.title = `${run.title} – plena report`;
  byId('title').textContent = run.title;
  byId('subtitle').textContent =
      `profile ${run.profile} at ${run.clock_mhz} MHz, memory ${run.hbm.memory}, ` +
      `${whole(run.program.instructions)} instructions`;
  const tile = (value, text) =>
      byId('tiles').append(make('div', {class: 'tile'}, make('b', {}, value), make('span', {}, text)));
  tile(whole(run.cycles), `cycles, ${duration(run.cycles)}`);
  const [bound, cycles] = run.roofline.bounds[run.roofline.binding];
  tile(percent(cycles, run.cycles), `of the cycles is the lower bound, set by ${bound}`);
  tile(amount(run.hbm.read + run.hbm.written, 'B'),
       `of HBM, ${percent(run.hbm.rate, run.hbm.peak)} of its peak`);
  if (run.overlap !== 'ideal') tile(percent(run.program.multiply_adds, run.cycles * run.roofline.array_peak),
       `of the array’s ${whole(run.roofline.array_peak)} multiply-adds a cycle`);
  if (run.picojoules !== undefined) tile(amount(run.picojoules / 1e12, 'J'), 'energy');
}

// ------------------------------------------------------------ where the cycles went

function showCycles() {
  byId('causes').append(stack(run.program.causes), legend(run.program.causes));
  if (run.units.length === 0) {
    byId('units').append(make('p', {class: 'note'},
                              'This profile has as many units as wanted: none has an account.'));
    return;
  }
  const body = make('tbody');
  run.units.forEach((unit, u) => {
    if (unit.busy === 0 && total(unit.waiting) === 0) return;
    const bar = stack(unit.waiting, run.cycles);
    bar.prepend(make('i', {style: `width:${100 * unit.busy / run.cycles}%;background:var(--busy)`}));
    const waits = causesInWords(unit.waiting);
    bar.title = `busy ${percent(unit.busy, run.cycles)}` + (waits ? `; waits for ${waits}` : '');
    bar.setAttribute('aria-label', bar.title);
    body.append(make('tr', {}, make('td', {class: 'text'}, UNITS[u]), make('td', {class: 'wide'}, bar),
                     make('td', {}, percent(unit.busy, run.cycles)),
                     make('td', {}, percent(total(unit.waiting), run.cycles)),
                     make('td', {}, percent(unit.nothing_to_do, run.cycles))));
  });
  byId('units').append(make('table', {},
      make('thead', {}, make('tr', {}, ...[['Unit', 'text'], ['Its cycles', 'text'], ['Busy', ''],
        ['Free, and the next instruction is its own', ''], ['Nothing to do', '']].map(
          ([text, kind]) => make('th', {scope: 'col', class: kind}, text)))),
      body));
}

// ------------------------------------------------------------ regions, loops and their listing

const scopes = new Map();  // name in the address bar -> scope
let scope = null;
let byCycles = false;
let shownRows = 0;
const ROWS_AT_ONCE = 400;

function scopeButton(key, item, text, small) {
  scopes.set(key, {...item, key, text});
  const cycles = total(item.causes);
  return make('li', {},
      make('button', {type: 'button', 'data-scope': key, style: `padding-left:${0.6 + 0.9 * (item.depth || 0)}rem`,
                      onclick: () => select(key, true)},
           make('span', {class: 'name', title: text}, text),
           make('span', {}, percent(cycles, run.cycles)),
           stack(item.causes, run.cycles || 1),
           small ? make('small', {}, small) : null));
}

function showScopes() {
  byId('whole').append(scopeButton('program', run.program, 'Whole program', ''));
  const fill = (kind, items, text, small) => {
    const all = run[`${kind}s_of`];
    byId(`${kind}s-title`).hidden = items.length === 0;
    if (items.length < all) byId(`${kind}s-title`).append(`, the ${whole(items.length)} most expensive of ${whole(all)}`);
    items.forEach((item, i) =>
        byId(`${kind}s`).append(scopeButton(`${kind}-${i}`, item, text(item), small(item))));
  };
  fill('region', run.regions, (region) => region.name, () => '');
  fill('loop', run.loops, (loop) => loop.name,
       (loop) => `${whole(loop.iterations)} iterations, entered ${whole(loop.entries)} times`);
  // Up and down walk through a list, as in any list.
  for (const list of document.querySelectorAll('.scopes')) {
    list.addEventListener('keydown', (event) => {
      const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
      if (!step) return;
      const buttons = [...document.querySelectorAll('.scopes button')];
      const next = buttons[buttons.indexOf(document.activeElement) + step];
      if (next) next.focus();
      event.preventDefault();
    });
  }
}

function select(key, remember) {
  scope = scopes.get(key) || scopes.get('program');
  for (const button of document.querySelectorAll('.scopes button'))
    button.setAttribute('aria-current', String(button.dataset.scope === scope.key));
  if (remember) history.replaceState(null, '', scope.key === 'program' ? '#program' : '#' + scope.key);
  const kind = scope.key.split('-')[0];
  byId('scope-title').textContent = kind === 'program' ? 'Whole program'
      : kind === 'loop' ? `Loop, ${scope.text}` : `Region ${scope.text}`;
  byId('scope-causes').replaceChildren(legend(scope.causes));
  showListing();
}

const hasSource = run.source.length > 0;
const zero = () => CAUSES.map(() => 0);

// Rows of the listing: lines of the source in their order, or instructions.
function listingRows() {
  const inside = run.instructions.filter((i) => i.pc >= scope.begin && i.pc < scope.end);
  if (byCycles || !hasSource) {
    const rows = inside.map((i) => ({pc: i.pc, line: i.line, text: i.text, times: i.times, causes: i.causes}));
    if (byCycles) rows.sort((a, b) => total(b.causes) - total(a.causes) || a.pc - b.pc);
    return rows;
  }
  const lines = new Map();
  for (const i of inside) {
    const row = lines.get(i.line) ||
        {pc: i.pc, line: i.line, text: run.source[i.line - 1] ?? i.text, times: 0, causes: zero(), words: 0};
    row.times = Math.max(row.times, i.times);
    row.causes = row.causes.map((cycles, c) => cycles + i.causes[c]);
    lines.set(i.line, row);
  }
  const numbers = [...lines.keys()].sort((a, b) => a - b);
  if (numbers.length === 0) return [];
  // The whole program shows its whole text; a part of it what stands between its lines.
  const first = scope.key === 'program' ? 1 : numbers[0];
  const last = scope.key === 'program' ? run.source.length : numbers[numbers.length - 1];
  const rows = [];
  for (let line = first; line <= last; ++line) {
    rows.push(lines.get(line) ||
              {line, text: run.source[line - 1], times: null, causes: zero()});
  }
  return rows;
}

// Mnemonic, operands, comment.
function code(text) {
  const cell = make('td', {class: 'code'});
  const comment = text.search(/;|#|\/\//);
  const body = comment < 0 ? text : text.slice(0, comment);
  const mnemonic = /^(\s*(?:[\w.]+:\s*)?)([A-Z][A-Z0-9_]+|\.\w+)(.*)$/s.exec(body);
  if (mnemonic) cell.append(mnemonic[1], make('b', {}, mnemonic[2]), mnemonic[3]);
  else cell.append(body);
  if (comment >= 0) cell.append(make('em', {}, text.slice(comment)));
  return cell;
}

function listingRow(row, all, most) {
  const cycles = total(row.causes);
  const share = make('td', {});
  if (cycles > 0) {
    const heaviest = row.causes.indexOf(Math.max(...row.causes));
    share.append(make('i', {style: `width:${100 * cycles / most}%;background:var(--c${heaviest})`}),
                 make('span', {}, percent(cycles, all)));
  }
  const attributes = {};
  if (row.pc !== undefined) attributes['data-pc'] = row.pc;
  if (row.line) attributes['data-line'] = row.line;
  if (!cycles) attributes.class = 'quiet';
  return make('tr', attributes, share,
      make('td', {}, cycles ? whole(cycles) : ''),
      make('td', {}, row.times ? whole(row.times) : ''),
      make('td', {}, cycles ? stack(row.causes, most) : ''),
      make('td', {}, String(hasSource ? row.line : row.pc)),
      code(row.text));
}

function showListing() {
  byId('by-source').setAttribute('aria-pressed', String(!byCycles));
  byId('by-cycles').setAttribute('aria-pressed', String(byCycles));
  byId('place-head').textContent = hasSource ? 'Line' : 'pc';
  byId('listing').tBodies[0].replaceChildren();
  byId('listing-frame').scrollTop = 0;
  shownRows = 0;
  moreRows(ROWS_AT_ONCE);
  byId('listing-note').textContent = run.instructions.length < run.listed_of
      ? `The ${whole(run.instructions.length)} most expensive of ${whole(run.listed_of)} instructions are listed.`
      : '';
}

function moreRows(count) {
  const rows = listingRows();
  const most = Math.max(1, ...rows.map((row) => total(row.causes)));
  const all = total(scope.causes);
  byId('listing').tBodies[0].append(
      ...rows.slice(shownRows, shownRows + count).map((row) => listingRow(row, all, most)));
  shownRows = Math.min(rows.length, shownRows + count);
  byId('more').hidden = shownRows >= rows.length;
  byId('more').textContent = `Show ${whole(Math.min(ROWS_AT_ONCE, rows.length - shownRows))} more of ${whole(rows.length)}`;
}

// From the timeline: the row of an instruction, in the whole program.
function showInstruction(pc) {
  byCycles = false;
  select('program', false);
  const instruction = run.instructions.find((i) => i.pc === pc);
  if (!instruction) return;
  const wanted = hasSource ? `tr[data-line="${instruction.line}"]` : `tr[data-pc="${pc}"]`;
  if (!byId('listing').querySelector(wanted)) moreRows(Infinity);
  const row = byId('listing').querySelector(wanted);
  for (const old of document.querySelectorAll('tr.found')) old.classList.remove('found');
  row.classList.add('found');
  row.scrollIntoView({block: 'center'});
}

// ------------------------------------------------------------ timeline

const bins = run.timeline;
const view = {from: 0, to: Math.max(1, run.cycles)};
const GUTTER = 112;
const LEAST_CYCLES = 24;  // shown at once
const canvas = byId('timeline-canvas');

const slices = bins.details.map(([pc, unit, issue, end, stall, cause]) => ({pc, unit, issue, end, stall, cause}));
// Transfers of a unit overlap: each gets the first lane that is free.
for (const unit of TRANSFER_UNITS) {
  const free = [];
  for (const slice of slices) {
    if (slice.unit !== unit) continue;
    let lane = free.findIndex((until) => until <= slice.issue);
    if (lane < 0) lane = free.push(0) - 1;
    free[lane] = slice.end;
    slice.lane = lane;
  }
  const lanes = free.length;
  for (const slice of slices) if (slice.unit === unit) slice.lanes = lanes;
}
const texts = new Map(run.instructions.map((i) => [i.pc, i]));

// The region of each stretch with those around it, outermost first.
const around = run.regions.map((region, r) => {
  const chain = run.regions.map((_, o) => o).filter((o) => o < r && run.regions[o].begin <= region.begin &&
      run.regions[o].end >= region.end && run.regions[o].depth < region.depth);
  return [...chain, r];
});
const REGION_ROWS = Math.min(3, Math.max(0, ...around.map((chain) => chain.length)));

// Rows from top to bottom.
const rows = [];
{
  let y = 8;
  const add = (row, height, gap) => { rows.push({...row, y, height}); y += height + gap; };
  add({kind: 'window', name: ''}, 5, 9);
  if (bins.regions.length) {
    for (let depth = 0; depth < REGION_ROWS; ++depth)
      add({kind: 'region', name: depth === 0 ? 'regions' : '', depth}, 17, depth === REGION_ROWS - 1 ? 8 : 1);
  }
  if (bins.waiting.some((series) => series.length)) add({kind: 'waiting', name: 'waits for'}, 40, 8);
  UNITS.forEach((name, unit) => {
    if (bins.busy[unit].length) add({kind: 'unit', name, unit}, TRANSFER_UNITS.includes(unit) ? 30 : 19, 4);
  });
  if (bins.moved.some((series) => series.length)) {
    add({kind: 'bandwidth', name: 'HBM bytes/cycle'}, 46, bins.channels ? 4 : 8);
    if (bins.channels) bins.moved.forEach((series, c) =>
        add({kind: 'channel', name: c === 0 ? `channel ${c}` : c === bins.moved.length - 1 ? `channel ${c}` : '', series}, 8, 2));
  }
  rows.bottom = y + 6;
}

// The mean of a series, a cycle, between two cycles.
function mean(series, from, to) {
  if (to <= from) return 0;
  let sum = 0;
  const width = bins.width;
  for (let bin = Math.floor(from / width); bin * width < to && bin < series.length; ++bin) {
    const covered = Math.min(to, (bin + 1) * width) - Math.max(from, bin * width);
    sum += series[bin] * covered / Math.min(width, Math.max(1, run.cycles - bin * width));
  }
  return sum / (to - from);
}
const everyChannel = bins.moved.length === 0 ? [] :
    Array.from({length: Math.max(...bins.moved.map((series) => series.length))},
               (_, bin) => bins.moved.reduce((sum, series) => sum + (series[bin] || 0), 0));

// Instruction by instruction, where they are known and few enough to be seen.
const detailed = () => view.to <= bins.details_end && view.to - view.from <= 4000;

let scheduled = false;
function redraw() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => { scheduled = false; paint(); });
}

function paint() {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = rows.bottom + 18;
  canvas.style.height = height + 'px';
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const g = canvas.getContext('2d');
  g.scale(ratio, ratio);
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue('--' + name).trim();
  const look = {color, causes: CAUSES.map((_, c) => color('c' + c)), g, width,
                plot: width - GUTTER, span: view.to - view.from,
                family: getComputedStyle(document.body).fontFamily};
  look.x = (cycle) => GUTTER + (cycle - view.from) / look.span * look.plot;
  g.font = '12px ' + look.family;
  g.textBaseline = 'middle';
  for (const row of rows) {
    g.fillStyle = color('dim');
    g.textAlign = 'right';
    g.fillText(row.name, GUTTER - 10, row.y + row.height / 2);
    paintRow[row.kind](row, look);
  }
  paintAxis(look, height);
}

// Calls `shade(x, from, to)` for each column of pixels and its cycles.
function columns(look, shade) {
  for (let x = 0; x < look.plot; ++x) {
    const from = view.from + x / look.plot * look.span;
    shade(GUTTER + x, from, from + look.span / look.plot);
  }
}
function ground(row, look) {
  look.g.fillStyle = look.color('idle');
  look.g.fillRect(GUTTER, row.y, look.plot, row.height);
}

const paintRow = {
  window(row, look) {
    ground(row, look);
    look.g.fillStyle = look.color('accent');
    const all = Math.max(1, run.cycles);
    look.g.fillRect(GUTTER + view.from / all * look.plot, row.y,
                    Math.max(3, look.span / all * look.plot), row.height);
  },
  region(row, look) {
    let start = 0;
    const at = (bin) => around[bins.regions[bin]]?.[row.depth];
    for (let bin = 1; bin <= bins.regions.length; ++bin) {
      if (bin < bins.regions.length && at(bin) === at(start)) continue;
      const region = at(start);
      if (region !== undefined)
        box(look, start * bins.width, Math.min(bin * bins.width, run.cycles), row.y, row.height,
            look.color(region % 2 ? 'region' : 'region-other'), run.regions[region].name, look.color('ink'));
      start = bin;
    }
  },
  waiting(row, look) {
    ground(row, look);
    if (detailed()) return paintWaits(row, look);
    columns(look, (x, from, to) => {
      let y = row.y + row.height;
      for (let c = 0; c < STALLS; ++c) {
        const h = mean(bins.waiting[c], from, to) * row.height;
        if (h <= 0) continue;
        look.g.fillStyle = look.causes[c];
        look.g.fillRect(x, y - h, 1, h);
        y -= h;
      }
    });
  },
  unit(row, look) {
    ground(row, look);
    if (detailed()) return paintSlices(row, look);
    look.g.fillStyle = look.color('busy');
    columns(look, (x, from, to) => {
      const h = Math.min(1, mean(bins.busy[row.unit], from, to)) * row.height;
      look.g.fillRect(x, row.y + row.height - h, 1, h);
    });
  },
  bandwidth(row, look) {
    ground(row, look);
    look.g.fillStyle = look.color('moved');
    columns(look, (x, from, to) => {
      const h = Math.min(1, mean(everyChannel, from, to) / run.hbm.peak) * row.height;
      look.g.fillRect(x, row.y + row.height - h, 1, h);
    });
    look.g.fillStyle = look.color('dim');
    look.g.textAlign = 'left';
    look.g.fillText('peak ' + whole(run.hbm.peak), GUTTER + 5, row.y + 8);
  },
  channel(row, look) {
    ground(row, look);
    look.g.fillStyle = look.color('moved');
    const peak = run.hbm.peak / bins.moved.length;
    columns(look, (x, from, to) => {
      const share = Math.min(1, mean(row.series, from, to) / peak);
      if (share <= 0) return;
      look.g.globalAlpha = 0.12 + 0.88 * share;
      look.g.fillRect(x, row.y, 1, row.height);
    });
    look.g.globalAlpha = 1;
  },
};

function box(look, from, to, y, height, fill, text, ink = look.color('card')) {
  const {g} = look;
  const left = Math.max(GUTTER, look.x(from)), right = Math.min(look.width, look.x(to));
  if (right <= left) return;
  const width = Math.max(1, right - left - 1);
  g.fillStyle = fill;
  g.fillRect(left, y, width, height);
  if (!text || height < 10 || width < 34) return;
  g.save();
  g.font = (height < 15 ? '10px ' : '12px ') + look.family;
  g.beginPath();
  g.rect(left, y, width, height);
  g.clip();
  g.fillStyle = ink;
  g.textAlign = 'left';
  g.fillText(text, left + 4, y + height / 2 + 0.5);
  g.restore();
}
function visible(slice) {
  return slice.end > view.from && slice.issue - slice.stall < view.to;
}
function paintWaits(row, look) {
  for (const slice of slices) {
    if (slice.stall === 0 || slice.issue <= view.from || slice.issue - slice.stall >= view.to) continue;
    box(look, slice.issue - slice.stall, slice.issue, row.y, row.height, look.causes[slice.cause], CAUSES[slice.cause]);
  }
}
function paintSlices(row, look) {
  for (const slice of slices) {
    if (slice.unit !== row.unit || !visible(slice)) continue;
    const lanes = slice.lanes || 1;
    const height = row.height / lanes;
    const text = texts.get(slice.pc)?.text;
    box(look, slice.issue, slice.end, row.y + (slice.lane || 0) * height, lanes > 1 ? height - 1 : height,
        look.color('busy'), text);
  }
}

function paintAxis(look, height) {
  const {g} = look;
  const rough = look.span / Math.max(2, look.plot / 130);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].find((m) => m * power >= rough) * power);
  g.fillStyle = look.color('dim');
  g.textAlign = 'center';
  for (let cycle = Math.ceil(view.from / step) * step; cycle <= view.to; cycle += step) {
    const x = look.x(cycle);
    g.globalAlpha = 0.25;
    g.fillRect(x, rows[1]?.y ?? 0, 1, rows.bottom - (rows[1]?.y ?? 0));
    g.globalAlpha = 1;
    const text = whole(cycle);
    const half = g.measureText(text).width / 2;
    g.fillText(text, Math.min(Math.max(x, GUTTER + half), look.width - half), height - 8);
  }
}

function readout() {
  const {from, to} = view;
  const parts = [];
  const waits = bins.waiting.map((series, c) => [CAUSES[c], mean(series, from, to)])
      .filter(([, share]) => share >= 0.005).sort((a, b) => b[1] - a[1]);
  if (waits.length) parts.push('waits for ' + waits.map(([name, share]) => `${name} ${percent(share, 1, 0)}`).join(', '));
  const busy = bins.busy.map((series, u) => [UNITS[u], mean(series, from, to)])
      .filter(([, share]) => share >= 0.005).sort((a, b) => b[1] - a[1]);
  if (busy.length) parts.push('busy: ' + busy.map(([name, share]) => `${name} ${percent(share, 1, 0)}`).join(', '));
  if (everyChannel.length) parts.push(`${whole(mean(everyChannel, from, to))} of ${whole(run.hbm.peak)} bytes a cycle`);
  byId('timeline-readout').textContent =
      `Cycles ${whole(from)} to ${whole(to)}: ` + (parts.join('; ') || 'nothing');
  canvas.dataset.from = Math.round(from);
  canvas.dataset.to = Math.round(to);
}

function show(from, to) {
  const all = Math.max(1, run.cycles);
  const span = Math.min(all, Math.max(Math.min(LEAST_CYCLES, all), to - from));
  const middle = (from + to) / 2;
  view.from = Math.min(Math.max(0, to - from < span ? middle - span / 2 : from), all - span);
  view.to = view.from + span;
  readout();
  redraw();
}
function zoom(factor, around = (view.from + view.to) / 2) {
  show(around - (around - view.from) * factor, around + (view.to - around) * factor);
}
const pan = (share) => {
  const step = share * (view.to - view.from);
  const all = Math.max(1, run.cycles);
  const moved = Math.min(Math.max(step, -view.from), all - view.to);
  show(view.from + moved, view.to + moved);
};
const showAll = () => show(0, Math.max(1, run.cycles));

function cycleAt(event) {
  const place = canvas.getBoundingClientRect();
  const share = (event.clientX - place.left - GUTTER) / (place.width - GUTTER);
  return view.from + Math.min(1, Math.max(0, share)) * (view.to - view.from);
}

// The slice under the pointer, if instructions are drawn one by one.
function sliceAt(event, row) {
  if (!detailed() || !row) return null;
  const cycle = cycleAt(event);
  const y = event.clientY - canvas.getBoundingClientRect().top;
  return slices.find((slice) => {
    if (row.kind === 'waiting') return slice.stall > 0 && cycle >= slice.issue - slice.stall && cycle < slice.issue;
    if (row.kind !== 'unit' || slice.unit !== row.unit || cycle < slice.issue || cycle >= slice.end) return false;
    return !slice.lanes || Math.floor((y - row.y) / (row.height / slice.lanes)) === slice.lane;
  }) || null;
}
function rowAt(event) {
  const y = event.clientY - canvas.getBoundingClientRect().top;
  return rows.find((row) => y >= row.y - 1 && y < row.y + row.height + 1 && row.kind !== 'window');
}

function describeSlice(slice, row) {
  const instruction = texts.get(slice.pc);
  const lines = [make('code', {}, instruction ? instruction.text : `pc ${slice.pc}`), make('br')];
  const place = instruction && instruction.line ? `line ${instruction.line}` : `pc ${slice.pc}`;
  lines.push(row.kind === 'waiting'
      ? `${place} waits ${whole(slice.stall)} cycles for ${CAUSES[slice.cause]}`
      : `${place}, issued at ${whole(slice.issue)}, ${TRANSFER_UNITS.includes(slice.unit) ? 'under way' : 'its unit busy'} until ${whole(slice.end)}`);
  if (row.kind !== 'waiting' && slice.stall > 0)
    lines.push(make('br'), `after ${whole(slice.stall)} cycles of waiting: ${CAUSES[slice.cause]}`);
  return lines;
}
function describeStretch(event, row) {
  const width = Math.max(bins.width, (view.to - view.from) / Math.max(1, canvas.clientWidth - GUTTER));
  const from = Math.floor(cycleAt(event) / width) * width;
  const to = Math.min(from + width, run.cycles);
  const lines = [`Cycles ${whole(from)} to ${whole(to)}`, make('br')];
  if (row.kind === 'waiting') {
    bins.waiting.forEach((series, c) => {
      const share = mean(series, from, to);
      if (share >= 0.005) lines.push(`${CAUSES[c]} ${percent(share, 1, 0)}`, make('br'));
    });
  } else if (row.kind === 'region') {
    const chain = around[bins.regions[Math.floor(from / bins.width)]] || [];
    lines.push(chain.map((r) => run.regions[r].name).join(' / ') || 'in no region');
  } else if (row.kind === 'unit') {
    lines.push(`${row.name} busy ${percent(mean(bins.busy[row.unit], from, to), 1, 0)}`);
  } else {
    lines.push(`${mean(row.kind === 'channel' ? row.series : everyChannel, from, to).toFixed(1)} bytes a cycle`);
  }
  return lines;
}

function showTip(event) {
  const tip = byId('tip');
  const row = rowAt(event);
  const place = canvas.getBoundingClientRect();
  if (!row || event.clientX - place.left < GUTTER) { tip.hidden = true; return; }
  const slice = sliceAt(event, row);
  tip.replaceChildren(...(slice ? describeSlice(slice, row) : describeStretch(event, row)));
  tip.hidden = false;
  const x = event.clientX - place.left;
  tip.style.top = `${row.y + row.height + 8}px`;
  tip.style.left = `${Math.max(0, Math.min(x + 12, place.width - tip.offsetWidth))}px`;
}

function showRegionAt(event) {
  const region = around[bins.regions[Math.floor(cycleAt(event) / bins.width)]]?.[rowAt(event).depth];
  if (region !== undefined) select(`region-${region}`, true);
}

function listenToTimeline() {
  let held = null;
  canvas.addEventListener('pointerdown', (event) => {
    held = {x: event.clientX, from: view.from, to: view.to, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!held) return showTip(event);
    const shift = (held.x - event.clientX) / (canvas.clientWidth - GUTTER) * (held.to - held.from);
    if (Math.abs(held.x - event.clientX) > 3) held.moved = true;
    const all = Math.max(1, run.cycles);
    const bounded = Math.min(Math.max(shift, -held.from), all - held.to);
    if (held.moved) show(held.from + bounded, held.to + bounded);
  });
  canvas.addEventListener('pointerup', (event) => {
    if (held && !held.moved) {
      const slice = sliceAt(event, rowAt(event));
      if (slice) showInstruction(slice.pc);
      else if (rowAt(event)?.kind === 'region') showRegionAt(event);
    }
    held = null;
  });
  canvas.addEventListener('pointerleave', () => { byId('tip').hidden = true; });
  canvas.addEventListener('wheel', (event) => {
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / 800);
    else zoom(Math.exp(event.deltaY / 300), cycleAt(event));
    event.preventDefault();
  }, {passive: false});
  canvas.addEventListener('dblclick', (event) => zoom(0.25, cycleAt(event)));
  const keys = {ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), '+': () => zoom(0.5), '=': () => zoom(0.5),
                '-': () => zoom(2), '0': showAll, Home: () => show(0, view.to - view.from),
                End: () => show(run.cycles - (view.to - view.from), run.cycles)};
  canvas.addEventListener('keydown', (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    keys[event.key]();
    event.preventDefault();
  });
  byId('zoom-in').addEventListener('click', () => zoom(0.5));
  byId('zoom-out').addEventListener('click', () => zoom(2));
  byId('zoom-all').addEventListener('click', showAll);
  new ResizeObserver(redraw).observe(canvas);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
}

function showTimeline() {
  if (rows.length <= 1) {
    byId('timeline-frame').replaceChildren(make('p', {class: 'note'},
        'Nothing happened in time, or this profile has as many units as wanted and no timeline.'));
    byId('timeline-readout').remove();
    return;
  }
  const parts = [];
  if (bins.width > 1) parts.push(`The run is summed up in stretches of ${whole(bins.width)} cycles.`);
  if (bins.details_end < run.cycles)
    parts.push(`Single instructions show up to cycle ${whole(bins.details_end)}, the first ${whole(slices.length)} of them; a trace has all.`);
  if (!bins.channels) parts.push('This memory has no channels: the bytes of each transfer are spread evenly over its time.');
  parts.push('Drag or arrow keys move, wheel or + and − zoom, 0 shows the whole run; a click on an instruction finds its line.');
  byId('timeline-note').textContent = parts.join(' ');
  listenToTimeline();
  showAll();
}

// ------------------------------------------------------------ roofline

function showRoofline() {
  const {array_peak: arrayPeak, memory_peak: memoryPeak, bounds, binding} = run.roofline;
  const body = make('tbody');
  bounds.forEach(([name, cycles], b) => {
    if (cycles === 0) return;
    body.append(make('tr', b === binding ? {class: 'binding'} : {},
        make('td', {class: 'text'}, name), make('td', {}, whole(cycles)), make('td', {}, percent(cycles, run.cycles)),
        make('td', {}, make('div', {class: 'meter'}, make('i', {style: `width:${100 * cycles / run.cycles}%`})))));
  });
  byId('bounds').append(
      make('table', {}, make('thead', {}, make('tr', {}, make('th', {scope: 'col', class: 'text'}, 'No run takes fewer cycles than'),
          make('th', {scope: 'col'}, 'Cycles'), make('th', {scope: 'col', colspan: 2, class: 'text'}, 'Share of this run'))), body));

  const points = [{...run.program, name: 'whole program', main: true},
                  ...run.regions, ...run.loops]
      .filter((part) => part.multiply_adds > 0 && part.bytes > 0 && total(part.causes) > 0)
      .map((part) => ({name: part.name, main: part.main, x: part.multiply_adds / part.bytes,
                       y: part.multiply_adds / total(part.causes), cycles: total(part.causes)}))
      .sort((a, b) => b.cycles - a.cycles).slice(0, 12);
  if (points.length === 0) {
    byId('roofline-drawing').append(make('p', {class: 'note'},
        'No part of this run both multiplies in the array and moves bytes, so there is no point to draw.'));
    return;
  }
  drawRoofline(points, arrayPeak, memoryPeak);
}

function drawRoofline(points, arrayPeak, memoryPeak) {
  const width = 520, height = 300, left = 52, bottom = 34, top = 10, right = 12;
  const ridge = arrayPeak / memoryPeak;
  const log = Math.log10;
  const xs = [...points.map((p) => p.x), ridge], ys = [...points.map((p) => p.y), arrayPeak];
  const x0 = Math.floor(log(Math.min(...xs)) - 0.3), x1 = Math.ceil(log(Math.max(...xs)) + 0.3);
  const y0 = Math.floor(log(Math.min(...ys)) - 0.2), y1 = Math.ceil(log(Math.max(...ys)) + 0.15);
  const x = (value) => left + (log(value) - x0) / (x1 - x0) * (width - left - right);
  const y = (value) => top + (y1 - log(value)) / (y1 - y0) * (height - top - bottom);
  const svg = draw('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img',
      'aria-label': `Roofline: the memory gives ${whole(memoryPeak)} bytes a cycle, the array ${whole(arrayPeak)} multiply-adds a cycle. ` +
          points.map((p) => `${p.name}: ${p.x.toPrecision(3)} multiply-adds a byte, ${p.y.toPrecision(3)} a cycle`).join('. ')});
  for (let e = x0; e <= x1; ++e) {
    svg.append(draw('line', {x1: x(10 ** e), x2: x(10 ** e), y1: top, y2: height - bottom, stroke: 'var(--faint)'}),
               text(x(10 ** e), height - bottom + 14, (10 ** e).toLocaleString('en-US'), 'middle'));
  }
  for (let e = y0; e <= y1; ++e) {
    svg.append(draw('line', {x1: left, x2: width - right, y1: y(10 ** e), y2: y(10 ** e), stroke: 'var(--faint)'}),
               text(left - 6, y(10 ** e) + 4, (10 ** e).toLocaleString('en-US'), 'end'));
  }
  const lowest = Math.max(10 ** x0, 10 ** y0 / memoryPeak);
  svg.append(
      draw('polyline', {fill: 'none', stroke: 'var(--ink)', 'stroke-width': 1.8, 'stroke-linejoin': 'round',
          points: [[lowest, lowest * memoryPeak], [ridge, arrayPeak], [10 ** x1, arrayPeak]].map(([px, py]) => `${x(px)},${y(py)}`).join(' ')}),
      text(width - right, y(arrayPeak) - 5, `array ${whole(arrayPeak)}`, 'end'),
      text((left + width) / 2, height - 4, 'multiply-adds a byte of HBM', 'middle'));
  const side = text(12, (height - bottom) / 2, 'multiply-adds a cycle', 'middle');
  side.setAttribute('transform', `rotate(-90 12 ${(height - bottom) / 2})`);
  svg.append(side);
  for (const p of [...points].reverse()) {
    const dot = draw('circle', {cx: x(p.x), cy: y(p.y), r: p.main ? 5.5 : 4, fill: p.main ? 'var(--c0)' : 'var(--busy)', 'fill-opacity': p.main ? 1 : 0.7});
    dot.append(draw('title'));
    dot.firstChild.textContent = `${p.name}: ${p.x.toPrecision(3)} multiply-adds a byte, ${p.y.toPrecision(3)} a cycle, ${percent(p.y, Math.min(arrayPeak, p.x * memoryPeak))} of the roof`;
    svg.append(dot);
  }
  // Names where they do not run into each other.
  const taken = [];
  for (const p of points) {
    const place = {x: x(p.x), y: y(p.y)};
    if (taken.some((other) => Math.abs(other.y - place.y) < 13 && Math.abs(other.x - place.x) < 130)) continue;
    taken.push(place);
    const atRight = place.x > width - 150;
    const label = text(place.x + (atRight ? -9 : 9), place.y + 4, p.name, atRight ? 'end' : 'start');
    label.setAttribute('class', 'label');
    svg.append(label);
  }
  byId('roofline-drawing').append(svg);

  function text(px, py, words, anchor) {
    const element = draw('text', {x: px, y: py, 'text-anchor': anchor});
    element.textContent = words;
    return element;
  }
}

// ------------------------------------------------------------ HBM

function showHbm() {
  const {hbm} = run;
  const line = (name, value, note = '') => make('tr', {}, make('td', {class: 'text'}, name), make('td', {}, value), make('td', {class: 'text'}, note));
  const body = make('tbody', {},
      line('read', amount(hbm.read, 'B'), 'in bursts of 32'),
      line('written', amount(hbm.written, 'B')),
      line('achieved', hbm.rate.toFixed(1) + ' B/cycle', percent(hbm.rate, hbm.peak) + ' of the peak'),
      line('peak', hbm.peak.toFixed(1) + ' B/cycle', hbm.memory));
  for (const [name, rows] of [['reads', hbm.reads], ['writes', hbm.writes]]) {
    const all = rows ? rows.hits + rows.misses + rows.conflicts : 0;
    if (all === 0) continue;
    body.append(line(`${name}: row hits`, percent(rows.hits, all), `of ${whole(all)}`),
                line(`${name}: bank closed`, percent(rows.misses, all)),
                line(`${name}: other row open`, percent(rows.conflicts, all)));
  }
  byId('hbm-traffic').append(make('table', {}, body));

  if (hbm.transfers.length === 0) {
    byId('hbm-latency').append(make('p', {class: 'note'}, 'No transfers.'));
    return;
  }
  for (const t of hbm.transfers) {
    const most = Math.max(...t.histogram.counts);
    const bars = make('div', {class: 'histogram', role: 'img', 'aria-label': `latencies of ${UNITS[t.unit]}`});
    t.histogram.counts.forEach((count, i) => bars.append(make('i', {
      style: `height:${count ? Math.max(3, 100 * count / most) : 0}%`,
      title: `${whole(i * t.histogram.step)} to ${whole((i + 1) * t.histogram.step - 1)} cycles: ${whole(count)}`})));
    byId('hbm-latency').append(
        make('div', {}, make('b', {}, UNITS[t.unit]),
             ` ${whole(t.count)} transfers of ${t.mean.toFixed(1)} cycles on average, median ${whole(t.median)}, 95 % ${whole(t.p95)}, most ${whole(t.most)}`),
        bars, make('p', {class: 'note', style: 'margin:0 0 1rem'}, `from 0 to ${whole(t.most)} cycles`));
  }
}

// ------------------------------------------------------------ everything

function showSettings() {
  for (const [name, value] of run.settings)
    byId('settings-list').append(make('div', {}, make('dt', {}, name), make('dd', {}, value)));
}

showHead();
showTimeline();
showCycles();
showScopes();
showRoofline();
showHbm();
showSettings();
const fromAddress = () => scopes.has(location.hash.slice(1)) ? location.hash.slice(1) : scope ? scope.key : 'program';
select(fromAddress(), false);
addEventListener('hashchange', () => select(fromAddress(), false));
byId('by-source').addEventListener('click', () => { byCycles = false; showListing(); });
byId('by-cycles').addEventListener('click', () => { byCycles = true; showListing(); });
byId('more').addEventListener('click', () => moreRows(ROWS_AT_ONCE));
