import { askFile, askMany, askOffers, askOne, askStatus } from './acts.js'
import { banner } from './banner.js'
import { Chart } from './charts.js'
import { by, make, refill, say, table } from './dom.js'
import { bytes, clock, count, measure, moment, pace, share, span, tellIn, zone } from './format.js'
import { find, show, showRegions } from './items.js'
import { marksOf } from './marks.js'
import { showActs } from './planned.js'
import { Points } from './points.js'
import { Steps } from './steps.js'
import { language, texts } from './texts.js'

const staleAfter = 1500
const runbook = 'https://github.com/stockgate/stockgate/blob/main/docs/runbook.md#the-doctor'

document.documentElement.lang = language
for (const element of document.querySelectorAll('[data-text]')) element.textContent = texts[element.dataset.text]
for (const element of document.querySelectorAll('[data-label]')) element.setAttribute('aria-label', texts[element.dataset.label])
for (const element of document.querySelectorAll('[data-placeholder]')) element.placeholder = texts[element.dataset.placeholder]

const wanted = () => new URLSearchParams(location.search).get('sale') ?? ''
const want = (id) => history.replaceState(null, '', `?sale=${encodeURIComponent(id)}`)
let points = new Points()
let sale = ''      // whose points these are
let acts = []
let user = ''
let frame = null
let received = 0   // when, by performance.now()
let seconds = 600
let source = null
const rendering = new Steps()
const drawing = new Steps()

const charts = {
  stock: new Chart(by('stockChart'), {
    title: texts.chartOf.stock, stacked: true,
    series: ['sold', 'in_doubt', 'held', 'available'].map((name) => ({ label: texts[name], colour: `--${name}` })),
  }),
  attempts: new Chart(by('attemptChart'), {
    title: texts.chartOf.attempts, stacked: true,
    series: texts.classes.map((label, i) => ({ label, colour: `--class${i}` })),
  }),
  latency: new Chart(by('latencyChart'), {
    title: texts.chartOf.latency, format: measure,
    series: [{ label: texts.p50Name, colour: '--p50' }, { label: texts.p99Name, colour: '--p99' }],
  }),
}

// The choice of how much time the charts show.
by('stockChart').prepend(make('fieldset', { class: 'spans' }, make('legend', { class: 'unseen' }, texts.span), Object.entries(texts.spans).map(([value, label]) => make('label', {},
  make('input', { type: 'radio', name: 'span', value, checked: Number(value) === seconds, onchange: () => { seconds = Number(value); draw() } }), make('span', {}, label)))))

const draw = () => {
  const columns = points.within(seconds)
  if (!columns.length) return
  const [times, ...rest] = columns
  drawing.run([
    () => charts.stock.draw([times, ...rest.slice(0, 4)], marksOf(frame?.sale)),
    () => charts.attempts.draw([times, ...rest.slice(4, 11)], marksOf(frame?.sale)),
    () => charts.latency.draw([times, ...rest.slice(11, 13)], marksOf(frame?.sale)),
  ])
}

// connect opens the stream. A browser opens it again by itself, unless the edge refuses it.
const connect = () => {
  source?.close()
  source = new EventSource(`events?sale=${encodeURIComponent(wanted() || sale)}`)
  source.addEventListener('hello', (event) => {
    const hello = JSON.parse(event.data)
    if (hello.sale_id && hello.sale_id !== sale) points = new Points()
    if (hello.sale_id) sale = hello.sale_id
    if (hello.sale_id && !wanted()) want(sale) // the page stays with it, also when it is loaded again
    acts = hello.acts
    user = hello.user
    points.take(hello.history)
    draw()
  })
  source.addEventListener('state', (event) => {
    frame = JSON.parse(event.data)
    received = performance.now()
    if (frame.sale && frame.sale.id !== sale) { sale = frame.sale.id; points = new Points(); connect(); return }
    render()
    if (frame.point && points.add(frame.point)) draw()
  })
  source.addEventListener('error', () => { if (source.readyState === EventSource.CLOSED) setTimeout(connect, 1000) })
}

