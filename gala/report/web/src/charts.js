import {expressionInterpreter} from 'vega-interpreter';
import {compile} from 'vega-lite';
import * as vega from 'vega';

import * as expand from './data.js';
import {h} from './dom.js';

const kFont = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

// So many names as fit beside each other; a few stand in one row.
function legendColumns(spec, width) {
  const {color} = spec.encoding ?? spec.layer?.find((part) => part.encoding?.color)?.encoding ?? {};
  const names = color?.scale?.domain?.length ?? 0;
  if (width < kNarrow) return names > 6 ? 3 : 2;
  return names > 6 ? Math.floor(width / 115) : undefined;
}

function config(dark, width, spec) {
  const text = dark ? '#e6e8eb' : '#1d2126';
  const soft = dark ? '#a3adb8' : '#59626d';
  const line = dark ? '#343b44' : '#dfe2e6';
  return {
    background: 'transparent',
    font: kFont,
    view: {stroke: null},
    axis: {labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line,
           labelFontSize: 11, titleFontSize: 11, titleFontWeight: 500, titlePadding: 8,
           labelLimit: 150, labelPadding: 5, labelSeparation: 4},
    legend: {labelColor: text, titleColor: soft, labelFontSize: 11, titleFontSize: 11,
             orient: 'top', labelLimit: 180, symbolStrokeWidth: 2, symbolBaseFillColor: soft,
             symbolBaseStrokeColor: soft, columns: legendColumns(spec, width)},
    title: {color: text},
    text: {color: text},
    range: {
      diverging: dark ? ['#b8442f', '#6e352b', '#262b31', '#256048', '#2b8f69']
                      : ['#e0664f', '#f3c3b8', '#f6f6f3', '#b4dcc9', '#4db38a'],
      ramp: dark ? ['#22303a', '#2d6f78', '#58c5bd', '#e9f6c9']
                 : ['#eef5f3', '#9fd2cb', '#2f8f92', '#0b3c4f'],
      heatmap: dark ? ['#22303a', '#2d6f78', '#58c5bd', '#e9f6c9']
                    : ['#eef5f3', '#9fd2cb', '#2f8f92', '#0b3c4f'],
    },
    style: {
      threshold: {color: dark ? '#ff9d76' : '#c2410c', strokeDash: [5, 4], strokeWidth: 1.5},
      'threshold-label': {color: dark ? '#ff9d76' : '#b03a0a', fontSize: 11},
      border: {color: soft, strokeOpacity: 0.45, strokeDash: [2, 3]},
      'border-label': {color: soft, fontSize: 10},
      box: {color: text, strokeWidth: 2},
      'cell-label': {color: text, fontSize: 11},
      band: {color: dark ? '#58c5bd' : '#2f8f92', fillOpacity: 0.16},
      main: {color: dark ? '#58c5bd' : '#0a7070', strokeWidth: 1.6},
      soft: {color: soft, strokeWidth: 1.1},
      diagonal: {color: soft, strokeDash: [3, 3]},
      chosen: {color: dark ? '#58c5bd' : '#0a7070'},
      several: {color: dark ? '#e6a24a' : '#d98b1f', fillOpacity: 0.5},
      refused: {color: dark ? '#ff7d66' : '#c9452f', fillOpacity: 0.7},
      skipped: {color: soft, fillOpacity: 0.3},
    },
  };
}

