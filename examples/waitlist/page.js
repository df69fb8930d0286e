// The page: what it shows, and what its buttons do.
import { filled, languageOf, texts } from './texts.js'
import { enter, leave, newKey, order, Refused, watch } from './waitlist.js'

const main = document.querySelector('main')
const { sku, order: orderURL, waitlist: listURL } = main.dataset
const language = languageOf()
const text = texts[language]
const find = (selector) => main.querySelector(selector)

// kept is what the page has to know when it is opened again: the place, and the key of the order.
const kept = {
  name: `waitlist:${listURL}:${sku}`,
  read: () => JSON.parse(localStorage.getItem(kept.name) ?? '{}'),
  write: (more) => localStorage.setItem(kept.name, JSON.stringify({ ...kept.read(), ...more })),
  forget: () => localStorage.removeItem(kept.name),
}

// words

document.documentElement.lang = language
document.title = text.title
for (const element of document.querySelectorAll('[data-text]')) element.textContent = text[element.dataset.text]

const unit = (n, name) => new Intl.NumberFormat(language, { style: 'unit', unit: name, unitDisplay: 'long', maximumFractionDigits: 0 }).format(n)

// duration rounds as people do: 50 seconds, 4 minutes, 2 hours.
const duration = (s) => s < 90 ? unit(s, 'second') : s < 5400 ? unit(Math.round(s / 60), 'minute') : unit(Math.round(s / 3600), 'hour')

const clock = (s) => `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`

const timeOf = (date) => new Intl.DateTimeFormat(language, { hour: 'numeric', minute: '2-digit', second: '2-digit' }).format(date)

// put writes a text where it has changed: screen readers read what changes.
function put(element, words) {
  if (element.textContent !== words) element.textContent = words
}

// views

let view = ''

// show shows a view with its sentence. Its first button gets the focus where the last one had it.
function show(name, sentence) {
  const had = main.contains(document.activeElement)
  for (const section of main.querySelectorAll('[data-view]')) section.hidden = section.dataset.view !== name
  put(find('.state'), sentence)
  if (view !== name && had) find(`[data-view="${name}"] button`)?.focus()
  view = main.dataset.state = name
  document.title = name === 'offered' ? `${text.offeredTitle} ${text.title}` : text.title
}

const say = (words) => put(find('.message'), words)

// choose fills the choice of quantities of a view.
function choose(name, max) {
  const select = find(`[data-view="${name}"] .quantity`)
  if (select.options.length !== max) {
    select.replaceChildren(...Array.from({ length: max }, (_, i) => new Option(String(i + 1))))
    select.value = name === 'offered' ? max : Math.min(quantity, max)
  }
  select.closest('label').hidden = max === 1
}

let quantity = 1
const itemOf = (name) => ({ sku, quantity: quantity = Number(find(`[data-view="${name}"] .quantity`).value) || 1 })

function start(sentence = text.start) {
  choose('start', Number(main.dataset.max))
  show('start', sentence)
}

// the place

let watching
let ends // of the offer, by performance.now(); 0: it is over, undefined: there is none, or it does not run

function follow(place) {
  watching?.stop()
  watching = watch(place, told, (trouble) => put(find('.trouble'), text[trouble] ?? ''))
}

// told shows what the place says.
function told(news) {
  ends = news.ends
  switch (news.state) {
    case 'waiting':
      show('waiting', text.waiting)
      put(find('.place'), filled(text.place, { place: new Intl.NumberFormat(language).format(news.place) }))
      put(find('.about'), aboutOf(news))
      break
    case 'offered':
      if (view !== 'offered') navigator.vibrate?.(400)
      choose('offered', news.quantity)
      show('offered', filled(text.offered, { quantity: news.quantity }))
      put(find('.until'), news.until ? filled(text.until, { time: timeOf(new Date(news.until)) }) : text.paused)
      tick()
      break
    case 'unknown': // the sale was deleted, or begins again
      ended('')
      break
    case 'ended':
      if (view !== 'ended') ended(news.why ?? '')
  }
}

// aboutOf is when the turn of a person who waits may come.
function aboutOf({ paused, sold_out: soldOut, about }) {
  if (paused) return text.waitPaused
  if (soldOut) return text.allSold
  return about ? filled(text.about, { time: duration(about) }) : text.aboutUnknown
}

function ended(why, sentence = text.ended[why] ?? text.refused[why] ?? text.ended['']) {
  watching?.stop()
  kept.forget()
  ends = undefined
  put(find('.trouble'), '')
  main.dataset.why = why
  show('ended', sentence)
}

// tick counts an offer down.
function tick() {
  const left = find('.left')
  if (view !== 'offered') return
  left.hidden = ends === undefined
  if (ends === undefined) return put(find('.deadline'), '')
  const seconds = Math.max(0, Math.ceil((ends - performance.now()) / 1000))
  put(left, filled(text.left, { time: clock(seconds) }))
  if (seconds === 0 && ends !== 0) {
    ends = 0 // the edge decides
    watching?.now()
  }
  put(find('.deadline'), seconds === 0 ? text.over : seconds <= 60 ? text.soon : '')
}
setInterval(tick, 250)

addEventListener('online', () => watching?.now())
document.addEventListener('visibilitychange', () => document.hidden || watching?.now())

// buttons

const acts = {
  async order() {
    const item = itemOf(view)
    await buy(item, (reason) => {
      if (reason !== 'all_held' && reason !== 'not_your_turn') return false
      choose('held', Number(main.dataset.max))
      show('held', text.held)
      return true
    })
  },

  async enter() {
    try {
      const place = await enter(listURL, itemOf('held'))
      kept.write({ place, key: newKey() })
      follow(place)
    } catch (error) {
      if (error.reason === 'available') start()
      throw error
    }
  },

  async accept() {
    await buy(itemOf('offered'), (reason) => {
      watching?.now() // what has become of the offer
      return reason === 'all_held' || reason === 'not_your_turn'
    })
  },

  async leave() {
    await leave(kept.read().place)
    ended('left')
  },

  async again() {
    start()
  },
}

// buy orders, once under one key, and shows the shop's answer. instead takes care of a refusal, or returns false.
async function buy(item, instead) {
  const key = kept.read().key ?? newKey()
  kept.write({ key })
  try {
    const answer = await order(orderURL, item, key)
    if (answer.ok) return ended('accepted', text.ordered)
    kept.write({ key: newKey() }) // the shop has decided: another order is a new one
    throw new Refused('', await titleOf(answer))
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    if (!instead(error.reason)) throw error
  }
}

// titleOf is what a shop says that does not take an order.
async function titleOf(answer) {
  const words = (await answer.text()).trim()
  return words && words.length < 300 && !words.startsWith('<') ? words : String(answer.status)
}

main.addEventListener('click', async ({ target }) => {
  const act = target.dataset?.act
  if (!act || main.dataset.busy) return
  main.dataset.busy = act // one at a time
  say(text.moment)
  try {
    await acts[act]()
    say('')
  } catch (error) {
    say(error instanceof Refused ? text.refused[error.reason] ?? error.title : text.noAnswer)
  }
  delete main.dataset.busy
})

const { place } = kept.read()
if (place) {
  show('', text.moment)
  follow(place)
} else start()