// age is how old the numbers of the stock are, in ms.
const age = () => {
  if (!frame) return null
  const waited = performance.now() - received
  return frame.sale?.read_at ? frame.now - frame.sale.read_at + waited : waited
}

const tellAge = () => {
  const old = age()
  const stale = old !== null && old > staleAfter
  document.body.classList.toggle('stale', stale)
  say(by('age'), old === null ? texts.connecting : stale ? texts.stale(clock(Date.now() - old)) : texts.live(span(old)))
  by('age').title = stale ? texts.staleWhy[performance.now() - received > staleAfter ? 'stream' : 'redis'] : ''
}
setInterval(tellAge, 250)

const cells = (place, pairs) => refill(place, pairs.flatMap(([name, value, colour]) => [
  make('dt', {}, colour ? make('i', { class: `swatch ${colour}` }) : null, name), make('dd', {}, value)]))

const render = () => {
  const { sale: s, edge } = frame
  tellIn(s?.timezone ?? 'UTC')
  by('board').hidden = !s
  by('empty').hidden = Boolean(s)
  tellAge()
  const foot = () => say(by('foot'), [texts.foot(edge.viewers), acts.length ? texts.user(user) : texts.readOnly].join(' · '))
  const parts = [() => banner(frame), vitals, alarms, choose, foot]
  if (!s) { rendering.run([...parts, empty]); return }
  const sells = s.state === 'on_sale' && (edge.ready || frame.attempts.edges.some((e) => e.live > 0 && e.sells && !e.here))
  rendering.run([() => head(s), () => stock(s), attempts, ...parts,
    () => show(s, sells, acts.includes('stock'), async () => { await find(sale); render() }), () => showRegions(s, sells), () => waitlist(s), () => questions(s), () => showActs(s), refusals, edges, () => log(s), servers])
}

const head = (s) => {
  say(by('title'), s.id)
  document.title = `${s.id}: ${count(s.stock[4])} / ${count(s.stock[0])} · Stockgate`
  const stopped = s.state === 'on_sale' && !frame.edge.ready // other edges may sell it
  by('state').className = `state ${stopped ? 'stopped' : s.state}`
  say(by('state'), stopped ? texts.onSaleElsewhere : texts.states[s.state])
  const when = s.sale_now < s.starts_at ? texts.starts(moment(s.starts_at), span(s.starts_at - s.sale_now))
    : s.sale_now < s.ends_at ? `${texts.since(moment(s.starts_at))} · ${texts.ends(moment(s.ends_at), span(s.ends_at - s.sale_now))}` : texts.ended(moment(s.ends_at))
  say(by('window'), `${when} · ${texts.timesIn(zone())}`)
  by('report').href = `report?sale=${encodeURIComponent(s.id)}`
}

const vitals = () => {
  const { edge, redis, journal, store } = frame
  const list = [[edge.edges > 0 ? texts.edges(edge.edges) : texts.oneEdge, edge.ready]]
  if (edge.silent > 0) list.push([texts.silent(edge.silent), false])
  if (!edge.ready) list.push([texts.notSelling, false])
  if (!redis?.length && !edge.ready) list.push([texts.redisAway, false])
  if (store && (!store.up || store.short)) list.push([texts.store(store, bytes, measure), false])
  if (journal.ledger_lag !== null) list.push([texts.ledger(journal.ledger_lag, span(journal.ledger_age * 1000)), journal.ledger_age < 10])
  if (journal.outbox_lag !== null) list.push([texts.outbox(journal.outbox_lag, span(journal.outbox_age * 1000)), journal.outbox_age < 10])
  refill(by('vitals'), list.map(([text, good]) => make('li', { class: good ? 'well' : 'ill' }, text)))
}

