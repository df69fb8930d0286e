// Package report makes the report of a sale: what the journal, Redis, the ledger and one
// edge's counters say of it, as one HTML file that needs nothing else.
package report
