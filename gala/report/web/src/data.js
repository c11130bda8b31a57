// The page's data: gzipped JSON in base64, so that thousands of records stay small.

export async function readData() {
  const text = document.getElementById('gala-data').textContent.trim();
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const data = JSON.parse(await new Response(stream).text());
  data.runs = readRuns(data.runs);
  return data;
}

// [[name, images, correct], ...]
const scores = ({sets, correct}) => sets.map(([name, images], index) => [name, images, correct[index]]);

// Every domain counts the same; NaN without any.
function meanAccuracy(list) {
  const counted = list.filter(([, images]) => images > 0);
  return counted.reduce((sum, [, images, correct]) => sum + correct / images, 0) / counted.length;
}

function metricsOf(run) {
  const accuracy = meanAccuracy(run.domains);
  const metrics = {accuracy, error: 1 - accuracy};
  if (run.held_out) metrics.generalisation = meanAccuracy(run.held_out);
  if (run.source_before) metrics.forgetting = meanAccuracy(run.source_before) - meanAccuracy(run.source_after);
  if (run.source_in_norm) {
    metrics.forgetting_in_norm = meanAccuracy(run.source_in_norm) - meanAccuracy(run.source_after);
  }
  if (run.validation) metrics.validation = meanAccuracy(run.validation);
  return Object.fromEntries(Object.entries(metrics).filter(([, value]) => Number.isFinite(value)));
}

const kGroups = ['labels', 'spec', 'guard', 'cost', 'provenance'];
const kScores = ['domains', 'held_out', 'source_before', 'source_in_norm', 'source_after', 'validation'];

// Runs come column by column: a column is {at: [field] or [group, field], values, of}. Run i has
// values[of[i]], or values[i] where there is no `of`; -1 or null: it has none.
function readRuns({count, columns}) {
  // Names of fields may be anything, so groups inherit nothing.
  const runs = Array.from({length: count}, () =>
    Object.fromEntries(kGroups.map((group) => [group, Object.create(null)])));
  for (const {at: [group, name], values, of} of columns) {
    runs.forEach((run, index) => {
      const value = values[of ? of[index] : index] ?? null;
      if (value === null) return;
      if (name === undefined) run[group] = value;
      else (run[group] ??= Object.create(null))[name] = value;
    });
  }
  for (const run of runs) {
    for (const name of kScores) if (run[name]) run[name] = scores(run[name]);
    run.metrics = metricsOf(run);
  }
  return runs;
}

// [[value, times], ...] written out.
export function runLengths(pairs) {
  const values = [];
  for (const [value, times] of pairs) for (let i = 0; i < times; ++i) values.push(value);
  return values;
}

const kMostPoints = 160;

// Error in per cent over the stream, in at most kMostPoints stretches that never cross a border.
export function overTime(detail, label) {
  const images = runLengths(detail.time.images);
  const correct = detail.time.correct;
  const count = Math.min(images.length, correct.length);
  const starts = detail.time.borders.map((border) => border[0]);
  const stretch = Math.max(1, Math.ceil(count / kMostPoints));
  const values = [];
  for (let i = 0; i < count;) {
    const next = starts.find((start) => start > i) ?? count;
    const end = Math.min(i + stretch, next, count);
    let right = 0, all = 0;
    for (let j = i; j < end; ++j) { right += correct[j]; all += images[j]; }
    if (all > 0) values.push({batch: (i + end + 1) / 2, error: 100 * (1 - right / all), label});
    i = end;
  }
  return values;
}

// Where a stream recurs, the borders between its visits: those between domains would fill the plot.
function mainBorders(borders) {
  const visits = borders.map(([, name]) => / \(visit (\d+)\)$/.exec(name)?.[1]);
  if (!visits.length || visits.includes(undefined)) return borders;
  return borders.map(([start], index) => [start, `visit ${visits[index]}`])
    .filter((_, index) => visits[index] !== visits[index - 1]);
}

export function borders(detail) {
  const count = detail.time.correct.length;
  return mainBorders(detail.time.borders).map(([start, name], index, all) => {
    const end = all[index + 1]?.[0] ?? count;
    return {start: start + 0.5, middle: (start + end + 1) / 2, name};
  });
}

const kKinds = {'-1': 'none passed', '-2': 'refused', '-3': 'several layers'};

// Rectangles of the layers-by-steps raster.
export function raster(detail, layers) {
  const values = [];
  let step = 0;
  for (const [choice, times] of detail.choices) {
    const place = {from: step + 0.5, to: step + times + 0.5, steps: times};
    if (choice >= 0 && choice < layers.names.length) {
      values.push({...place, layer: layers.names[choice], index: choice, kind: 'chosen'});
    } else if (kKinds[choice]) {
      values.push({...place, kind: kKinds[choice]});
    }
    step += times;
  }
  return values;
}

const blockName = (block) => (block > 0 ? `block ${block}` : block === 0 ? 'head' : 'layer');

export function layerUse(detail, layers, label) {
  return layers.names.map((layer, index) => ({
    layer, index, label, block: blockName(layers.blocks[index]), chosen: detail.chosen[index],
    path: detail.path[index], net: detail.net[index],
  }));
}

export function gaps(detail, label) {
  const steps = detail.gap.steps;
  if (!steps) return [];
  const values = detail.gap.decades.map((count, index) => ({
    label, from: index - 17, to: index - 16, share: 100 * count / steps, count,
  }));
  if (detail.gap.zero) {
    values.push({label, from: -18, to: -17, share: 100 * detail.gap.zero / steps,
                 count: detail.gap.zero});
  }
  return values;
}

// Bands of 1 - cos over the steps of a trace.
export function cosines(trace) {
  return trace.steps.map((step, index) => ({
    step, best: trace.best[index], second: trace.second[index], median: trace.median[index],
    worst: trace.worst[index],
  }));
}

export function cosineMap(trace, layers) {
  const values = [];
  trace.map.forEach((column, index) => column.forEach((distance, layer) => {
    if (distance === null) return;
    values.push({from: trace.edges[index], to: trace.edges[index + 1], layer: layers.names[layer],
                 index: layer, cosine: 1 - distance});
  }));
  return values;
}
