// The banner says what must not be overlooked: a gate that is bypassed, a sale that is not sold.
import { by, make, refill } from './dom.js'
import { clock, count, span } from './format.js'
import { texts } from './texts.js'

// since says when and by whom a state was brought about, by the newest entry of the log that brought a state about.
const since = (s, kind) => {
  const last = s.log.find((a) => a.kind === kind)
  return last ? texts.by(clock(last.at), last.who) : ''
}

// shouts are [level, text], the gravest first.
export const shouts = ({ sale: s, edge, attempts, bypassed }) => {
  const all = (bypassed ?? []).map((text) => ['error', `${texts.bypassed} ${text}`])
  const live = attempts.edges.filter((e) => e.live > 0)
  const idle = live.filter((e) => !e.sells && !(e.here && !edge.ready)).map((e) => e.name)
  if (!s) return edge.ready ? all : [...all, ['error', texts.edgeStopped(edge.why)]]
  const others = live.some((e) => e.sells && !e.here)
  if (s.state === 'lost') all.push(['error', texts.lostSale])
  if (s.state === 'on_sale' && !edge.ready) all.push(['error', `${texts.edgeStopped(edge.why)} ${others ? texts.othersSell : ''}`])
  else if (s.state === 'on_sale' && live.length && live.every((e) => !e.sells)) all.push(['error', texts.noneSells])
  else if (idle.length) all.push(['warning', texts.idle(idle)])
  if (s.state === 'paused') all.push(['error', `${texts.paused(count(s.stock[1]))} ${since(s, 'paused')}`])
  if (s.state === 'draft' && s.sale_now >= s.starts_at) all.push(['error', texts.overdue(span(s.sale_now - s.starts_at))])
  if (s.line?.stopped) all.push(['warning', texts.lineStopped(s.line.waiting)])
  if (s.waitlist?.paused) all.push(['warning', `${texts.offersPaused(s.waitlist.waiting)} ${since(s, 'offers_paused')}`])
  return all
}

export const banner = (frame) => {
  const all = shouts(frame)
  by('banner').hidden = all.length === 0
  refill(by('banner'), all.map(([level, text]) => make('p', { class: level }, text)))
}
