// A shop that sells only what is held: it verifies the reservation token, writes
// the order, and says so to the edge. It needs stockgate_token.mjs.
//
//   STOCKGATE_JWKS_URL   https://shop.example.com/.well-known/jwks.json
//   STOCKGATE_API_URL    http://10.0.0.1:8444/stockgate, where stockgate_api is mounted
//   STOCKGATE_API_KEY    its key
import { createServer } from 'node:http'
import { Verifier } from './stockgate_token.mjs'

const { PORT, STOCKGATE_JWKS_URL, STOCKGATE_API_URL, STOCKGATE_API_KEY } = process.env
const verifier = new Verifier({ audience: 'order-backend', jwksUrl: STOCKGATE_JWKS_URL })

// Stands for a table with a UNIQUE column for the reservation.
const orders = new Map() // reservation → pending, confirmed or refused

class Refused extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

async function order(request) {
  const body = JSON.parse(await read(request))
  const signed = request.headers['stockgate-token']
  const { reason, claims } = await verifier.verify(signed, {
    subject: request.headers['x-user-id'],
    lines: [{ sku: body.sku, qty: body.quantity, region: body.region }],
    known: (jti) => orders.has(jti), // an order that was written keeps its answer
  })
  if (reason === 'ok') orders.set(claims.jti, 'pending')
  else if (reason !== 'known') throw new Refused(reason === 'keys_unavailable' ? 503 : 403, reason)
  if (orders.get(claims.jti) === 'pending') orders.set(claims.jti, await confirm(claims.jti, signed))
  if (orders.get(claims.jti) === 'refused') throw new Refused(409, 'the reservation has ended')
  return claims.jti
}

// confirm tells the edge that the order is written. It may be asked again.
async function confirm(reservation, token) {
  const answer = await fetch(`${STOCKGATE_API_URL}/reservations/${reservation}/confirm`, {
    method: 'POST',
    headers: { authorization: `Bearer ${STOCKGATE_API_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
    signal: AbortSignal.timeout(10_000),
  })
  if (answer.ok) return 'confirmed'
  const { reason } = await answer.json()
  if (answer.status === 409 || reason === 'not_found') return 'refused' // refund_needed: give the money back
  throw new Error(`the edge answers ${answer.status} ${reason}`) // the order stays, to be confirmed later
}

async function read(request) {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) {
    if ((text += chunk).length > 65536) throw new Refused(413, 'too large')
  }
  return text
}

createServer((request, response) => {
  const route = `${request.method} ${request.url}`
  if (route === 'GET /orders') return response.end(JSON.stringify([...orders.keys()]))
  if (route !== 'POST /api/order') return response.writeHead(404).end()
  order(request).then(
    (id) => response.writeHead(201).end(id),
    (err) => response.writeHead(err.status ?? (err instanceof SyntaxError ? 400 : 502)).end(err.message),
  )
}).listen(Number(PORT), '127.0.0.1')
