//go:build race

package filters_test

// attackers is how many keys an attacker of a rate has: fewer where the race
// detector makes each of them ten times dearer.
const attackers = 1_000_000
