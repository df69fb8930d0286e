package line

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

// PrintOrder makes the print under which the gate's orders wait. Its hosts are known when the gate's server is.
func (u *Usher) PrintOrder() {
	hosts := slices.Sorted(slices.Values(u.Hosts()))
	u.prints.order = printOf("gate", strings.Join(slices.Compact(hosts), " "), u.Name, strings.Join(u.Sale, " "))
	if u.prints.reads != "" {
		u.prints.reads = printOf(u.prints.order, u.prints.reads)
	}
}

// Differs reports whether two gates have one line of orders, and the options of one of them only.
func (u *Usher) Differs(other *Usher) bool {
	p, o := &u.prints, &other.prints
	return p.config != "" && o.config != "" && p.order == o.order && p.config != o.config
}

// SharedQueue is the warning about a gate in whose line another gate with other options has orders too.
const SharedQueue = "has a queue, and another gate with a queue that differs has the same name, hosts and sale: orders that wait for one of them are sent by the one that comes last, " +
	"at its pace, and are skipped where it reads another order in the request; give each a name of its own, as in `stockgate @order main { … }`"

// Print makes the prints of a gate's options, config, before defaults are filled in. Where no order waits there
// are none. Edges of an older version know orders by the print of a configuration.
func (u *Usher) Print(config any) (err error) {
	if u.Terms.Queue == nil {
		return nil
	}
	if u.prints.config, err = jsonPrint(config); err == nil && u.Terms.Lookup != nil {
		u.prints.reads, err = u.readsPrint()
	}
	return err
}

func jsonPrint(options any) (string, error) {
	text, err := json.Marshal(options)
	return printOf(string(text)), err
}

func printOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// readsPrint is the print of the options that say what an order is.
func (u *Usher) readsPrint() (string, error) {
	l := u.Terms.Lookup
	return jsonPrint([]any{u.Options, u.Sale, u.JWT, u.Buyer, u.Identities, u.Region, u.Lines, u.LinesFrom, u.OtherItems, u.Terms.Ref, l.Method, l.URL, l.Body})
}
