// Package challenge asks clients for a proof of work when too many attempts come at once.
//
// It keeps no record of the tasks that it hands out: a task follows from a key, what it is
// bound to, and the minute. Every edge with the same key accepts solutions of the others'
// tasks.
//
// The work is that of hashcash (Back, 2002), in four steps instead of one: the time
// that clients need varies half as much, and hardly any client needs four times the
// average.
package challenge