// servers are what engineers look at: Redis, and the server of a store
const servers = () => {
  const { edge, redis, store } = frame
  const list = (redis ?? []).map((r) => [`${edge.ready ? `${texts.redisOk(r)} · ` : ''}${texts.redisRole(r)}`, edge.ready])
  if (store) list.push([texts.store(store, bytes, measure), store.up && !store.short])
  refill(by('servers'), list.map(([text, good]) => make('li', { class: good ? 'well' : 'ill' }, text)))
}

// edges lists the edges of the sale, those that are heard first
const edges = () => {
  const list = frame.attempts.edges
  refill(by('edges'), list.length ? table(texts.edgesTitle, [{ label: texts.edge }, { label: texts.state }, { label: texts.heard }, { label: texts.rate, number: true }, { label: texts.count, number: true }],
    list.map((e) => {
      const state = e.live ? (e.sells ? 'sells' : 'idle') : e.silent ? 'silent' : 'stopped'
      return [`${e.name}${e.here ? ` (${texts.here})` : ''}${e.live > 1 ? ` × ${count(e.live)}` : ''}`, make('span', { class: `tag edge-${state}` }, texts.edgeStates[state]),
        e.live ? texts.justNow : moment(e.heard), e.live ? measure(e.per_second) : texts.none, count(e.attempts)]
    })) : make('p', { class: 'quiet' }, texts.noEdges), list.length ? make('p', { class: 'quiet' }, texts.sumsAt(clock(frame.attempts.read_at))) : null)
}

const alarms = () => {
  const list = frame.alarms ?? []
  by('alarms').hidden = list.length === 0
  const line = (a) => make('li', { class: a.level }, make('b', {}, `${texts.levels[a.level]}: `), a.text, ' ',
    make('span', { class: 'quiet' }, texts.alarmSince(moment(a.since))), ' ', make('a', { href: `${runbook}#${a.check}`, rel: 'noreferrer', target: '_blank' }, texts.runbook))
  const errors = list.filter((a) => a.level === 'error')
  const warnings = list.filter((a) => a.level !== 'error')
  refill(by('alarms'), make('h2', { class: 'unseen' }, texts.alarms), errors.length ? make('ul', { class: 'alarm' }, errors.map(line)) : null,
    warnings.length ? make('details', { class: 'warnings', open: by('alarms').querySelector('details')?.open },
      make('summary', {}, texts.warnings(warnings.length, [...new Set(warnings.map((a) => a.check))])), make('ul', { class: 'alarm' }, warnings.map(line))) : null)
}

const choose = () => {
  by('choose').hidden = frame.sales.length < 2
  refill(by('sales'), frame.sales.map((s) => make('option', { value: s.id }, `${s.id} (${texts.states[s.state]})`)))
  if (frame.sale && document.activeElement !== by('sales')) by('sales').value = frame.sale.id
}
by('sales').addEventListener('change', (event) => {
  want(event.target.value)
  sale = ''
  points = new Points()
  connect()
})

const empty = () => {
  by('empty').hidden = false
  const unknown = wanted() && frame.sales.length
  refill(by('empty'), unknown ? [make('p', {}, texts.unknownSale), make('p', {}, make('a', { href: '?' }, texts.firstSale))] : [make('h2', {}, texts.empty), make('p', {}, texts.emptyLead), make('pre', { tabindex: '0' }, texts.emptySteps.join('\n'))])
}

