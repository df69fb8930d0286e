// A person on the waiting list of a sale: how to enter, what the place says, how to leave, and the order that accepts
// an offer. Nothing here knows of a page.
//
// With a challenge at the edge, `order` of examples/challenge stands in the place of fetch in `send`.

// Refused is an answer of the edge that refuses. reason is one of docs/refusals.md, title the edge's sentence for the
// person.
export class Refused extends Error {
  constructor(reason, title) {
    super(title)
    this.reason = reason
    this.title = title
  }
}

// enter puts the person on the list, and resolves with the place: the URL that tells where the person stands. It is a
// secret. A person who is on the list gets the place that is there.
export async function enter(url, item) {
  const answer = await send(url, item)
  if (!answer.ok) throw await refused(answer)
  return new URL(answer.headers.get('Location'), answer.url).href
}

// order is the ordinary order; with an offer it accepts it. key makes it one order however often it is sent: repeat it
// with the same key until there is an answer. It resolves with the shop's answer.
export async function order(url, item, key) {
  const answer = await send(url, item, { 'Idempotency-Key': key })
  if (answer.headers.has('Stockgate-Refusal')) throw await refused(answer)
  return answer
}

// leave takes the person off the list.
export async function leave(place) {
  const answer = await persist(() => fetch(place, { method: 'DELETE' }))
  if (!answer.ok && answer.status !== 404) throw await refused(answer)
}

// newKey is a key for order.
export const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('')

// watch asks at a place until the person is not on the list any more. told is called with
// { state: 'waiting', place, about, … }, { state: 'offered', quantity, until, ends, … }, { state: 'ended', why }, and
// { state: 'unknown' } where no edge has told this place. ends is when the offer ends by performance.now(): a wrong
// clock of the client does not matter. troubled is called with 'offline' or 'later' while there is no answer, and with
// '' when there is one again.
export function watch(place, told, troubled) {
  let stopped = false
  let wake = () => {}
  let request
  let unsure = 0 // how often the place has said that it is over, and not why

  async function run() {
    for (let failures = 0; !stopped;) {
      const began = performance.now()
      let seconds = Math.min(2 ** failures, 30) * (0.75 + Math.random() / 2)
      try {
        const answer = await ask()
        if (stopped) return
        if (answer.status === 404) return told({ state: 'unknown' })
        if (answer.ok) {
          const news = endsOf(await answer.json())
          failures = 0
          // an edge that has not heard yet of a person who has just entered says the same: only the third time it is so
          unsure = news.state === 'ended' && !news.why ? unsure + 1 : 0
          if (unsure === 0 || unsure > 2) {
            troubled('')
            told(news)
            if (news.state === 'ended') return
          }
          // an edge that has kept the request until there was news wants the next one at once
          if (answer.headers.get('Preference-Applied')?.includes('wait')) seconds = 0
        } else {
          failures++
          troubled('later')
        }
        seconds = Number(answer.headers.get('Retry-After')) || seconds
      } catch {
        if (stopped) return
        failures++
        troubled('offline')
      }
      await pause(Math.max(1000 * seconds, 1000 - (performance.now() - began)))
    }
  }

  // ask is one question. A connection that says nothing for longer than the edge may wait is given up.
  async function ask() {
    request = new AbortController()
    const late = setTimeout(() => request.abort(), 40_000)
    try {
      return await fetch(place, { headers: { Prefer: 'wait=25' }, cache: 'no-store', signal: request.signal })
    } finally {
      clearTimeout(late)
    }
  }

  function pause(ms) {
    return new Promise((resolve) => {
      const over = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(over)
        resolve()
      }
    })
  }

  run()
  return {
    // now asks at once: the client has a connection again, the person looks at the page, an offer may be over.
    now: () => wake(),
    stop() {
      stopped = true
      request?.abort()
      wake()
    },
  }
}

// endsOf adds when an offer ends by the clock of performance.now(). The edge's own time has whole seconds and the
// answer took its way, so that the client counts two seconds less.
function endsOf(news) {
  if (news.until) news.ends = performance.now() + (Date.parse(news.until) - Date.parse(news.now)) - 2000
  return news
}

const send = (url, item, more = {}) => persist(() => fetch(url, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json', Accept: 'application/json', ...more },
  body: JSON.stringify(item),
}))

// refused reads a refusal.
async function refused(answer) {
  const document = await answer.json().catch(() => ({}))
  return new Refused(answer.headers.get('Stockgate-Refusal') ?? '', document.title ?? String(answer.status))
}

const tries = 6

// persist repeats a request until there is an answer that says more than "try again". All requests here have the same
// effect when they are repeated.
async function persist(request) {
  for (let n = 1; ; n++) {
    let answer
    try {
      answer = await request()
      const reason = answer.headers.get('Stockgate-Refusal')
      const again = [502, 503, 504].includes(answer.status) && (reason === null || reason === 'unavailable')
      if (!again || n === tries) return answer
    } catch (error) {
      if (n === tries) throw error
    }
    const seconds = Number(answer?.headers.get('Retry-After')) || Math.min(2 ** (n - 1), 10)
    await new Promise((resolve) => setTimeout(resolve, 1000 * (seconds * (0.75 + Math.random() / 2))))
  }
}
