// order is fetch for an order that may have to wait for the shop. It resolves with the shop's
// own answer, or with the refusal. told(place) is called with what the edge says meanwhile:
// { state: 'waiting', place, about, still } or { state: 'at_shop' }. It throws a NotOrdered
// when the order left the line without an answer of the shop.
//
// Requests that get no answer are repeated under one idempotency key: the order is made once.
// A second order needs a second call.
export async function order(url, init = {}, told = () => {}, signal) {
  const headers = new Headers(init.headers)
  if (!headers.has('Idempotency-Key')) headers.set('Idempotency-Key', crypto.randomUUID())
  headers.set('Prefer', 'respond-async') // a place at once, instead of an open request
  const answer = await persist(() => fetch(url, { ...init, headers, signal }), signal)
  const at = answer.headers.get('Location')
  const place = answer.status === 202 && at && await placeIn(answer)
  return place ? follow(new URL(at, answer.url), place, told, signal) : answer
}

// cancel takes an order out of the line. It resolves with false if that is too late: the shop
// has the order, or has answered. at is place.at, as told gets it.
export async function cancel(at) {
  const answer = await persist(() => fetch(at, { method: 'DELETE' }))
  return answer.ok
}

// NotOrdered says that the order ended without an answer of the shop that could be shown. state
// is released or expired: there is no order; in_doubt: the shop has to find out; confirmed: it
// is ordered, and the shop's answer is not kept any more. reason says why an order was released
// whose cart was changed: cart_changed, no_cart or no_buyer.
export class NotOrdered extends Error {
  constructor({ state, reason }) {
    super(`the order is ${state}`)
    this.state = state
    this.reason = reason
  }
}

async function follow(at, place, told, signal) {
  for (;;) {
    told({ ...place, at: at.href })
    // the edge answers when there is news, or after five seconds
    const answer = await persist(() => fetch(at, { headers: { Prefer: 'wait=5' }, cache: 'no-store', signal }), signal)
    place = answer.status === 200 && await placeIn(answer)
    if (!place) return answer
    if (place.state !== 'waiting' && place.state !== 'at_shop') throw new NotOrdered(place)
  }
}

// placeIn reads where the order stands; null: it is the shop's own answer.
async function placeIn(answer) {
  return answer.headers.has('Stockgate-Queue') ? answer.json() : null
}

const tries = 8

// persist repeats a request until there is an answer that says more than "try again".
async function persist(request, signal) {
  for (let n = 1; ; n++) {
    let answer
    try {
      answer = await request()
      const refusal = answer.headers.get('Stockgate-Refusal')
      const again = [502, 503, 504].includes(answer.status) && (refusal === null || refusal === 'unavailable')
      if (!again || n === tries) return answer
    } catch (error) {
      if (signal?.aborted || n === tries) throw error
    }
    const seconds = Number(answer?.headers.get('Retry-After')) || Math.min(2 ** (n - 1), 10)
    await new Promise((resolve) => setTimeout(resolve, 1000 * (seconds * (0.75 + Math.random() / 2))))
    signal?.throwIfAborted()
  }
}
