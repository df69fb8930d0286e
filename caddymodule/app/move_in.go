package app

import (
	"context"
	"errors"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/internal/sale"
)

// MoveInModule is the module stockgate.move_in: it reads what a shop's own script has kept in
// Redis.
type MoveInModule interface {
	// Open makes the source of a sale file, whose addresses are without placeholders. It does not
	// connect.
	Open(from sale.MoveFrom) (MoveInSource, error)
}

// MoveInSource is a shop's Redis, as a sale file names its keys.
type MoveInSource interface {
	// Look reads everything once, and says what the sale would load.
	Look(ctx context.Context) (*sale.MoveSeen, *sale.MovedStock, error)
	// Each reads the purchases again, up to most at a time. It fails if they, or the stock, are not
	// what Look has read.
	Each(ctx context.Context, most int, give func([]sale.MovePurchase) error) error
	// Close ends the connections.
	Close()
}

const moveInModule = "stockgate.move_in"

// OpenMoveIn opens the source of a sale file with the module of this program.
func OpenMoveIn(from sale.MoveFrom) (MoveInSource, error) {
	info, err := caddy.GetModule(moveInModule)
	if err != nil {
		return nil, errors.New("this Caddy was built without moving in: build it with github.com/stockgate/stockgate/caddymodule/movein, or write `stock` into the items")
	}
	return info.New().(MoveInModule).Open(from)
}
