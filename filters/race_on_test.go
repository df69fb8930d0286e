//go:build race

package filters_test

// attackers is how many keys an attacker of a rate has: three times what the table has
// room for. Without the race detector, which makes each of them ten times dearer, make
// test runs it with more.
const attackers = 300_000
