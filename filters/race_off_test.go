//go:build !race

package filters_test

// attackers is how many keys an attacker of a rate has.
const attackers = 5_000_000
