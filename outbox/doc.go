// Package outbox tells a receiver, over HTTP, every movement of the sales: at least
// once, in order per sale, signed, whichever edge dies.
//
// Selling never waits for it: while the receiver is away, the journal keeps what it
// does not have.
package outbox
