// Sorting and switching of the tables that the page brings along.

function sortBy(table, column, button) {
  const heading = button.closest('th');
  const up = heading.getAttribute('aria-sort') !== 'ascending' &&
             (heading.getAttribute('aria-sort') === 'descending' || heading.dataset.first !== 'descending');
  for (const other of table.tHead.querySelectorAll('[aria-sort]')) other.removeAttribute('aria-sort');
  heading.setAttribute('aria-sort', up ? 'ascending' : 'descending');
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const value = (row) => {
    const cell = row.cells[column];
    if (!('value' in cell.dataset)) return cell.classList.contains('num') ? NaN : cell.textContent;
    return Number(cell.dataset.value);
  };
  // What has no number goes to the end, either way.
  rows.sort((a, b) => {
    const x = value(a), y = value(b);
    if (typeof x === 'string' || typeof y === 'string') {
      return (up ? 1 : -1) * String(x).localeCompare(String(y), 'en', {numeric: true});
    }
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return up ? x - y : y - x;
  });
  table.classList.add('sorted');
  body.append(...rows);
}

export function enhanceTables(root) {
  for (const table of root.querySelectorAll('table[data-sortable]')) {
    table.tHead.addEventListener('click', (event) => {
      const button = event.target.closest('button');
      if (button) sortBy(table, Number(button.dataset.column), button);
    });
  }
}

// The switches for rule and norm mode: every table shows the variant that is asked for, where it has
// it, and the first one elsewhere.
export function enhanceSwitches(root) {
  const controls = [...root.querySelectorAll('[data-switch]')];
  const apply = () => {
    const wanted = Object.fromEntries(controls.map((control) => [control.dataset.switch, control.value]));
    for (const set of root.querySelectorAll('[data-variants]')) {
      const variants = [...set.querySelectorAll(':scope > [data-variant]')];
      const score = (variant) => (variant.dataset.norm === wanted.norm ? 2 : 0) +
                                 (variant.dataset.rule === wanted.rule ? 1 : 0);
      const best = variants.reduce((a, b) => (score(b) > score(a) ? b : a));
      for (const variant of variants) variant.hidden = variant !== best;
    }
  };
  for (const control of controls) {
    control.disabled = false;
    control.addEventListener('change', apply);
  }
  if (controls.length) apply();
}
