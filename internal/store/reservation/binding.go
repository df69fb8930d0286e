package reservation

import (
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Binding prevents a second reservation for the same attempt while the first one is a
// hold, and under an idempotency key also after it is confirmed.
type Binding struct {
	// Field is what is bound, from Secret.Key or Secret.Single; empty: nothing.
	Field string
	// Print is a hash of the request under a key; empty for a single.
	Print string
	// TTL is how long a key stays bound after the reservation is confirmed; never
	// shorter than until the sale ends.
	TTL time.Duration
}

// BindingOf returns what an attempt binds: its idempotency key for ttl, or without a key
// its buyer and lines.
func BindingOf(secret *identity.Secret, a *sale.Attempt, lines []sale.Line, ttl time.Duration) Binding {
	if a.Key == "" {
		return Binding{Field: secret.Single(a.Buyer, lines)}
	}
	return Binding{Field: secret.Key(a.Buyer, a.Key), Print: a.Print, TTL: ttl}
}

// The values of AlreadyBound.By: what binds an attempt to another reservation.
const (
	ByKey    = "key"    // its idempotency key
	ByRef    = "ref"    // the shop's own name of the order
	BySingle = "single" // its buyer and lines
)

// AlreadyBound is the reservation to which an attempt's key or ref belongs already. It is an
// error so that no caller mistakes it for a hold.
type AlreadyBound struct {
	By, ID string
	State  record.State
	// Same says that the reservation was made by the same request: for a key the same
	// print, for a ref the same buyer and lines, none of which were returned.
	Same                            bool
	Created, Deadline, Exp, Changed time.Time
	Epoch                           int64
	Sale                            string
}

func (b *AlreadyBound) Error() string {
	return fmt.Sprintf("the attempt's %s belongs to reservation %s, which is %s", b.By, b.ID, b.State)
}

// ReadBound reads the reply that names another reservation.
func ReadBound(sale string, r shard.Reply) *AlreadyBound {
	at := func(i int) time.Time { return r.Time(i) }
	return &AlreadyBound{
		By: r.Text(1), ID: r.Text(2), State: record.State(r.Text(3)), Same: r.Number(4) == 1,
		Created: at(5), Deadline: at(6), Exp: at(7), Changed: at(8), Epoch: r.Number(9), Sale: sale,
	}
}

// validRef reports whether a ref may be stored; an empty ref is none.
func validRef(ref string) bool { return ref == "" || sale.IsName(ref) }
