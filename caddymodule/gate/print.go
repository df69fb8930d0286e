package gate

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// prints are what orders of a gate that wait are known by. Gates with the same print can send each
// other's orders: they have the same name, the same hosts and the same option sale, whatever else was
// changed by a reload or is different at another edge. config is the print of all that the gate's
// configuration says, and reads the one by which gates of one order print know that they read orders the same; empty: there is no
// lookup.
type prints struct {
	order  string
	config string
	reads  string
}

// orderPrint is the print under which the gate's orders wait.
func (g *Gate) orderPrint() string { return g.prints.order }

// printOrder sets orderPrint while the gate is provisioned.
func (g *Gate) printOrder() {
	hosts := slices.Sorted(slices.Values(g.Hosts()))
	g.prints.order = printOf("gate", strings.Join(slices.Compact(hosts), " "), g.Name, strings.Join(g.Sale, " "))
	if g.prints.reads != "" {
		g.prints.reads = printOf(g.prints.order, g.prints.reads)
	}
}

// differsFrom reports whether two gates have one line of orders, and the options of one of them only.
func (p *prints) differsFrom(other *prints) bool {
	return p.config != "" && other.config != "" && p.order == other.order && p.config != other.config
}

const sharedQueue = "has a queue, and another gate with a queue that differs has the same name, hosts and sale: orders that wait for one of them are sent by the one that comes last, " +
	"at its pace, and are skipped where it reads another order in the request; give each a name of its own, as in `stockgate @order main { … }`"

// print makes the prints of the options, before defaults are filled in. Where no order waits there are none.
func (g *Gate) print() (err error) {
	if g.Queue == nil {
		return nil
	}
	if g.prints.config, err = configPrint(g); err == nil && g.Lookup != nil {
		g.prints.reads, err = readsPrint(g)
	}
	return err
}

// configPrint is the print of a configuration. Edges of an older version know orders
// by it.
func configPrint(g *Gate) (string, error) {
	text, err := json.Marshal(g)
	return printOf(string(text)), err
}

func printOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// readsPrint is the print of the options that say what an order is.
func readsPrint(g *Gate) (string, error) {
	l := g.Lookup
	text, err := json.Marshal([]any{g.Options, g.Sale, g.JWT, g.Buyer, g.Identities, g.Region, g.Lines, g.LinesFrom, g.OtherItems, g.Ref, l.Method, l.URL, l.Body})
	return printOf(string(text)), err
}
