// Package challenge asks clients for a proof of work when too many attempts come at once.
//
// It keeps no record of the tasks that it hands out: a task follows from a key, what it is
// bound to, and the minute. Every edge with the same key accepts what another one has asked for.
//
// The work is that of hashcash (Back, 2002), in four steps instead of one: the time that a
// client needs varies half as much, and no client is four times as unlucky as another.
package challenge
