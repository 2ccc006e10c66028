'use strict';
// A click on a protocol's name highlights it in every chart; a second click ends that.
let picked = '';
document.addEventListener('click', (event) => {
  const name = event.target.closest('button.name');
  if (name) {
    picked = picked === name.dataset.name ? '' : name.dataset.name;
    document.body.classList.toggle('picked', picked !== '');
    for (const one of document.querySelectorAll('[data-name]')) one.classList.toggle('pick', one.dataset.name === picked);
    return;
  }
  const all = event.target.closest('.all-columns');
  if (all) {
    const shown = all.closest('table').classList.toggle('all');
    all.textContent = shown ? 'show fewer columns' : 'show all columns';
    all.setAttribute('aria-expanded', String(shown));
    return;
  }
  const title = event.target.closest('th.sortable');
  if (title) sort(title);
});

function sort(title) {
  const falling = title.getAttribute('aria-sort') === 'ascending';
  for (const other of title.parentNode.children) other.removeAttribute('aria-sort');
  title.setAttribute('aria-sort', falling ? 'descending' : 'ascending');
  const body = title.closest('table').tBodies[0];
  const key = (row) => row.cells[title.cellIndex].dataset.sort ?? row.cells[title.cellIndex].textContent.trim();
  const compare = (a, b) => (isNaN(a) || isNaN(b) || a === '' || b === '' ? a.localeCompare(b) : a - b);
  body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b)) * (falling ? -1 : 1)));
}
for (const title of document.querySelectorAll('table:not(.bars) th')) {
  title.classList.add('sortable');
  title.tabIndex = 0;
  title.addEventListener('keydown', (event) => { if (event.key === 'Enter') sort(title); });
}
// What is folded is printed too.
const folded = [];
addEventListener('beforeprint', () => {
  for (const one of document.querySelectorAll('details.fold:not([open])')) { one.open = true; folded.push(one); }
});
addEventListener('afterprint', () => { for (const one of folded.splice(0)) one.open = false; });
