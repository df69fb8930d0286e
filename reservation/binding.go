package reservation

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/lua"
	"github.com/stockgate/stockgate/sale"
)

// Binding keeps a second reservation from being made for the same: as long as its
// reservation is a hold, and under an idempotency key also when it is confirmed.
type Binding struct {
	// Field is what is bound, from Secret.Key or Secret.Single; empty: nothing.
	Field string
	// Print is a hash of what was asked under a key; empty for a single.
	Print string
	// TTL is how long a key stays bound after the reservation is confirmed; never
	// shorter than until the sale ends.
	TTL time.Duration
}

// Key names an idempotency key of a buyer, without telling it.
func (s *Secret) Key(buyer, key string) string {
	var room [identityRoom]byte
	return s.word(keyField, append(appendBuyer(s.begin(room[:0], "key"), buyer), key...))
}

// appendBuyer appends a buyer before something else. The length keeps the one's end
// apart from the other's beginning.
func appendBuyer(b []byte, buyer string) []byte {
	return append(append(strconv.AppendInt(b, int64(len(buyer)), 10), ':'), buyer...)
}

// Single names a purchase without a key: the same buyer and the same lines, in any
// order, give the same name.
func (s *Secret) Single(buyer string, lines []sale.Line) string {
	var room [identityRoom]byte
	b := appendBuyer(s.begin(room[:0], "single"), buyer)
	if len(lines) == 1 {
		b = append(append(b, lines[0].Cell()...), ' ')
		return s.word(singleField, strconv.AppendInt(b, lines[0].Quantity, 10))
	}
	words := make([]string, len(lines))
	for i, l := range lines {
		words[i] = l.Cell() + " " + strconv.FormatInt(l.Quantity, 10)
	}
	slices.Sort(words)
	return s.word(singleField, append(b, strings.Join(words, " ")...))
}

// binding is what an attempt binds.
func binding(secret *Secret, a *sale.Attempt, lines []sale.Line, ttl time.Duration) Binding {
	if a.Key == "" {
		return Binding{Field: secret.Single(a.Buyer, lines)}
	}
	return Binding{Field: secret.Key(a.Buyer, a.Key), Print: a.Print, TTL: ttl}
}

// RefField is the binding of a ref to its buyer, a hash, as in lua/bindings.lua; empty:
// there is no ref.
func RefField(buyer, ref string) string {
	if ref == "" {
		return ""
	}
	return "b|" + buyer + "|" + ref
}

// By what an attempt is bound to another reservation.
const (
	ByKey    = "key"    // its idempotency key
	ByRef    = "ref"    // the shop's own name of the order
	BySingle = "single" // its buyer and lines
)

// Bound is the reservation to which an attempt's key or ref belongs already. It is
// an error so that no caller takes it for a hold.
type Bound struct {
	By, ID string
	State  State
	// Same says that it was made for the same: by a key the same print, by a ref the
	// same buyer and lines, none of which were returned.
	Same                            bool
	Created, Deadline, Exp, Changed time.Time
	Epoch                           int64
	Sale                            string
}

func (b *Bound) Error() string {
	return fmt.Sprintf("the attempt's %s belongs to reservation %s, which is %s", b.By, b.ID, b.State)
}

// bound reads the reply that names another reservation.
func bound(sale string, r reply) *Bound {
	at := func(i int) time.Time { return time.UnixMilli(r.number(i)) }
	return &Bound{
		By: r.word(1), ID: r.word(2), State: State(r.word(3)), Same: r.number(4) == 1,
		Created: at(5), Deadline: at(6), Exp: at(7), Changed: at(8), Epoch: r.number(9), Sale: sale,
	}
}

// Lookup finds the reservation to which the attempt's key or ref belongs, without
// making one; nil: there is none. lines must be those of the attempt as the sale
// resolved them.
func (e *Edge) Lookup(ctx context.Context, l *Listing, a *sale.Attempt, lines []sale.Line) (*Bound, error) {
	secret := e.secret.Load()
	if secret == nil {
		return nil, ErrStarting
	}
	b := binding(secret, a, lines, 0)
	words := make([]string, 0, 2*len(lines))
	for _, line := range lines {
		words = append(words, line.Cell(), strconv.FormatInt(line.Quantity, 10))
	}
	shared := 0
	if a.RefShared {
		shared = 1
	}
	op := operation{"lookup", []any{b.Field, b.Print, a.Ref, secret.Identity("buyer", a.Buyer), strings.Join(words, " "), shared}}
	r, _, err := e.Store.do(within(ctx, e.Store.Timeout()), l.Sale.ID, op)
	if err != nil {
		(*e.metrics.Load()).RedisFailed("reserve")
		return nil, err
	}
	switch r.code() {
	case lua.OK:
		return nil, nil
	case lua.Bound:
		return bound(l.Sale.ID, r), nil
	default:
		return nil, fmt.Errorf("%w: lookup gave %q", ErrUnavailable, r.code())
	}
}

// validRef says whether a ref may be stored; an empty one is none.
func validRef(ref string) bool { return ref == "" || sale.IsName(ref) }
