// Package ledger keeps the SQL copy of the journals: what auditors and
// reconciliation read, and what a sale is rebuilt from when Redis is lost.
//
// Redis decides; the ledger remembers. A Drainer copies every movement once, in
// order, and never holds up a sale: when the database is away, the journal waits in
// Redis. The drivers are in packages of their own.
package ledger