let printing = false;
const isDark = () => !printing &&
  (document.documentElement.dataset.theme ||
   (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';

const kExpanders = {
  time: ({detail, label}) => ({main: expand.overTime(detail, label), borders: expand.borders(detail)}),
  raster: ({detail, layers}) => ({main: expand.raster(detail, layers)}),
  counts: ({detail, layers, label}) => ({main: expand.layerUse(detail, layers, label)}),
  displacement: ({detail, layers, label}) => ({
    main: expand.layerUse(detail, layers, label).filter((layer) => layer.path > 0 && layer.net > 0)}),
  gap: ({detail, label}) => ({main: expand.gaps(detail, label)}),
  cosines: ({detail}) => ({main: expand.cosines(detail.trace)}),
  cosine_map: ({detail, layers}) => ({main: expand.cosineMap(detail.trace, layers)}),
};

const kBlockColours = {'block 1': '#0f8a80', 'block 2': '#e0992a', 'block 3': '#5b6fd0', 'block 4': '#d9542b',
                       layer: '#0f8a80'};

// Each decade is shared out among the runs.
function besideEachOther(bars, labels) {
  for (const bar of bars) {
    const width = (bar.to - bar.from) / labels.length;
    bar.left = bar.from + labels.indexOf(bar.label) * width;
    bar.right = bar.left + width;
  }
}

// A chart's specification with its data, or nothing when the page does not hold it.
export function specOf(chart, data) {
  if (chart.spec) return chart.spec;
  const spec = structuredClone(data.templates[chart.template]);
  spec.datasets = {main: []};
  for (const {label, run} of chart.runs) {
    const detail = data.details[run];
    if (!detail) continue;
    const layers = data.layer_sets[detail.layer_set];
    const sets = kExpanders[chart.template]({detail, layers, label});
    spec.datasets.main.push(...sets.main);
    if (sets.borders && !spec.datasets.borders) spec.datasets.borders = sets.borders;
  }
  if (chart.template === 'time') spec.datasets.borders ??= [];
  if (chart.threshold !== undefined) {
    spec.datasets.threshold = [{distance: 1 - chart.threshold, text: chart.threshold_text}];
  } else if (chart.template === 'cosines') {
    spec.datasets.threshold = [];
  }
  if (chart.colours) (spec.encoding ?? spec.layer[0].encoding).color.scale = chart.colours;
  if (chart.template === 'gap') besideEachOther(spec.datasets.main, chart.runs.map(({label}) => label));
  if (chart.template === 'raster') {
    // Only what occurs: a layer without data has no extent.
    const kinds = new Set(spec.datasets.main.map((value) => value.kind));
    // Where all layers move at every step there is nothing to see.
    if (kinds.size === 1 && kinds.has('several layers')) return null;
    spec.layer = spec.layer.filter((part) => kinds.has(part.transform[0].filter.equal));
  }
  if (['counts', 'displacement'].includes(chart.template)) {
    const blocks = [...new Set(spec.datasets.main.map((value) => value.block))];
    (spec.encoding ?? spec.layer[0].encoding).color.scale =
      {domain: blocks, range: blocks.map((block) => kBlockColours[block] ?? '#7f8892')};
  }
  if (['raster', 'counts', 'cosine_map'].includes(chart.template)) {
    // Every layer has its row, in forward order, chosen or not.
    const detail = data.details[chart.runs[0].run];
    if (!detail) return null;
    const names = data.layer_sets[detail.layer_set].names;
    spec.height = Math.max(60, names.length * (names.length > 30 ? 10 : 15));
    for (const part of spec.layer ?? [spec]) {
      if (part.encoding.y?.field === 'layer') part.encoding.y.scale = {domain: names};
    }
  }
  return spec.datasets.main.length ? spec : null;
}

const kManyMarks = 4000;
const kNarrow = 480;

// Many names in little room stand upright, those of domains and those of a heat map's columns.
function fitted(spec, width) {
  const columns = spec.encoding?.x;
  if (width < kNarrow && columns?.axis?.orient === 'top' && columns.sort?.length > 4) {
    const axis = {...columns.axis, labelAngle: 270, labelAlign: 'left', labelBaseline: 'middle'};
    return {...spec, encoding: {...spec.encoding, x: {...columns, axis}}};
  }
  if (width >= kNarrow || !(spec.datasets?.borders?.length > 6)) return spec;
  return {...spec, layer: spec.layer.map((part) => (part.mark.style === 'border-label'
    ? {...part, mark: {...part.mark, angle: 270, baseline: 'middle'}} : part))};
}

async function draw(holder) {
  const {spec, view} = holder;
  const width = holder.plot.clientWidth;
  if (view) view.finalize();
  const runtime = vega.parse(compile(fitted(spec, width), {config: config(isDark(), width, spec)}).spec, null, {ast: true});
  const marks = (spec.datasets?.main ?? spec.data?.values ?? []).length;
  holder.view = new vega.View(runtime, {
    expr: expressionInterpreter,
    renderer: marks > kManyMarks ? 'canvas' : 'svg',
    container: holder.plot,
    hover: true,
    logLevel: vega.Warn,
  });
  await holder.view.runAsync();
  holder.plot.dataset.drawn = 'yes';
}

const holders = new Set();
let waiting = [];
let busy = false;

async function work() {
  if (busy) return;
  busy = true;
  while (waiting.length) {
    waiting.sort((a, b) => distance(a) - distance(b));
    const holder = waiting.shift();
    if (!holder.plot.isConnected || !holder.plot.clientWidth) continue;
    try {
      await draw(holder);
    } catch (problem) {
      holder.plot.textContent = `This plot could not be drawn: ${problem.message}`;
      console.error(problem);
    }
    // Let the page answer between two plots.
    await new Promise((resolve) => setTimeout(resolve));
  }
  busy = false;
  document.documentElement.dataset.plots = 'drawn';
}

function distance(holder) {
  const box = holder.plot.getBoundingClientRect();
  return box.top > innerHeight ? box.top - innerHeight : box.bottom < 0 ? -box.bottom : 0;
}

function enqueue(list) {
  waiting.push(...list.filter((holder) => !waiting.includes(holder)));
  delete document.documentElement.dataset.plots;
  work();
}

export function redraw() {
  for (const holder of holders) if (!holder.plot.isConnected) holders.delete(holder);
  enqueue([...holders]);
}

// Paper is white. Plots have all they need, so they are drawn again before the page is printed.
addEventListener('beforeprint', () => {
  if (!isDark()) return;
  printing = true;
  for (const holder of holders) if (holder.plot.clientWidth) draw(holder);
});
addEventListener('afterprint', () => {
  if (!printing) return;
  printing = false;
  redraw();
});

// Puts charts into a figure; draws those in sight first.
export function addCharts(figure, charts, data) {
  const added = [];
  for (const chart of charts) {
    const spec = specOf(chart, data);
    if (!spec) continue;
    const plot = h('div', {class: 'plot'});
    figure.append(h('div', {class: chart.wide ? 'chart wide' : 'chart'},
                    chart.label && h('h4', {}, chart.label), plot));
    const holder = {plot, spec};
    holders.add(holder);
    added.push(holder);
  }
  enqueue(added);
  return added.length;
}
