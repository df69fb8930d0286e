// Verifies reservation tokens of Stockgate. Copy this file into your shop. It needs Node 18 and no package.
//
//   const verifier = new Verifier({ audience: 'order-backend', jwksUrl: 'https://shop.example.com/.well-known/jwks.json' })
//   const { reason, claims } = await verifier.verify(request.headers['stockgate-token'], { subject: buyer, lines: [{ sku: '7', qty: 1 }], known: hasOrder })
//
// The reasons, and what the shop answers to each, are in docs/shop.md.
import { createHash, createHmac, createPublicKey, timingSafeEqual, verify as verifySignature } from 'node:crypto'

const MAX_SIZE = 4096 // of a token
const MAX_SET = 256 << 10 // of a JWKS
const MAX_UNITS = 10n ** 12n
const MAX_DEPTH = 16 // of values that are not known
const [FIRST_INTERVAL, INTERVAL, MAX_AGE] = [1e3, 10e3, 3600e3] // of fetches, in milliseconds

class Refused extends Error {
  constructor(reason = 'malformed', claims = null) {
    super(reason)
    Object.assign(this, { reason, claims })
  }
}

const must = (good, reason, claims) => {
  if (!good) throw new Refused(reason, claims)
}

export class Verifier {
  /**
   * Give jwksUrl, secret (as in `key hmac`) or both. leeway is how many milliseconds after exp a token still counts, at
   * most a minute; keep it below the margin of the edge (1 s). now returns Unix milliseconds.
   */
  constructor({ audience, issuer = 'stockgate', jwksUrl = null, secret = null, leeway = 0, timeout = 5000, now = Date.now }) {
    if (!audience || !(leeway >= 0 && leeway <= 60e3) || !(jwksUrl || secret)) {
      throw new TypeError('give an audience, jwksUrl or secret, and a leeway of 0 to 60000 milliseconds')
    }
    if (secret && (Buffer.byteLength(secret) < 32 || secret.trim() !== secret)) {
      throw new TypeError('the secret has less than 32 bytes, or white space around it')
    }
    if (jwksUrl && !/^https?:\/\//.test(jwksUrl)) throw new TypeError('give a whole http or https URL')
    Object.assign(this, { audience, issuer, leeway, now, secrets: new Map() })
    if (secret) {
      const kid = thumbprint({ k: Buffer.from(secret).toString('base64url'), kty: 'oct' })
      this.secrets.set(kid, { alg: 'HS256', valid: (message, mac) => sameBytes(createHmac('sha256', secret).update(message).digest(), mac) })
    }
    this.remote = jwksUrl && new Remote(jwksUrl, timeout, now)
  }

  /**
   * Returns { reason, claims }: "ok" and the claims, or why the shop must not sell. token is the value of the header
   * Stockgate-Token. subject is the buyer; lines are the order's, null is not compared; known(jti) says, perhaps as a
   * promise, whether the shop has answered that id before.
   */
  async verify(token, { subject = null, anySubject = false, lines = null, known = null } = {}) {
    try {
      const claims = await this.#genuine(token)
      must(subject ? subject === claims.sub : anySubject, 'subject', claims)
      must(lines === null || same(claims.lines, lines), 'lines', claims)
      must(known === null || !(await known(claims.jti)), 'known', claims)
      must(this.now() - this.leeway < claims.exp * 1000, 'expired', claims)
      return { reason: 'ok', claims }
    } catch (err) {
      if (!(err instanceof Refused)) throw err
      return { reason: err.reason, claims: err.claims }
    }
  }

  async #genuine(token) {
    must(token, 'missing')
    must(!token.includes(','), 'repeated')
    must(token.length <= MAX_SIZE)
    const parts = token.split('.')
    must(parts.length === 3)
    const [header, body, signature] = parts.map(decode)
    const valid = await this.#key(read(header))
    must(valid(Buffer.from(`${parts[0]}.${parts[1]}`), signature), 'signature')
    const claims = check(read(body))
    must(claims.iss === this.issuer, 'issuer')
    must(claims.aud === this.audience, 'audience')
    return claims
  }

