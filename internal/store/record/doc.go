// Package record reads and writes reservations and stock cells as Redis stores them, and has their
// states and the rules for their binding fields.
package record
