package journal

import "slices"

// movementKinds are all kinds of movements: the states that a reservation can enter, and what
// else happens to reservations, stock and sales.
var movementKinds = []string{
	"held", "in_doubt", "confirmed", "released", "expired", "unbacked", "extended", "returned", "recreated",
	"adjusted", "loaded", "applied", "open", "paused", "closed", "repaired", "rebuilt", "missing",
}

// MovementKinds lists all kinds of movements.
func MovementKinds() []string { return slices.Clone(movementKinds) }
