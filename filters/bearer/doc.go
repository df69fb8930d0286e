// Package bearer verifies the shop's own bearer tokens (JWT, RFC 7519) at the
// edge, so that no attempt costs a call to the shop's authentication.
//
// The keys decide, never the token: each has one algorithm (RFC 8725, section
// 3.1), a fetched set may have public keys only, and keys that come with a token are
// ignored. A token that two parsers could read differently (a claim that appears twice,
// another spelling of the same signature) is not accepted.
//
// Genuine tokens are cached, including those that are not accepted, within a bound that
// no other token can use up. A [Brake] bounds what all other tokens cost.
package bearer