  async #key(header) {
    const { typ, alg, kid } = need(header, { typ: 'string', alg: 'string', kid: 'string' })
    must(!header.has('crit'))
    must(typ === 'stockgate+jwt', 'type')
    must(alg === 'EdDSA' || alg === 'HS256', 'algorithm')
    const key = this.secrets.get(kid) ?? (this.remote && (await this.remote.find(kid)))
    must(key, 'unknown_key')
    must(key.alg === alg, 'algorithm') // it belongs to the key, the token cannot choose it
    return key.valid
  }
}

/**
 * The keys of the edge: fetched when first needed, again for an unknown key and each hour, at a bounded rate.
 * They stay while the edge is away.
 */
class Remote {
  keys = new Map()
  begun = -Infinity
  fetched = -Infinity
  failed = false
  running = null // one fetch at a time, and all who need it wait for it

  constructor(url, timeout, now) {
    Object.assign(this, { url, timeout, now })
  }

  async find(kid) {
    const known = this.keys.get(kid)
    if (this.#due(known)) this.running = this.#fetch().finally(() => (this.running = null))
    if (known && !this.running) return known
    await this.running
    const key = known ?? this.keys.get(kid)
    must(key || !this.failed, 'keys_unavailable')
    return key
  }

  #due(known) {
    const interval = this.fetched === -Infinity ? FIRST_INTERVAL : INTERVAL
    const now = this.now()
    return !this.running && Math.abs(now - this.begun) >= interval && (!known || Math.abs(now - this.fetched) >= MAX_AGE)
  }

  async #fetch() {
    this.begun = this.now()
    this.failed = true
    try {
      // The URL decides which server is trusted; an answer must not redirect that.
      const answer = await fetch(this.url, { redirect: 'manual', signal: AbortSignal.timeout(this.timeout) })
      if (answer.status !== 200) return void (await answer.body?.cancel())
      const keys = publicKeys(JSON.parse(await contents(answer.body)).keys)
      if (keys.size > 0) Object.assign(this, { keys, fetched: this.begun, failed: false })
    } catch {
      // the keys of the last fetch stay
    }
  }
}

