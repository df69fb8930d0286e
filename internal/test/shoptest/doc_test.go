//go:build shops

// Package shoptest_test puts the gate in front of shops that others wrote: the servers of
// examples/vendure and examples/medusa, as npm installs them, with PostgreSQL and the recipes of
// docs/shops.md. `make shops` runs it.
//
// Buyers come over real connections and go from an empty cart to the payment. What was sold is
// read from the shop's own tables.
package shoptest_test
