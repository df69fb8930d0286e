package adminapi

import (
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
)

const (
	// MaxMoveIn is how many purchases one request enters.
	MaxMoveIn = 1_000
	// MaxPurchaseName is the maximum length of BoughtBefore.Name in bytes.
	MaxPurchaseName = 2_048
)

// MoveIn asks for POST sales/{id}/move_in.
type MoveIn struct {
	Purchases []BoughtBefore `json:"purchases"`
}

// BoughtBefore is a purchase that was made before the sale came here.
type BoughtBefore struct {
	// Name says where it was read, such as a key and a field: the same name is the same purchase.
	Name string `json:"name"`
	// Kind is the kind of identity by which the buyer is known, and Value is the identity as a
	// gate would read it.
	Kind  string `json:"kind"`
	Value string `json:"value"`
	// Orders is how many orders it was.
	Orders int64       `json:"orders"`
	Lines  []sale.Line `json:"lines"`
}

// MovedIn answers a MoveIn: Entered is how many purchases are new.
type MovedIn struct {
	ID      string `json:"id"`
	Entered int64  `json:"entered"`
}

// SaleMovedIn says what a sale has taken over from a script of the shop's own.
type SaleMovedIn struct {
	sale.MovedIn
	// Loaded is what its file has loaded into each cell.
	Loaded map[string]int64 `json:"loaded"`
}

// SaleMirror says how the shop's own Redis follows a sale.
type SaleMirror struct {
	journal.MirrorState
	// Running says that an edge mirrors the sale now.
	Running bool `json:"running"`
}