async function contents(body) {
  const chunks = []
  let size = 0
  for await (const chunk of body) {
    if ((size += chunk.length) > MAX_SET) throw new RangeError('the JWKS is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** The Ed25519 keys of a JWKS, by thumbprint; all others are passed over, above all secrets. */
function publicKeys(jwks) {
  const found = new Map()
  for (const { kty, crv, x, use, alg } of jwks.filter((jwk) => jwk)) {
    if (kty !== 'OKP' || crv !== 'Ed25519' || (use && use !== 'sig') || (alg && alg !== 'EdDSA')) continue
    const raw = bytes(x)
    if (raw?.length !== 32) continue
    const key = createPublicKey({ key: { kty, crv, x }, format: 'jwk' })
    found.set(thumbprint({ crv, kty, x }), { alg: 'EdDSA', valid: (message, signature) => verifySignature(null, message, key, signature) })
  }
  return found
}

/** RFC 7638: the kid of a key. The members are in lexical order. */
const thumbprint = (members) => createHash('sha256').update(JSON.stringify(members)).digest('base64url')

const sameBytes = (a, b) => a.length === b.length && timingSafeEqual(a, b)

/** base64url without padding, in the one spelling that the bytes have; null: it is not that. */
function bytes(part) {
  const raw = Buffer.from(String(part), 'base64url')
  return raw.toString('base64url') === part ? raw : null
}

function decode(part) {
  const raw = bytes(part)
  must(raw)
  return raw
}

const [TEXT, WHOLE] = ['string', 'bigint']

function check(members) {
  const claims = need(
    members,
    { iss: TEXT, aud: TEXT, sub: TEXT, jti: TEXT, iat: WHOLE, exp: WHOLE, ep: WHOLE, sale: TEXT, lines: 'object' },
    { ref: TEXT },
  )
  must(Array.isArray(claims.lines) && claims.lines.length > 0)
  must(claims.sub && claims.jti && claims.sale)
  must(claims.iat >= 0n && claims.exp > claims.iat && claims.ep >= 0n)
  const lines = claims.lines.map((line) => {
    must(line instanceof Map)
    const { sku, qty, region = '' } = need(line, { sku: TEXT, qty: WHOLE }, { region: TEXT })
    must(sku && qty >= 1n && qty <= MAX_UNITS)
    return { sku, qty: Number(qty), region }
  })
  return { ...claims, iat: Number(claims.iat), exp: Number(claims.exp), ep: Number(claims.ep), lines }
}

/** Members of these types; what else there is may nest MAX_DEPTH deep. */
function need(members, required, optional = {}) {
  const found = {}
  for (const [name, type] of Object.entries({ ...required, ...optional })) {
    if (name in optional && !members.has(name)) continue
    must(typeof members.get(name) === type)
    found[name] = members.get(name)
  }
  for (const [name, value] of members) must((Object.hasOwn(required, name) && required[name] === 'object') || height(value) <= MAX_DEPTH)
  return found
}

function height(value) {
  const inner = value instanceof Map ? [...value.values()] : Array.isArray(value) ? value : []
  return 1 + Math.max(0, ...inner.map(height))
}

/**
 * Whether the order takes exactly what is held: in any order, equal lines summed. Stock that is held without a region
 * answers for any region.
 */
function same(held, order) {
  const cell = (sku, region) => JSON.stringify([sku, region])
  const left = new Map()
  for (const { sku, qty, region } of held) left.set(cell(sku, region), (left.get(cell(sku, region)) ?? 0) + qty)
  for (const { sku, qty, region } of order) {
    const name = left.has(cell(sku, region ?? '')) ? cell(sku, region ?? '') : cell(sku, '')
    if (!Number.isInteger(qty) || qty < 1 || qty > (left.get(name) ?? 0)) return false
    left.set(name, left.get(name) - qty)
  }
  return [...left.values()].every((qty) => qty === 0)
}

/** An object of I-JSON (RFC 7493): every reader sees the same in it. JSON.parse would take the last of two members. */
function read(raw) {
  let json
  try {
    json = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(raw)
  } catch {
    throw new Refused()
  }
  const reader = new Reader(json)
  const value = reader.value(0)
  must(value instanceof Map && reader.token(/$/y) !== null)
  return value
}

class Reader {
  #json
  #at = 0

  constructor(json) {
    this.#json = json
  }

  /** What matches behind white space; null: nothing does. */
  token(pattern) {
    const space = /[ \t\r\n]*/y
    space.lastIndex = this.#at
    space.test(this.#json)
    pattern.lastIndex = space.lastIndex
    const found = pattern.exec(this.#json)
    if (found) this.#at = pattern.lastIndex
    return found && found[0]
  }

  /** An object is a Map, a whole number of 64 bits a BigInt, any other a Number. */
  value(depth) {
    must(depth < 64)
    if (this.token(/\{/y)) return this.#members(depth)
    if (this.token(/\[/y)) return this.#list(depth)
    const word = this.token(/true|false|null/y)
    if (word) return JSON.parse(word)
    const number = this.token(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y)
    if (!number) return this.#text()
    return /[.eE]/.test(number) || BigInt.asIntN(64, BigInt(number)) !== BigInt(number) ? Number(number) : BigInt(number)
  }

  #members(depth) {
    const members = new Map()
    while (!this.token(/\}/y)) {
      must(members.size === 0 || this.token(/,/y))
      const name = this.#text()
      must(this.token(/:/y) && !members.has(name))
      members.set(name, this.value(depth + 1))
    }
    return members
  }

  #list(depth) {
    const list = []
    while (!this.token(/\]/y)) {
      must(list.length === 0 || this.token(/,/y))
      list.push(this.value(depth + 1))
    }
    return list
  }

  #text() {
    const quoted = this.token(/"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y)
    must(quoted)
    const text = JSON.parse(quoted)
    must(!/[\ud800-\udfff]/u.test(text)) // half of a surrogate pair
    return text
  }
}
