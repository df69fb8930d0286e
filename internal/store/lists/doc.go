// Package lists keeps named lists of buyers and addresses in Redis, and follows them on an edge with
// a filter in memory.
package lists
