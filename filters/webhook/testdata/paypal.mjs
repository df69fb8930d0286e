// Makes paypal.json: a webhook that Node signs as PayPal documents it. Run: node paypal.mjs
import { generateKeyPairSync, sign } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { crc32 } from 'node:zlib'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const webhook = '9XL90610J3647323C'
const id = 'd938e770-8046-11e6-8103-6b62a8a99ac4'
const time = '2026-09-21T22:00:46Z'
const body = '{"event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"custom_id":"SO-é-1","status":"COMPLETED"}}'
const text = Buffer.from([id, time, webhook, crc32(Buffer.from(body))].join('|'))
const signed = (hash) => sign(hash, text, privateKey).toString('base64')

writeFileSync(new URL('paypal.json', import.meta.url), JSON.stringify({
  made_by: 'node:crypto and node:zlib ' + process.version,
  webhook,
  key: publicKey.export({ type: 'spki', format: 'pem' }),
  body,
  sha512: signed('sha512'),
  headers: {
    'Paypal-Transmission-Id': id,
    'Paypal-Transmission-Time': time,
    'Paypal-Transmission-Sig': signed('sha256'),
    'Paypal-Cert-Url': 'https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-a5cafa77',
    'Paypal-Auth-Algo': 'SHA256withRSA',
  },
}, null, 1) + '\n')
