// The acts of the sale that are scheduled, and the last ones.
import { by, make, refill, table } from './dom.js'
import { moment, span } from './format.js'
import { texts } from './texts.js'

const state = (s, a) => {
  if (a.done) return a.failed ? make('span', { class: 'bad' }, a.done) : a.done
  if (a.stale) return make('span', { class: 'bad' }, texts.notToCome)
  return a.at > s.sale_now ? texts.toCome(span(Math.floor((a.at - s.sale_now) / 1000) * 1000)) : texts.dueNow
}

export const showActs = (s) => {
  const acts = s.acts ?? []
  by('planned').hidden = acts.length === 0
  refill(by('acts'), acts.length ? table(texts.planned, [{ label: texts.when }, { label: texts.what }, { label: texts.who }, { label: texts.result }],
    acts.map((a) => [moment(a.at), a.what, a.who, state(s, a)])) : null)
}
