// Package identity hashes buyers, idempotency keys and list entries with a secret that all edges of
// one Redis share.
package identity
