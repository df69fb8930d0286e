// The table of items: those that move most, or those that a search finds.
import { by, make, refill, stack, table } from './dom.js'
import { askStock } from './acts.js'
import { clock, count, pace, span } from './format.js'
import { texts } from './texts.js'

const place = by('items')
const search = by('search')
let order = ''
let found = { items: [], matches: 0 }
let asked = 0

export const stateOf = ([stock, available, held, doubt], sells) => {
  if (stock === 0) return 'no_stock'
  if (available + held + doubt === 0) return 'sold_out'
  if (available === 0) return 'all_held'
  if (available * 10 < stock) return 'low'
  return sells ? 'on_sale' : 'in_stock'
}

const bar = ([all, available, held, doubt, sold]) => stack([['sold', sold], ['in_doubt', doubt], ['held', held], ['available', available]], all, texts.bar(sold, all))

// told is an item's state: when it sells out at its own pace, or since when it is sold out.
const told = (i, state, sells) => {
  const name = texts.itemStates[state]
  if (i.stock[1] === 0 && i.gone_at) return texts.goneAt(name, clock(i.gone_at))
  return sells && i.pace > 0 && i.stock[1] > 0 ? texts.outIn(name, span(i.stock[1] / i.pace * 1000)) : name
}

// showRegions fills the table of regions, of a sale that has several.
export const showRegions = (sale, sells) => refill(by('regions'), sale.regions ? [make('h3', {}, texts.regions), table(texts.regions,
  [{ label: texts.region }, { label: texts.share }, { label: texts.available, number: true }, { label: texts.held, number: true }, { label: texts.in_doubt, number: true }, { label: texts.sold, number: true }, { label: texts.paceName, number: true }],
  sale.regions.map((r) => [r.name || texts.noRegion, bar(r.stock), ...r.stock.slice(1).map(count), sells && r.pace > 0 && r.stock[1] > 0 ? pace(r.pace) : texts.none]))] : null)

// searching reports whether the list is what a user looks for, and not what moves.
const searching = () => search.value !== '' || order !== ''

// find asks the edge for items. Only the last question counts.
export const find = async (sale, limit = 50) => {
  const question = ++asked
  const query = new URLSearchParams({ sale, q: search.value, sort: order, limit })
  try {
    const answer = await fetch(`items?${query}`)
    if (answer.ok && question === asked) found = await answer.json()
  } catch { /* the page says that it is stale */ }
}

let again = () => {}
search.addEventListener('input', () => again())

// show fills the table. Items that move come first, then those of the sale. sells: this edge sells it now.
export const show = (sale, sells, mayStock, refresh) => {
  again = refresh
  const seen = new Set(sale.movers.map((i) => `${i.sku}@${i.region ?? ''}`))
  const rows = searching() ? found.items : [...sale.movers, ...found.items.filter((i) => !seen.has(`${i.sku}@${i.region ?? ''}`))].slice(0, 10)
  const regional = rows.some((i) => i.region)
  const sorter = (name, label) => make('button', { class: 'sort', type: 'button', 'data-key': name, 'data-sort': name, 'aria-pressed': String(order === name) }, label)
  const column = (name, label = texts[name]) => ({ name: label, label: sorter(name, label), number: name !== 'sku', sort: order === name ? (name === 'sku' || name === 'available' ? 'ascending' : 'descending') : null })
  const head = [column('sku', texts.sku), ...(regional ? [{ label: texts.region }] : []), { label: texts.share }, column('available'), column('held'), column('in_doubt'), column('sold'), { label: texts.paceName, number: true }, { label: texts.state }]
  if (mayStock) head.push({ label: texts.acts })
  const body = rows.map((i) => {
    const state = stateOf(i.stock, sells)
    const row = [i.sku, ...(regional ? [i.region ?? ''] : []), bar(i.stock), ...i.stock.slice(1).map(count), sells && i.pace > 0 && i.stock[1] > 0 ? pace(i.pace) : texts.none, make('span', { class: `tag ${state}` }, told(i, state, sells))]
    if (mayStock) row.push(make('button', { type: 'button', class: 'small', 'data-stock': JSON.stringify(i), 'data-key': `stock ${i.sku} ${i.region ?? ''}`, 'aria-label': `${texts.addStock}: ${i.sku} ${i.region ?? ''}` }, '+'))
    return row
  })
  const note = searching() ? texts.matches(rows.length, found.matches) : `${texts.matches(rows.length, sale.items)}; ${texts.movers}`
  refill(place, rows.length ? table(texts.items, head, body) : make('p', {}, texts.noItems), make('p', { class: 'quiet' }, note))
  place.onclick = (event) => {
    const sort = event.target.closest('[data-sort]')
    if (sort) { order = order === sort.dataset.sort ? '' : sort.dataset.sort; refresh() }
    const stock = event.target.closest('[data-stock]')
    if (stock) askStock(sale, JSON.parse(stock.dataset.stock))
  }
}
