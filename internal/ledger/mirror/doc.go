// Package mirror keeps keys of a shop's own Redis current, for the shop's other readers. It writes
// whole numbers, never differences, and decides nothing by what it finds there.
package mirror
