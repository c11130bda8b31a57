// Elements are built, never parsed: whatever a record holds stays text.

export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

const kNothing = '–';

export function number(value, digits = 2) {
  return Number.isFinite(value) ? value.toFixed(digits) : kNothing;
}
export function percent(share, digits = 2) {
  return Number.isFinite(share) ? (100 * share).toFixed(digits) : kNothing;
}
export function whole(value) {
  return Number.isFinite(value) ? Math.round(value).toLocaleString('en-US') : kNothing;
}
// Three significant digits, without a long tail of zeros.
export function short(value) {
  if (!Number.isFinite(value)) return kNothing;
  if (value === 0) return '0';
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e6 ? String(Number(value.toPrecision(3))) : value.toExponential(2);
}
export function bytes(count) {
  if (!Number.isFinite(count) || count <= 0) return kNothing;
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(count) / 3));
  return `${(count / 1000 ** power).toFixed(power ? 1 : 0)} ${units[power]}`;
}

// A rectangular table from rows of cells; a cell is text, a node, or {text, number: true}.
export function plainTable(headings, rows, attributes = {}) {
  const cell = (name, content) => {
    const isNumber = content && content.number;
    return h(name, {class: isNumber ? 'num' : undefined, scope: name === 'th' ? 'col' : undefined},
             isNumber ? content.text : content);
  };
  return h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': attributes.label},
    h('table', {class: attributes.class},
      h('thead', {}, h('tr', {}, headings.map((heading) => cell('th', heading)))),
      h('tbody', {}, rows.map((row) => h('tr', {}, row.map((value) => cell('td', value)))))));
}
