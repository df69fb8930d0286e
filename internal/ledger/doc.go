// Package ledger keeps the SQL copy of the journals. Auditors and reconciliation read it, and a
// sale is rebuilt from it when Redis is lost.
//
// Redis decides; the ledger records. A Drainer copies every movement once, in order, and never
// delays a sale: while the database is down, the journal waits in Redis. Each driver is a
// package of its own.
package ledger
