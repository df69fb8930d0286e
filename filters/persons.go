package filters

import (
	"context"
	"errors"

	"github.com/stockgate/stockgate/filters/list"
)

// Person is what an attempt says of who makes it, as lists know people.
type Person struct {
	// IP is the client's address as text; empty or no address: nobody knows it.
	IP    string
	Buyer string
	// Identities are phone, device and address; others are not looked up.
	Identities map[string]string
}

// personal are the identities that lists know, besides the address and the buyer.
var personal = [...]string{list.Phone, list.Device, list.Address}

// Denied says whether one of the lists of the unwanted names the person in any way.
//
// An error means that it is not known: a list cannot be asked, or the address is
// not known and might be listed. Then nobody may pass.
func Denied(ctx context.Context, lists []*list.List, p *Person) (bool, error) {
	for _, l := range lists {
		if yes, err := l.Denies(ctx, list.IP, p.IP); yes || err != nil {
			return yes, err
		}
		if yes, err := l.Denies(ctx, list.Buyer, p.Buyer); yes || err != nil {
			return yes, err
		}
		for _, kind := range personal {
			value := p.Identities[kind]
			if value == "" {
				continue
			}
			if yes, err := l.Denies(ctx, kind, value); yes || err != nil {
				return yes, err
			}
		}
	}
	return false, nil
}

// Admitted says whether one of the lists of the welcome names the person. A list
// that cannot be asked matters only when no other one names him: then it is not
// known, which is an error. Who has no known address is not listed by it.
func Admitted(ctx context.Context, lists []*list.List, p *Person) (bool, error) {
	var unknown error
	for _, l := range lists {
		yes, err := admits(ctx, l, p)
		if yes {
			return true, nil
		}
		if err != nil {
			unknown = err
		}
	}
	return false, unknown
}

func admits(ctx context.Context, l *list.List, p *Person) (bool, error) {
	if yes, err := l.Admits(ctx, list.Buyer, p.Buyer); yes || err != nil {
		return yes, err
	}
	if yes, err := l.Admits(ctx, list.IP, p.IP); yes || err != nil && !errors.Is(err, list.ErrAddress) {
		return yes, err
	}
	for _, kind := range personal {
		value := p.Identities[kind]
		if value == "" {
			continue
		}
		if yes, err := l.Admits(ctx, kind, value); yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}
