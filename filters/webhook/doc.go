// Package webhook verifies the signatures of webhooks that payment providers send, over the
// bytes of the body as they came, in constant time.
//
// A [Description] says which parts are signed, with which algorithm, and where the signature is. All
// but one scheme are descriptions; [Presets] has the providers', from their documentation:
//
//   - Stripe: header Stripe-Signature, "t=<seconds>,v1=<hex>,…": HMAC-SHA256 of "<t>.<body>" with
//     the endpoint's secret as it is written, https://docs.stripe.com/webhooks#verify-manually
//   - Standard Webhooks: headers webhook-id, webhook-timestamp and webhook-signature,
//     "v1,<base64> …": HMAC-SHA256 of "<id>.<timestamp>.<body>" with the secret behind whsec_, in
//     base64, https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
//   - Paddle: header Paddle-Signature, "ts=<seconds>;h1=<hex>": HMAC-SHA256 of "<ts>:<body>"
//   - Square: HMAC-SHA256 of the endpoint's URL and the body, in base64
//   - Razorpay and GoCardless: HMAC-SHA256 of the body in hex; WooCommerce: in base64
//   - Xendit: a secret in a header
//   - HMAC: one header with the HMAC of the body, in hex or base64, perhaps behind "sha256="
//
// Adyen signs values in the document: additionalData.hmacSignature of each item of the notification,
// base64, is HMAC-SHA256 of eight of its fields joined by colons, with a key in hex,
// https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures
//
// PayPal signs "<id>|<time>|<id of the webhook>|<CRC-32 of the body>" with RSA and SHA-256, and names the
// certificate by its URL. This package fetches nothing: a [Delivery] has the function that does.
//
// A time that is signed must be within a tolerance of now, before or after it. A notification of
// a scheme without one can be sent again by anyone who has seen it.
package webhook
