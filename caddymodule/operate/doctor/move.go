package doctor

import (
	"strings"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// move examines whether the stock is here, and which sales are frozen.
func (d *examination) move(frozen []string) {
	ctx, cancel := d.call()
	defer cancel()
	m, err := d.runtime.Client().Move(ctx)
	switch {
	case err != nil:
		d.Add(adminapi.LevelError, "move", "whether the stock was moved cannot be read: %v", err)
	case m != nil && m.Stage == shard.Left:
		d.Add(adminapi.LevelError, "move", "the stock has left for %s, at %s, by %s, and nothing is sold here: write that into the Caddyfile in the place of this one, and reload", m.Where, adminapi.LocalTime(m.At), m.By)
	case m != nil && m.Stage == shard.Leaving:
		d.Add(adminapi.LevelError, "move", "a move of the stock to %s, begun at %s by %s, has not finished, and nothing is sold: while none is under way, run it again, or let the stock stay with 'caddy stockgate move --undo'",
			m.Where, adminapi.LocalTime(m.At), m.By)
	case m != nil && m.Stage == shard.Coming:
		d.Add(adminapi.LevelError, "move", "a move of the stock from %s to here has not finished, and nothing is sold here: run it again at the edge there", m.Where)
	case len(frozen) > 0:
		d.Add(adminapi.LevelError, "move", "a move of the stock was given up, and %s still sells nothing: run 'caddy stockgate move --undo'", strings.Join(frozen, ", "))
	}
}
