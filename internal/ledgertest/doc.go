// Package ledgertest is what every driver of the ledger must pass, and the journals
// for it: random histories of the model.
package ledgertest
