// Package reconcile compares what Redis has of a sale with the history that its
// movements give, and repairs differences.
//
// The history comes from the ledger and from the journal after it; without a ledger,
// from the journal alone; and where the journal's beginning is gone, from the
// reservations that Redis has. The sale may go on meanwhile. So a difference found by
// the first pass is only a suspicion: it is examined again, in one call together with
// the number of the journal's newest entry, and compared with the history up to exactly
// that entry.
package recovery
