// Package journal reads the movements of a sale from its stream in Redis, trims the stream, and
// leases it to one outbox at a time.
package journal
