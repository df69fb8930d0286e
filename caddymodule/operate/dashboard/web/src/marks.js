// Marks are what operators did and what failed, in the curves.
import { texts } from './texts.js'

// marksOf returns [{at, until, sign, text}], times in ms; until: it lasted, or null: it lasts.
export const marksOf = (sale) => {
  if (!sale) return []
  const acts = sale.log.filter((a) => texts.signs[a.kind]).map((a) => ({ at: a.at, sign: texts.signs[a.kind], text: `${texts.kinds[a.kind]} ${texts.logUnits(a)}` }))
  const failures = sale.failures.map((f) => ({ at: f.at, until: f.until ?? null, sign: texts.signs[f.what], text: texts.failures[f.what](f.edge), failure: true }))
  return [...acts, ...failures]
}

// drawMarks draws them into a chart: a line and a sign for an act, a shade for as long as a failure lasts.
export const drawMarks = (plot, marks, colours) => {
  const { ctx, bbox } = plot
  const [from, to] = [plot.scales.x.min * 1000, plot.scales.x.max * 1000]
  const place = (ms) => Math.round(plot.valToPos(Math.min(Math.max(ms, from), to) / 1000, 'x', true))
  ctx.save()
  ctx.font = `${Math.round(12 * devicePixelRatio)}px system-ui, sans-serif`
  ctx.textAlign = 'center'
  for (const m of marks) {
    const end = m.until === undefined ? m.at : m.until ?? to
    if (end < from || m.at > to) continue
    const x = place(m.at)
    if (m.failure) {
      ctx.globalAlpha = 0.18
      ctx.fillStyle = colours.bad
      ctx.fillRect(x, bbox.top, Math.max(2, place(end) - x), bbox.height)
      ctx.globalAlpha = 1
    }
    ctx.strokeStyle = ctx.fillStyle = m.failure ? colours.bad : colours.text
    ctx.lineWidth = devicePixelRatio
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio])
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
    ctx.fillText(m.sign, Math.min(Math.max(x, bbox.left + 8), bbox.left + bbox.width - 8), bbox.top - 3 * devicePixelRatio)
  }
  ctx.restore()
}
