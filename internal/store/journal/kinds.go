package journal

import (
	"errors"

	"github.com/stockgate/stockgate/internal/store/record"
)

// ErrKind is the error of a movement of which EffectOf knows nothing.
var ErrKind = errors.New("its kind is not known: a newer stockgate has written it, update this one")

// Effect is what movements of a kind do. Those of no effect only tell of something.
type Effect struct {
	// Reservation: the movement is one of a reservation, and its lines are units of it. Enters is the
	// state that it enters; empty: it stays in its own.
	Reservation bool
	Enters      record.State
	// Begins: it may be the first movement of the reservation, and has its record.
	Begins bool
	// Stock: the lines change the stock of their cells.
	Stock bool
	// Returned: the lines leave the order, and come back on sale.
	Returned bool
	// Sale: the sale's file or status changes.
	Sale bool
	// Waitlist: a person enters the waiting list, or leaves it; the lines are what the person waits for.
	Waitlist bool
	// Offers: offers to people who wait stop, or go on.
	Offers bool
	// Opaque: the movement does not say what has changed, so that only the shard itself tells.
	Opaque bool
	// onSale is what it does to the units of its lines: 1 puts them back on sale (a negative number takes
	// them away), -1 sells them, 0 neither.
	onSale int64
}

// kinds are all kinds of movements, in the order in which the documentation has them.
var kinds = []struct {
	name   string
	effect Effect
}{
	{"held", Effect{Reservation: true, Enters: record.Held, Begins: true}},
	{"in_doubt", Effect{Reservation: true, Enters: record.InDoubt}},
	{"confirmed", Effect{Reservation: true, Enters: record.Confirmed, onSale: -1}},
	{"released", Effect{Reservation: true, Enters: record.Released, onSale: 1}},
	{"expired", Effect{Reservation: true, Enters: record.Expired, onSale: 1}},
	{"unbacked", Effect{Reservation: true, Enters: record.Unbacked}},
	{"extended", Effect{Reservation: true}},
	{"returned", Effect{Reservation: true, Returned: true, onSale: 1}},
	{"recreated", Effect{Reservation: true, Enters: record.Confirmed, Begins: true, onSale: -1}},
	{"adjusted", Effect{Stock: true, onSale: 1}},
	{"loaded", Effect{Stock: true, onSale: 1}},
	{"applied", Effect{Sale: true}},
	{"open", Effect{Sale: true}},
	{"paused", Effect{Sale: true}},
	{"closed", Effect{Sale: true}},
	{"repaired", Effect{Opaque: true}},
	{"rebuilt", Effect{Sale: true}},
	{"entered", Effect{Waitlist: true}},
	{"left", Effect{Waitlist: true}},
	{"offers_paused", Effect{Offers: true}},
	{"offers_resumed", Effect{Offers: true}},
	{"missing", Effect{Opaque: true}},
}

var effects = func() map[string]Effect {
	all := make(map[string]Effect, len(kinds))
	for _, k := range kinds {
		all[k.name] = k.effect
	}
	return all
}()

// EffectOf returns what movements of a kind do. False: the kind is not known, see ErrKind.
func EffectOf(kind string) (Effect, bool) {
	e, ok := effects[kind]
	return e, ok
}

// MovementKinds lists all kinds of movements: the states that a reservation can enter, and what else
// happens to reservations, stock and sales.
func MovementKinds() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}
