package sale

import (
	"context"
	"time"
)

// MovedIn says what a sale has taken over from a script of the shop's own.
type MovedIn struct {
	// Purchases is how many purchases were made before, and Units is how many units they have
	// in sum. Each is a confirmed reservation of the sale.
	Purchases int64 `json:"purchases"`
	Units     int64 `json:"units"`
	// Done says that Redis has all of them. Until then the sale does not open.
	Done bool `json:"done,omitempty"`
}

func (m *MovedIn) same(other *MovedIn) bool {
	if m == nil || other == nil {
		return m == other
	}
	return *m == *other
}

// MoveFrom says which keys of a shop's Redis have the stock of a sale, and what buyers have
// bought. Texts are as the file has them: they may hold placeholders.
type MoveFrom struct {
	// Sale is the sale's id.
	Sale string
	// Counted are the SKUs whose units Stock gives, in the order of the file. Listed are all
	// SKUs without regions, with the units that the file loads; 0 for those of Counted.
	Counted []string
	Listed  map[string]int64
	// Bundles are the components of each SKU that is a bundle.
	Bundles map[string][]Component
	// Regional are the SKUs with regions, of which nothing is taken over.
	Regional map[string]bool
	Stock    *StockKeys  // nil: the file has the stock
	Bought   *BoughtKeys // nil: nothing is known of what was bought
}

// SKUs are all SKUs of which purchases are taken over.
func (f *MoveFrom) SKUs() map[string]bool {
	all := make(map[string]bool, len(f.Listed)+len(f.Bundles))
	for sku := range f.Listed {
		all[sku] = true
	}
	for sku := range f.Bundles {
		all[sku] = true
	}
	return all
}

// StockKeys are keys that say how many units are left.
type StockKeys struct {
	// Redis is the address of the shop's Redis. Key is the key of an item, with {sku} in it.
	Redis, Key string
	// Left is the field of a hash with the units that are left. Total and Ordered are the
	// fields with what there was and what is gone; used where Left is empty.
	Left, Total, Ordered string
	// AbsentIsNone: a key that does not exist counts as 0.
	AbsentIsNone bool
	Timeout      time.Duration
}

// BoughtKeys are keys, or a query of a database, that say how much each buyer has bought.
type BoughtKeys struct {
	Redis, Key string
	// DSN is the address of the database, and Query gives a row for each purchase, instead of Redis and what keys have.
	// Query is empty: keys say it.
	DSN, Query string
	// Rows runs Query each time it is called. The caller that opens the source sets it.
	Rows BoughtRows
	// Member is the form of a field of a hash or of a member of a set, Value that of a hash's
	// value, such as {buyer} and {units}.
	Member, Value string
	// Skip is the form of members that are no purchases; empty: there are none.
	Skip string
	// JSON has paths in a value that is JSON, by buyer, units and sku; nil: it is none.
	JSON map[string]string
	// Identity is the kind of identity that {buyer} is.
	Identity string
	// Orders: {units} counts orders of one unit each, else one order has them all.
	Orders bool
	// AbsentIsNone: a key that does not exist, or a query without rows, means that nothing was bought.
	AbsentIsNone bool
	Timeout      time.Duration
}

// BoughtRows runs a query within a time: columns gets the names of its columns, then row each of its rows. An error of
// either ends it.
type BoughtRows func(ctx context.Context, within time.Duration, columns func([]string) error, row func([]any) error) error

// MovedStock is what a shop's keys say.
type MovedStock struct {
	// Stock are the units that the sale loads of each SKU of Counted: those that are left, and
	// those that were bought.
	Stock map[string]int64
	In    MovedIn
}

// MoveSeen is what a shop's keys say, for a report.
type MoveSeen struct {
	Counted []MoveCounted
	// Bought are the units of each SKU that the records have.
	Bought           map[string]int64
	Purchases, Units int64
	// Skipped are records of other items, and records of 0 units.
	Skipped int64
	// Examples are some purchases.
	Examples []MovePurchase
}

// MoveCounted is what a key says of an item.
type MoveCounted struct {
	SKU, Key string
	// Form is what the key is: a string, a hash, a list, a set or a zset; none: it does not
	// exist.
	Form string
	// Left is how many units are left. Ordered is how many a hash says are gone; -1: it says
	// nothing.
	Left, Ordered int64
}

// MovePurchase is one record of a shop's keys: what a buyer has bought of an item.
type MovePurchase struct {
	// Name is where it was read: its key and, in a hash or set, its member.
	Name string
	// Buyer is the identity as the key has it.
	Buyer, SKU    string
	Units, Orders int64
}
