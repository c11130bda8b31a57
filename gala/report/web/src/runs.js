import {addCharts} from './charts.js';
import {bytes, h, number, percent, plainTable, short, whole} from './dom.js';

const kLosses = {pseudo_label: 'PL', shot: 'SHOT'};
export const lossName = (loss) => kLosses[loss] ?? loss;

export function runTitle(run) {
  const {row, loss, dataset, environment} = run.labels;
  return [row, lossName(loss), [dataset, environment].filter(Boolean).join(' ')]
    .filter(Boolean).join(' · ') || run.key;
}

// A run that never steps has no time of a step.
const stepTime = (run) => (run.steps ? run.cost.step_median_ms ?? NaN : NaN);
const hyperText = (hyper) => Object.entries(hyper).map(([name, value]) => `${name}=${value}`).join(', ');
const runLink = (run, text) => h('a', {href: `#run/${encodeURIComponent(run.key)}`}, text);

// --- all runs -------------------------------------------------------------------------------------

const kPageSize = 50;
const kColumns = [
  ['Plan', (run) => run.labels.plan],
  ['Group', (run) => run.labels.group],
  ['Method', (run) => run.labels.row],
  ['Loss', (run) => lossName(run.labels.loss)],
  ['Data', (run) => [run.labels.dataset, run.labels.environment].filter(Boolean).join(' ')],
  ['Network', (run) => run.labels.backbone],
  ['Trial', (run) => run.labels.trial],
  ['Hyper', (run) => hyperText(run.labels.hyper)],
  ['Norm', (run) => run.spec.norm],
  ['Accuracy', (run) => run.metrics.accuracy ?? NaN, 'percent'],
  ['Forgetting', (run) => run.metrics.forgetting ?? NaN, 'percent'],
  ['ms a step', (run) => stepTime(run), 'number'],
];

function compare(x, y) {
  if (typeof x === 'number' && typeof y === 'number') {
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return x - y;
  }
  return String(x).localeCompare(String(y), 'en', {numeric: true});
}

// A list of runs with a filter, sorting and pages.
export function runList(runs, label) {
  let shown = runs, page = 0, column = -1, up = true;
  const body = h('tbody');
  const status = h('span', {class: 'status', role: 'status'});
  const previous = h('button', {type: 'button', onclick: () => { --page; draw(); }}, 'Back');
  const next = h('button', {type: 'button', onclick: () => { ++page; draw(); }}, 'Next');
  const haystack = new Map();
  const textOf = (run) => {
    if (!haystack.has(run)) {
      haystack.set(run, [run.key, ...kColumns.slice(0, 9).map(([, get]) => get(run))].join(' ').toLowerCase());
    }
    return haystack.get(run);
  };
  const filter = h('input', {
    type: 'search', placeholder: 'Filter: words of any column', 'aria-label': `Filter ${label}`,
    oninput: () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      shown = runs.filter((run) => words.every((word) => textOf(run).includes(word)));
      page = 0;
      sort();
      draw();
    }});
  const sort = () => {
    if (column < 0) return;
    const get = kColumns[column][1];
    shown = [...shown].sort((a, b) => (up ? 1 : -1) * compare(get(a), get(b)));
  };
  const headings = kColumns.map(([name, , kind], index) => {
    const heading = h('th', {scope: 'col', class: kind ? 'num' : undefined});
    heading.append(h('button', {type: 'button', onclick: () => {
      up = column === index ? !up : true;
      column = index;
      for (const other of headings) other.removeAttribute('aria-sort');
      heading.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      page = 0;
      sort();
      draw();
    }}, name));
    return heading;
  });
  const draw = () => {
    const pages = Math.max(1, Math.ceil(shown.length / kPageSize));
    page = Math.min(Math.max(page, 0), pages - 1);
    const rows = shown.slice(page * kPageSize, (page + 1) * kPageSize);
    body.replaceChildren(...rows.map((run) => h('tr', {}, kColumns.map(([name, get, kind]) => {
      const value = get(run);
      const text = kind === 'percent' ? percent(value) : kind === 'number' ? number(value, 1) : value;
      return h('td', {class: kind ? 'num' : undefined},
               name === 'Method' || name === 'Accuracy' ? runLink(run, text || '–') : text);
    }))));
    status.textContent = `${whole(shown.length)} of ${whole(runs.length)} runs, page ${page + 1} of ${pages}`;
    previous.disabled = page === 0;
    next.disabled = page + 1 >= pages;
  };
  draw();
  return h('div', {class: 'run-list'},
    h('div', {class: 'bar'}, filter, status, previous, next),
    h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label},
      h('table', {class: 'runs'}, h('thead', {}, h('tr', {}, headings)), body)));
}

