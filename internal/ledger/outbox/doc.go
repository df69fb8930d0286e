// Package outbox sends every movement of the sales to a receiver over HTTP: at least
// once, in order per sale, signed, whichever edge dies.
//
// Selling never waits for it: while the receiver is down, the journal keeps what it
// does not have yet.
package outbox
