// A shop that sells only what is held: it verifies the reservation token with jose,
// writes the order, and says so to the edge.
//
//   STOCKGATE_JWKS_URL   https://shop.example.com/.well-known/jwks.json
//   STOCKGATE_API_URL    http://10.0.0.1:8444/stockgate, where stockgate_api is mounted
//   STOCKGATE_API_KEY    its key
import { createServer } from 'node:http'
import { createRemoteJWKSet, jwtVerify } from 'jose'

const { PORT, STOCKGATE_JWKS_URL, STOCKGATE_API_URL, STOCKGATE_API_KEY } = process.env
const keys = createRemoteJWKSet(new URL(STOCKGATE_JWKS_URL))

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
  const signed = request.headers['stockgate-token'] // two headers come joined by a comma: no token
  if (!signed) throw new Refused(403, 'no reservation token')
  const { payload: claims } = await jwtVerify(signed, keys, {
    algorithms: ['EdDSA'], // never what the token says
    typ: 'stockgate+jwt',
    issuer: 'stockgate',
    audience: 'order-backend',
    requiredClaims: ['sub', 'jti', 'exp', 'sale', 'lines'],
    currentDate: new Date(0), // exp is looked at below
  }).catch((err) => {
    throw new Refused(403, err.message)
  })
  if (claims.sub !== request.headers['x-user-id']) throw new Refused(403, 'the token is for another buyer')
  const [line, ...more] = claims.lines
  const right = more.length === 0 && line.sku === body.sku && line.qty === body.quantity && (!line.region || line.region === body.region)
  if (!right) throw new Refused(403, 'the token holds something else')

  // A genuine token that is late: an order that was written keeps its answer.
  if (!orders.has(claims.jti)) {
    if (claims.exp <= Date.now() / 1000) throw new Refused(403, 'the token has expired')
    orders.set(claims.jti, 'pending')
  }
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
