// Verifies what the test says, a JSON line each, with examples/node/stockgate_token.mjs.
import { createInterface } from 'node:readline'
import { Verifier } from '../../examples/node/stockgate_token.mjs'

let now
let verifier
for await (const line of createInterface({ input: process.stdin })) {
  const step = JSON.parse(line)
  now = step.now_ms
  if (step.first) {
    const { audience, issuer, url: jwksUrl, secret, leeway_ms: leeway } = step
    try {
      verifier = new Verifier({ audience, issuer, jwksUrl, secret, leeway, now: () => now })
    } catch (err) {
      console.log(err instanceof TypeError ? '{"reason":"options"}' : err)
      continue
    }
  }
  const { subject, any_subject: anySubject, lines } = step
  const known = step.known && ((jti) => step.known.includes(jti))
  const calls = Array.from({ length: step.times }, () => verifier.verify(step.token, { subject, anySubject, lines, known }))
  const results = await Promise.all(calls)
  const reason = [...new Set(results.map((result) => result.reason))].join('|')
  console.log(JSON.stringify({ reason, id: results[0].claims?.jti ?? '' }))
}
