// Package ledgertest has the tests that every driver of the ledger must pass, and
// random histories of the model as journals for them.
package ledgertest