const stock = (s) => {
  const [all, available, held, doubt, sold] = s.stock
  say(by('sold'), count(sold))
  say(by('of'), texts.ofStock(all))
  by('bar').value = all ? sold / all : 0
  cells(by('cells'), [[texts.available, count(available), 'available'], [texts.held, count(held), 'held'], [texts.in_doubt, count(doubt), 'in_doubt'], [texts.sold, count(sold), 'sold']])
  const told = s.sells_out_in !== null ? `${texts.sellsOut(span(s.sells_out_in * 1000))} · ${texts.taken(pace(s.pace))}` : s.sold_out_at ? texts.soldOutAt(clock(s.sold_out_at)) : texts.noPace
  say(by('eta'), s.balanced ? told : texts.unbalanced)
  by('line').hidden = !s.line
  if (s.line) say(by('line'), texts.line(s.line, span(s.line.oldest), measure(s.line.pace)))
  const may = { open: s.status === 'draft' || s.status === 'paused', pause: s.status === 'open', close: s.status === 'open' || s.status === 'paused' }
  refill(by('saleActs'), Object.keys(may).filter((act) => may[act] && acts.includes(act)).map((act) => make('button', { type: 'button', 'data-act': act, 'data-key': act }, texts.act[act])))
  by('saleActs').onclick = ({ target }) => { if (target.dataset.act) askStatus(target.dataset.act, s) }
}

// waitlist shows who waits for units of the sale, and what has become of offers
const waitlist = (s) => {
  const w = s.waitlist
  by('waitlist').hidden = !w
  if (!w) return
  const on = w.waiting + w.offered
  cells(by('people'), [[texts.list.waiting, count(w.waiting)], [texts.list.offered, count(w.offered)], [texts.list.accepted, count(w.accepted)], [texts.list.lapsed, count(w.lapsed)], [texts.list.left, count(w.left)]])
  by('listIs').className = w.full ? 'full' : 'quiet'
  say(by('listIs'), [texts.list.of(on, w.most), w.full ? texts.list.full : '', w.paused ? texts.list.paused(moment(w.paused)) : ''].filter(Boolean).join(' · '))
  const act = w.paused ? 'resume' : 'pause'
  refill(by('offers'), acts.includes('offers') ? make('button', { type: 'button', 'data-offers': act, 'data-key': act }, texts.offers[act]) : null)
  by('offers').onclick = ({ target }) => { if (target.dataset.offers) askOffers(target.dataset.offers, s) }
}

const attempts = () => {
  const { attempts: a, edge, journal, sale: s } = frame
  say(by('perSecond'), count(a.per_second.reduce((sum, n) => sum + n, 0)))
  say(by('memory'), a.memory === null ? texts.noneLeft : texts.fromMemory(share(a.memory)))
  cells(by('classes'), texts.classes.map((name, i) => [name, count(a.per_second[i]), `class${i}`]).filter((_, i) => i < 3 || a.per_second[i] > 0))
  say(by('p99'), measure(a.p99))
  say(by('p50'), a.p50 === null ? '' : texts.p50(measure(a.p50)))
  const oldest = s.questions?.oldest_held ? span(s.sale_now - s.questions.oldest_held) : texts.none
  cells(by('behind'), [[texts.behind.waiting, count(edge.queue.waiting)], [texts.behind.calls, texts.calls(edge.queue)], [texts.behind.oldest, oldest],
    [texts.behind.flight, count(edge.in_flight)], [texts.behind.backlog, count(edge.backlog)], [texts.behind.journal, count(journal.length)]])
}

// how long buyers waited for their answer, those who got the goods and those who did not
const fairness = ({ won, lost }) => [make('h3', {}, texts.fairness), make('p', { class: 'quiet' }, texts.fairnessLead), table(texts.fairness,
  [{ label: texts.fairnessWho }, { label: texts.count, number: true }, { label: texts.fairnessP50, number: true }, { label: texts.fairnessP99, number: true }],
  [[texts.won, won], [texts.lost, lost]].map(([who, w]) => [who, count(w.attempts), measure(w.p50), measure(w.p99)]))]

const ages = (q) => {
  if (!q?.ages.length) return []
  const counted = q.ages.reduce((sum, a) => sum + a.holds, 0)
  return [make('h3', {}, texts.ages), counted < q.held ? make('p', { class: 'quiet' }, texts.agesOf(counted, q.held)) : null, table(texts.ages,
    [{ label: texts.age }, { label: texts.holdsName, number: true }, { label: texts.unitsName, number: true }], q.ages.map((a) => [texts.younger(a.below), count(a.holds), count(a.units)]))]
}