// --- one run --------------------------------------------------------------------------------------

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`;
}

// The run as a line for a shell. Folders and the weight file are the reader's to name.
export function commandLine(run) {
  const {spec, provenance} = run;
  const words = ['gala', 'adapt', '--model', spec.model];
  if (provenance.weights) words.push('--weights', provenance.weights);
  for (const name of ['data', 'stream', 'loss', 'select', 'optimizer', 'norm', 'partition', 'head']) {
    if (spec[name]) words.push(`--${name}`, spec[name]);
  }
  for (const pattern of spec.include ?? []) words.push('--include', pattern);
  for (const pattern of spec.exclude ?? []) words.push('--exclude', pattern);
  words.push('--batch-size', spec.batch_size, '--inner-steps', spec.inner_steps);
  if (spec.adapt_every !== 1) words.push('--adapt-every', spec.adapt_every);
  if (spec.episodic) words.push('--episodic');
  if (spec.predict !== 'adapting') words.push('--predict', spec.predict);
  if (spec.shadow) words.push('--shadow');
  if (spec.precision !== 'float32') words.push('--precision', spec.precision);
  words.push('--guard', spec.guard, '--seed', spec.seed);
  return words.map((word) => quoted(String(word))).join(' ');
}

function copyBlock(text) {
  const code = h('code', {}, text);
  const button = h('button', {type: 'button', class: 'copy', onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = 'Selected';
    }
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  }}, 'Copy');
  return h('div', {class: 'copy-block'}, h('pre', {tabindex: 0}, code), button);
}

function fact(name, value) {
  return h('div', {class: 'fact'}, h('dt', {}, name), h('dd', {}, value));
}

function scoreTable(title, scores, label) {
  if (!scores || !scores.length) return null;
  return [h('h3', {}, title), plainTable(
    ['Domain', {text: 'Images', number: true}, {text: 'Right', number: true},
     {text: 'Accuracy %', number: true}, {text: 'Error %', number: true}],
    scores.map(([name, images, correct]) => [name, {text: whole(images), number: true},
      {text: whole(correct), number: true}, {text: percent(correct / images), number: true},
      {text: percent(1 - correct / images), number: true}]),
    {label, class: 'compact'})];
}

// A stream that recurs is shown visit by visit; its domains come so often that they are folded away.
function answerTables(run) {
  const title = 'While adapting', label = 'Scores while adapting';
  const visits = Number(/[:,]visits=(\d+)/.exec(run.spec.stream)?.[1] ?? 1);
  if (visits < 2 || run.domains.length % visits) return scoreTable(title, run.domains, label);
  const size = run.domains.length / visits;
  const sums = Array.from({length: visits}, (_, index) => {
    const part = run.domains.slice(index * size, (index + 1) * size);
    const total = (place) => part.reduce((sum, score) => sum + score[place], 0);
    return [`visit ${index + 1}`, total(1), total(2)];
  });
  const all = run.domains.map(([name, ...rest], index) => [`${name}, visit ${Math.floor(index / size) + 1}`, ...rest]);
  return [scoreTable(`${title}, visit by visit`, sums, label),
          h('details', {}, h('summary', {}, 'Every domain of every visit'), scoreTable(title, all, 'Scores by domain and visit'))];
}

const shortNumber = (name, value) =>
  (typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value);

function guardPart(guard) {
  const events = guard.events ?? [];
  return [h('h3', {}, 'Guard'),
    h('p', {}, `${whole(guard.judgements)} judgements, ${whole(guard.collapses)} saw a collapse, ` +
               `${whole(guard.rollbacks)} rollbacks${guard.stopped ? ', stopped' : ''}.`),
    events.length > 0 && copyBlock(events.map((event) => JSON.stringify(event, shortNumber)).join('\n'))];
}

function pairsTable(pairs, label) {
  return plainTable(['Field', 'Value'], Object.entries(pairs).map(([name, value]) =>
    [name, typeof value === 'string' ? value : JSON.stringify(value)]), {label, class: 'compact pairs'});
}

function runCharts(run, index, data) {
  const detail = data.details[index];
  if (!detail) {
    return h('p', {class: 'note'}, 'The series of this run are not in the page, which is kept small. ' +
      'They are in the store under the key ', h('code', {}, run.key), '.');
  }
  const figure = h('div', {class: 'charts'});
  const one = [{label: runTitle(run), run: index}];
  const colours = {domain: [one[0].label], range: ['#0f8a80']};
  const threshold = detail.threshold;
  const charts = [
    {template: 'time', runs: one, label: 'Error over the stream', wide: true, colours},
    {template: 'raster', runs: one, label: 'Which layer moved when', wide: true},
    {template: 'counts', runs: one, label: 'How often each layer was chosen'},
    {template: 'displacement', runs: one, label: 'Net displacement against path'},
    {template: 'gap', runs: one, label: 'Gap between the two best cosines', colours},
  ];
  if (detail.trace) {
    charts.push({template: 'cosines', runs: one, label: 'Cosines and threshold', wide: true,
                 threshold, threshold_text: `threshold ${threshold}`},
                {template: 'cosine_map', runs: one, label: 'Cosine of every layer', wide: true});
  }
  // Charts measure their place, so they are added once the page shows it.
  requestAnimationFrame(() => addCharts(figure, charts, data));
  return figure;
}

// A command adapts to all images, where a protocol may take a part.
function partNote(run) {
  const images = Number(/[:,]images=(\d+)/.exec(run.spec.protocol)?.[1] ?? 0);
  return images > 0 && ` The run took at most ${whole(images)} images of each domain, the command takes all.`;
}

// How far the choices are from a rotation, in which no layer comes twice in a window.
const repeats = ({choices, repeats: count, by_chance: chance}) =>
  `${whole(count)} of ${whole(choices)} choices (${percent(count / choices)} %; by chance ${
    percent(chance / choices)} %)`;

export function runPage(run, index, data) {
  const metrics = run.metrics;
  return h('article', {class: 'run'},
    h('p', {class: 'crumbs'}, h('a', {href: '#overview'}, 'Report'), ' / ', h('a', {href: '#runs'}, 'Runs')),
    h('h1', {tabindex: -1}, runTitle(run)),
    h('p', {class: 'lead'}, [run.labels.plan && `plan ${run.labels.plan}`, run.labels.group,
      run.labels.backbone, `trial ${run.labels.trial}`, hyperText(run.labels.hyper),
      `norm ${run.spec.norm}`].filter(Boolean).join(' · ')),
    h('dl', {class: 'facts'},
      fact('Accuracy', `${percent(metrics.accuracy)} %`), fact('Error', `${percent(metrics.error)} %`),
      'generalisation' in metrics && fact('Held-out target', `${percent(metrics.generalisation)} %`),
      'forgetting' in metrics && fact('Forgetting', `${percent(metrics.forgetting)} points`),
      'forgetting_in_norm' in metrics &&
        fact('Forgetting, same norm', `${percent(metrics.forgetting_in_norm)} points`),
      'validation' in metrics && fact('Validation', `${percent(metrics.validation)} %`),
      fact('Steps', whole(run.steps)), fact('Refused', whole(run.refused)),
      fact('Skipped', whole(run.skipped)),
      run.rotation && fact('Repeats in a window', repeats(run.rotation)),
      fact('Median step', `${short(stepTime(run))} ms`),
      fact('Peak memory', run.cost.peak_memory
        ? `${bytes(run.cost.peak_memory)} (${run.cost.memory_of})` : 'not known')),
    h('h2', {}, 'Spec'), h('p', {class: 'note'}, 'The run as a command; add the folders of your data and weights.', partNote(run)),
    copyBlock(commandLine(run)),
    h('details', {}, h('summary', {}, 'Every option'), pairsTable(run.spec, 'Spec of the run')),
    h('h2', {}, 'Numbers'),
    answerTables(run),
    scoreTable('Held-out target, after adaptation', run.held_out, 'Held-out target'),
    scoreTable('Source, before', run.source_before, 'Source before adaptation'),
    scoreTable('Source in the norm mode of the run, before', run.source_in_norm, 'Source in norm mode'),
    scoreTable('Source, after', run.source_after, 'Source after adaptation'),
    scoreTable('Validation: adapting to the source’s hold-outs', run.validation, 'Validation'),
    guardPart(run.guard),
    h('h2', {}, 'What happened'), runCharts(run, index, data),
    h('h2', {}, 'Provenance'),
    pairsTable({key: run.key, data_hash: run.data_hash, ...run.provenance,
                ...(run.trace ? {trace: run.trace} : {})}, 'Provenance'));
}
