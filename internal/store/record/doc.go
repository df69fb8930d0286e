// Package record reads and writes reservations and stock cells as Redis stores them, and has their
// states and the rules for their binding fields.
//
// A program that replays a journal by itself needs these too. A movement with a record also binds guard (where it
// begins with "k|") and ref. Released and expired free both. Confirmed and recreated take them from a reservation that
// is not confirmed; unbacked gets only free ones. Returned units that do not go back on sale are two movements of
// one call: returned, then adjusted with the return's id and a negative quantity. A movement of a state without was and
// with a record begins a reservation; if it is not held, a rebuild has merged it, from available.
package record
