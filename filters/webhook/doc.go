// Package webhook verifies the signatures of webhooks that payment providers send, over the
// bytes of the body as they came, in constant time.
//
// The schemes, and where they are specified:
//
//   - Stripe: header Stripe-Signature, "t=<seconds>,v1=<hex>,…": HMAC-SHA256 of "<t>.<body>" with
//     the endpoint's secret as it is written, https://docs.stripe.com/webhooks#verify-manually
//   - Adyen: additionalData.hmacSignature of each item of the notification, base64: HMAC-SHA256 of
//     eight of its fields joined by colons, with a key in hex,
//     https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures
//   - Standard Webhooks: headers webhook-id, webhook-timestamp and webhook-signature,
//     "v1,<base64> …": HMAC-SHA256 of "<id>.<timestamp>.<body>" with the secret behind whsec_, in
//     base64, https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
//   - HMAC: one header with the HMAC of the body, in hex or base64, perhaps behind "sha256="
//
// Stripe and Standard Webhooks sign a time, which must be within a tolerance of now, before or
// after it. Adyen and HMAC do not: a notification of theirs can be sent again by anyone who has
// seen it.
package webhook