const questions = (s) => {
  const q = s.questions
  refill(by('fromFile'), acts.includes('resolve') ? make('button', { type: 'button', 'data-key': 'file' }, texts.file.button) : null)
  by('fromFile').onclick = ({ target }) => { if (target.dataset.key) askFile(s) }
  if (!q || q.in_doubt === 0 && q.unbacked === 0) {
    refill(by('questions'), make('p', { class: 'quiet' }, q ? texts.noQuestions : texts.none), ...ages(q))
    return
  }
  const may = acts.includes('resolve')
  const buttons = (what, label) => may ? [make('div', { class: 'buttons' }, ['confirm', 'release'].map((to) =>
    make('button', { type: 'button', class: 'small', 'data-to': to, 'data-what': JSON.stringify(what), 'data-key': `${to} ${label}`, 'aria-label': `${texts[to]}: ${label}` }, texts[to])))] : []
  const actsHead = may ? [{ label: texts.acts }] : []
  const old = (ms) => span(Math.floor((s.sale_now - ms) / 1000) * 1000)
  const causes = table(texts.questions, [{ label: texts.cause }, { label: texts.holdsName, number: true }, { label: texts.unitsName, number: true }, { label: texts.oldest, number: true }, ...actsHead],
    q.causes.map((c) => [c.cause, count(c.holds), count(c.units), old(c.oldest), ...buttons(c, c.cause)]))
  const each = table(texts.each, [{ label: texts.reservation }, { label: texts.ref }, { label: texts.cause }, { label: texts.unitsName, number: true }, { label: texts.age, number: true }, ...actsHead],
    q.doubts.map((d) => [d.id, d.ref ?? '', d.cause, count(d.units), old(d.since), ...buttons(d, d.id)]))
  refill(by('questions'), q.unbacked ? make('p', { class: 'bad' }, texts.unbacked(q.unbacked)) : null,
    q.in_doubt ? [make('p', {}, texts.doubtLead), causes, make('details', { open: by('questions').querySelector('details')?.open }, make('summary', {}, texts.each), each)] : null, ...ages(q))
  by('questions').onclick = ({ target }) => {
    if (!target.dataset.to) return
    const what = JSON.parse(target.dataset.what)
    if (what.id) askOne(target.dataset.to, what)
    else askMany(target.dataset.to, s, what)
  }
}

const log = (s) => refill(by('log'), s.log.length ? table(texts.log, [{ label: texts.when }, { label: texts.who }, { label: texts.what }, { label: texts.result }],
  s.log.map((a) => [moment(a.at), a.who, texts.kinds[a.kind] ?? a.kind, texts.logUnits(a)])) : make('p', { class: 'quiet' }, texts.noLog))

const refusals = () => {
  const { total, rate, shadow } = frame.attempts
  refill(by('refusals'), [table(texts.refusals, [{ label: texts.reason }, { label: texts.count, number: true }, { label: texts.rate, number: true }],
    Object.entries(total).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]).map(([name, n]) => [name, count(n), measure(rate[name] ?? 0)])),
  ...fairness(frame.attempts), ...shadowed(shadow ?? [])])
}

// what a gate in shadow would have done; nothing without one
const shadowed = (all) => all.length ? [make('h3', {}, texts.shadow), make('p', { class: 'quiet' }, texts.shadowLead), table(texts.shadow, [{ label: texts.shadowOutcome }, { label: texts.reason }, { label: texts.count, number: true }],
  all.map((s) => [texts.shadowOutcomes[s.outcome] ?? s.outcome, s.reason ?? '', count(s.count)]))] : []

// What the stream does not tell is asked while it is looked at.
setInterval(() => { if (!document.hidden && sale) find(sale) }, 2000)

tellAge()
connect()
