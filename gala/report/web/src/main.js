import {addCharts, redraw} from './charts.js';
import {readData} from './data.js';
import {h} from './dom.js';
import {runList, runPage} from './runs.js';
import {enhanceSwitches, enhanceTables} from './tables.js';

const report = document.getElementById('report');
const other = document.getElementById('other');
let data = null;

// --- light and dark -------------------------------------------------------------------------------

const kThemes = ['', 'light', 'dark'];
const kThemeNames = {'': 'auto', light: 'light', dark: 'dark'};

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  document.getElementById('theme').textContent = `Theme: ${kThemeNames[theme]}`;
  try { localStorage.setItem('gala-theme', theme); } catch { /* not kept, no harm */ }
}

function startTheme() {
  const button = document.getElementById('theme');
  button.hidden = false;
  let theme = '';
  try { theme = localStorage.getItem('gala-theme') ?? ''; } catch { /* as the system has it */ }
  if (!kThemes.includes(theme)) theme = '';
  setTheme(theme);
  button.addEventListener('click', () => {
    theme = kThemes[(kThemes.indexOf(theme) + 1) % kThemes.length];
    setTheme(theme);
    redraw();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
}

// --- what the address asks for ---------------------------------------------------------------------

function show(page) {
  other.replaceChildren(page ?? '');
  other.hidden = !page;
  report.hidden = Boolean(page);
  if (page) {
    scrollTo(0, 0);
    page.querySelector('h1')?.focus({preventScroll: true});
  }
}

function listPage(title, runs) {
  return h('article', {class: 'run'},
    h('p', {class: 'crumbs'}, h('a', {href: '#overview'}, 'Report')),
    h('h1', {tabindex: -1}, title), runList(runs, title));
}

function route() {
  let address = location.hash.slice(1);
  try { address = decodeURIComponent(address); } catch { /* taken as it is */ }
  const [kind, ...rest] = address.split('/');
  const name = rest.join('/');
  if (kind === 'run') {
    const index = data.runs.findIndex((run) => run.key === name);
    show(index < 0 ? listPage(`No run ${name} in this page`, []) : runPage(data.runs[index], index, data));
  } else if (kind === 'cell') {
    const indices = data.cells[Number(name)] ?? [];
    show(listPage('Runs behind this number', indices.map((index) => data.runs[index])));
  } else {
    const wasAway = report.hidden;
    show(null);
    if (wasAway) {
      document.getElementById(kind)?.scrollIntoView();
      redraw();
    }
  }
}

async function start() {
  startTheme();
  enhanceTables(document);
  enhanceSwitches(document);
  data = await readData();
  for (const figure of document.querySelectorAll('[data-figure]')) {
    const charts = data.figures[figure.dataset.figure];
    const room = figure.querySelector('.charts');
    if (addCharts(room, charts, data) === 0) figure.hidden = true;
  }
  const runs = document.getElementById('run-list');
  if (runs) runs.append(runList(data.runs, 'All runs'));
  addEventListener('hashchange', route);
  route();
  let width = innerWidth;
  addEventListener('resize', () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(start.timer);
    start.timer = setTimeout(redraw, 200);
  });
  document.documentElement.dataset.ready = 'yes';
}

start().catch((problem) => {
  console.error(problem);
  document.getElementById('problem').hidden = false;
  document.getElementById('problem').textContent =
    `The interactive part of this page could not start: ${problem.message}`;
});
