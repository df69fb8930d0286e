package edge

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// bindingOf is reservation.BindingOf of the lines as they were ordered: a bundle is not the same as its components.
func bindingOf(secret *identity.Secret, l *Listing, a *sale.Attempt, lines []sale.Line, ttl time.Duration) reservation.Binding {
	return reservation.BindingOf(secret, a, l.Sale.OrderLines(a, lines), ttl)
}

// Lookup returns the reservation to which the attempt's key or ref belongs; nil: there is
// none. It reserves nothing. lines must be those of the attempt as the sale resolved them.
func (e *Edge) Lookup(ctx context.Context, l *Listing, a *sale.Attempt, lines []sale.Line) (*reservation.AlreadyBound, error) {
	secret := e.secret.Load()
	if secret == nil {
		return nil, shard.ErrStarting
	}
	b := bindingOf(secret, l, a, lines, 0)
	words := make([]string, 0, 2*len(lines))
	for _, line := range lines {
		words = append(words, line.Cell(), strconv.FormatInt(line.Quantity, 10))
	}
	shared := 0
	if a.RefShared {
		shared = 1
	}
	op := shard.Op(lua.Lookup, b.Field, b.Print, a.Ref, secret.Identity("buyer", a.Buyer), strings.Join(words, " "), shared)
	r, _, err := e.Store.Do(combine.Within(ctx, e.shard.Timeout()), l.Sale.ID, op)
	if err != nil {
		(*e.metrics.Load()).RedisFailed("reserve")
		return nil, err
	}
	switch r.Code() {
	case lua.OK:
		return nil, nil
	case lua.Bound:
		return reservation.ReadBound(l.Sale.ID, r), nil
	default:
		return nil, fmt.Errorf("%w: lookup gave %q", shard.ErrUnavailable, r.Code())
	}
}
