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
// the head says so.
export const table = (caption, head, rows, open = true) => make('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': caption },
  make('table', {},
    make('caption', { class: 'unseen' }, caption),
    make('thead', {}, make('tr', {}, head.map((h) => make('th', { scope: 'col', class: h.number ? 'number' : null, 'aria-sort': h.sort ?? null }, h.label)))),
    make('tbody', {}, rows.map((row) => make('tr', {}, row.map((cell, i) =>
      i === 0 ? make('th', { scope: 'row' }, cell) : make('td', { class: head[i].number ? 'number' : null }, cell)))))))

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
