import uPlot from 'uplot'
import { make, say, table } from './dom.js'
import { count, measure, tick, zone } from './format.js'
import { drawMarks } from './marks.js'
import { texts } from './texts.js'

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

// heap returns the sums of columns from below. A gap in one is a gap in all.
const heap = (columns) => {
  const sums = columns.map((column) => column.slice())
  for (let i = 1; i < sums.length; i++) sums[i].forEach((value, at) => { sums[i][at] = value === null || sums[i - 1][at] === null ? null : value + sums[i - 1][at] })
  return sums
}

// Chart is a chart with a legend that tells its numbers, and a table of them behind it.
export class Chart {
  // series are [{label, colour}], the lowest first where they are stacked.
  constructor(place, { title, series, stacked, format = count }) {
    this.series = series
    this.stacked = stacked
    this.format = format
    this.title = title
    this.marks = []
    this.values = series.map(() => make('b', {}, texts.none))
    const legend = make('ul', { class: 'legend' }, series.map((s, i) => make('li', {}, make('i', { class: `swatch ${s.colour.slice(2)}` }), `${s.label} `, this.values[i])))
    this.canvas = make('div', { class: 'plot', role: 'img', 'aria-label': title })
    this.rows = make('div')
    this.details = make('details', { ontoggle: () => this.list() }, make('summary', {}, texts.asTable, make('span', { class: 'unseen' }, `: ${title}`)), this.rows)
    place.append(make('h3', {}, title), legend, this.canvas, this.marked = make('p', { class: 'marked quiet' }), this.details)
    new ResizeObserver(() => this.fit()).observe(this.canvas)
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw(this.columns))
  }

  size() { return { width: Math.max(200, this.canvas.clientWidth), height: this.canvas.clientHeight } }

  fit() { this.plot?.setSize(this.size()) }

  // options are made with the first data and again when the colours change.
  options() {
    const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '12px system-ui, sans-serif' }
    const lines = this.series.map((s) => ({
      label: s.label, stroke: colour(s.colour), width: this.stacked ? 0 : 2, fill: this.stacked ? colour(s.colour) : undefined, points: { show: !this.stacked, size: 3 }, spanGaps: false,
    }))
    return {
      ...this.size(),
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: !this.stacked } },
      scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
      axes: [{ ...axis, values: (_, splits) => splits.map((t) => tick(t * 1000)), space: 90, size: 30, gap: 4 }, { ...axis, size: 58, values: (_, splits) => splits.map((v) => measure(v)) }],
      series: [{}, ...(this.stacked ? lines.toReversed() : lines)],
      padding: [18, null, null, null], // room for the signs of marks
      hooks: {
        setCursor: [(plot) => this.tell(plot.cursor.idx)],
        draw: [(plot) => drawMarks(plot, this.marks, { text: colour('--text'), bad: colour('--bad') })],
      },
    }
  }

  // draw shows columns: times, and a column for each series; and marks, see marks.js.
  draw(columns, marks = this.marks) {
    this.columns = columns
    this.marks = marks
    if (!columns || columns[0].length === 0) return
    const [times, ...rest] = columns
    const data = this.stacked ? [times, ...heap(rest).toReversed()] : columns
    const look = colour('--line')
    if (this.plot && this.look === look) {
      this.plot.setData(data)
    } else {
      this.plot?.destroy()
      this.look = look
      this.plot = new uPlot(this.options(), data, this.canvas)
    }
    this.tell(this.plot.cursor.idx)
    this.list()
  }

  // tell shows the numbers at a point, or the last ones.
  tell(at) {
    if (!this.columns) return
    const last = this.columns[0].length - 1
    this.values.forEach((value, i) => {
      const number = this.columns[i + 1][at ?? last]
      say(value, number === null || number === undefined ? texts.none : this.format(number))
    })
    this.explain((this.columns[0][at ?? last] ?? 0) * 1000, at !== null && at !== undefined)
  }

  // explain says what the marks at a time mean; without a time, the newest.
  explain(ms, chosen) {
    const [times] = this.columns
    const near = (times.at(-1) - times[0]) * 1000 / 40
    const here = this.marks.filter((m) => chosen ? m.at - near <= ms && ms <= (m.until === undefined ? m.at : m.until ?? Infinity) + near : m.at >= times[0] * 1000)
    const newest = here.toSorted((a, b) => b.at - a.at).slice(0, 3)
    say(this.marked, newest.map((m) => `${m.sign} ${tick(m.at)} ${m.text}`).join(' · '))
  }

  // list fills the table, if it is open: twenty points at the most.
  list() {
    if (!this.details.open || !this.columns) return
    const [times] = this.columns
    const step = Math.max(1, Math.ceil(times.length / 20))
    const rows = []
    for (let at = times.length - 1; at >= 0; at -= step) {
      rows.push([tick(times[at] * 1000), ...this.series.map((_, i) => {
        const number = this.columns[i + 1][at]
        return number === null ? texts.none : this.format(number)
      })])
    }
    this.rows.replaceChildren(table(this.title, [{ label: texts.time(zone()) }, ...this.series.map((s) => ({ label: s.label, number: true }))], rows))
  }
}
