// Package recovery brings the data of a sale in Redis into line with its history:
// Rebuild restores a lost sale from the ledger, Reconcile compares a sale with its
// history and repairs differences.
//
// The history comes from one of:
//
//   - the ledger, and the journal after it
//   - the journal alone, without a ledger
//   - the reservations that Redis has, if the journal's beginning is gone
//
// A sale may go on while it is compared. So a difference found by the first pass is only
// a suspicion. It is examined again, in one call together with the number of the
// journal's newest entry, and compared with the history up to exactly that entry.
package recovery
