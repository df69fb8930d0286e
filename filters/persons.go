package filters

import (
	"context"
	"errors"
	"time"

	"github.com/stockgate/stockgate/filters/list"
)

// Person is what an attempt says about its buyer, in the form that lists use.
type Person struct {
	// IP is the client's address as text; empty or invalid: it is not known.
	IP    string
	Buyer string
	// Identities are phone, email, device and address; others are not looked up.
	Identities map[string]string
}

// personal are the identities that lists know, besides the address and the buyer.
var personal = [...]string{list.Phone, list.Email, list.Device, list.Address}

// Denied reports whether one of the denylists names the person in any way.
//
// An error means that the answer is not known: a list cannot be reached, or the address
// is not known and might be listed. The attempt must not pass then. Together the lookups wait
// for Redis no longer than one may.
func Denied(ctx context.Context, lists []*list.List, p *Person) (bool, error) {
	began := time.Now()
	for _, l := range lists {
		if yes, err := l.Denies(ctx, began, list.IP, p.IP); yes || err != nil {
			return yes, err
		}
		if yes, err := l.Denies(ctx, began, list.Buyer, p.Buyer); yes || err != nil {
			return yes, err
		}
		for _, kind := range personal {
			value := p.Identities[kind]
			if value == "" {
				continue
			}
			if yes, err := l.Denies(ctx, began, kind, value); yes || err != nil {
				return yes, err
			}
		}
	}
	return false, nil
}

// Admitted reports whether one of the allowlists names the person. A list that cannot be
// reached matters only when no other list names the person: then the answer is not
// known, which is an error. A person whose address is not known is not listed by
// address. The lookups wait as those of [Denied] do.
func Admitted(ctx context.Context, lists []*list.List, p *Person) (bool, error) {
	began := time.Now()
	var unknown error
	for _, l := range lists {
		yes, err := admits(ctx, began, l, p)
		if yes {
			return true, nil
		}
		if err != nil {
			unknown = err
		}
	}
	return false, unknown
}

func admits(ctx context.Context, began time.Time, l *list.List, p *Person) (bool, error) {
	if yes, err := l.Admits(ctx, began, list.Buyer, p.Buyer); yes || err != nil {
		return yes, err
	}
	if yes, err := l.Admits(ctx, began, list.IP, p.IP); yes || err != nil && !errors.Is(err, list.ErrAddress) {
		return yes, err
	}
	for _, kind := range personal {
		value := p.Identities[kind]
		if value == "" {
			continue
		}
		if yes, err := l.Admits(ctx, began, kind, value); yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}
