package doctor

import (
	"time"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
)

// shadowNotice is how long before a sale opens a gate in shadow is a warning.
const shadowNotice = 24 * time.Hour

// shadow says that a gate, or some of its rates, refuse nothing. With a sale near, that is a
// warning.
func (d *examination) shadow(g *judge.Judge, name string) {
	inShadow, whole := 0, g.InShadow
	for _, r := range g.Rates {
		if r.Shadow {
			inShadow++
		}
	}
	if inShadow > 0 && !whole {
		d.Add(adminapi.LevelOK, "shadow", "%s has %d rates in shadow, which refuse nothing", name, inShadow)
	}
	if !whole {
		return
	}
	near := ""
	for l := range d.runtime.Catalogue().All {
		now := l.Now()
		if l.Status == sale.Open && now.Before(l.Sale.EndsAt) && now.Add(shadowNotice).After(l.Sale.StartsAt) {
			near = l.Sale.ID
		}
	}
	if near == "" {
		d.Add(adminapi.LevelOK, "shadow", "%s is in shadow: it refuses nothing", name)
		return
	}
	d.Add(adminapi.LevelWarning, "shadow", "%s is in shadow and refuses nothing, and %s sells now or opens within a day: remove `shadow` from the gate, and take what the shop sold in shadow from the stock, see `caddy stockgate sale show %s`", name, near, near)
}
