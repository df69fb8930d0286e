package gate

import (
	"fmt"

	"github.com/stockgate/stockgate/sale"
)

// provisionLists finds what deny, allow and other_items need.
func (g *Gate) provisionLists() error {
	if err := g.persons.Open(g.app.NamedLists(), g.Deny, g.Allow); err != nil {
		return err
	}
	switch g.OtherItems {
	case "", "refuse":
	case "pass":
		g.app.WantOthers()
	default:
		return fmt.Errorf("other_items %q: there are refuse and pass", g.OtherItems)
	}
	return nil
}

// isOther says that no sale lists an item of the attempt, and that the gate lets such
// attempts pass. Where it is not known what is listed, nothing is other.
func (g *Gate) isOther(a *sale.Attempt) bool {
	return g.OtherItems == "pass" && g.app.IsOther(a)
}
