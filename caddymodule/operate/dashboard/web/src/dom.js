export const by = (id) => document.getElementById(id)

// make makes an element. Texts become text nodes, never markup.
export const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value)
    else if (value === true) element.setAttribute(key, '')
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value)
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined))
  return element
}

// say sets a text if it is another one, so that what was selected stays so.
export const say = (element, text) => {
  if (element.textContent !== text) element.textContent = text
}

// table makes a table of rows, each an array of texts or elements. Numbers are aligned where
// the head says so. On a narrow screen a row is a card, where each value has its head beside it: the roles say that it
// is a table there too.
export const table = (caption, head, rows) => make('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': caption },
  make('table', { role: 'table' },
    make('caption', { class: 'unseen' }, caption),
    make('thead', { role: 'rowgroup' }, make('tr', { role: 'row' }, head.map((h) => make('th', { scope: 'col', role: 'columnheader', class: h.number ? 'number' : null, 'aria-sort': h.sort ?? null }, h.label)))),
    make('tbody', { role: 'rowgroup' }, rows.map((row) => make('tr', { role: 'row' }, row.map((cell, i) =>
      i === 0 ? make('th', { scope: 'row', role: 'rowheader' }, cell)
        : make('td', { role: 'cell', class: head[i].number ? 'number' : null, 'data-head': head[i].name ?? (typeof head[i].label === 'string' ? head[i].label : null) }, cell)))))))

// stack is a bar of parts of a whole, [[class, number]]; its text says them too.
export const stack = (parts, whole, text) => {
  const svg = (name, attributes) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name)
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
    return element
  }
  const bar = svg('svg', { viewBox: '0 0 100 8', preserveAspectRatio: 'none', class: 'stack', role: 'img', 'aria-label': text })
  let x = 0
  for (const [name, n] of parts) {
    const width = whole > 0 ? Math.max(0, n) / whole * 100 : 0
    if (width > 0) bar.append(svg('rect', { x: x.toFixed(2), y: 0, width: width.toFixed(2), height: 8, class: `fill-${name}` }))
    x += width
  }
  return bar
}

// refill puts new content where it differs from the old one: focus and selection survive.
export const refill = (element, ...children) => {
  const next = children.flat().filter(Boolean)
  const shape = next.map((child) => child.outerHTML ?? child).join('')
  if (element.dataset.shape === shape) return
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.key : null
  const scrolled = [...element.querySelectorAll('.scroll')].map((box) => box.scrollTop)
  element.dataset.shape = shape
  element.replaceChildren(...next)
  element.querySelectorAll('.scroll').forEach((box, i) => { box.scrollTop = scrolled[i] ?? 0 })
  if (focused) element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true })
}
