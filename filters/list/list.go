package list

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/ipaddr"
)

// ErrAddress reports that the value looked up as an address is none.
var ErrAddress = errors.New("not an address")

// ErrKind reports that lists have no entries of this kind.
var ErrKind = errors.New("no kind of list entries: use buyer, phone, email, address, device, ip or any")

// List is a named list. It is safe for concurrent use, while it changes too.
type List struct{ in members }

// members is what a list has, in canonical form. Text is not empty, an address has
// no zone and is not mapped.
type members interface {
	hasText(ctx context.Context, began time.Time, kind form, value string) (bool, error)
	hasAddr(ctx context.Context, began time.Time, a netip.Addr) (bool, error)
	stats() Stats
}

// Stats says how large a list is.
type Stats struct {
	// Entries is the number of entries; of a list that is kept elsewhere, of those
	// that the filter has taken up, removed ones among them.
	Entries int
	// Filter and Exact are the bytes that the Bloom filter and the entries take.
	Filter, Exact int
}

// Has reports whether an entry of just this kind names the value: for IP, whether an
// address or a prefix contains it. Values are normalised by the caller, as those of
// the list were; space around them does not count.
//
// An error means that the answer is not known: the address is invalid, or the list is
// stored elsewhere and cannot be reached. The attempt must not pass then.
func (l *List) Has(ctx context.Context, kind, value string) (bool, error) {
	return l.has(ctx, time.Now(), kind, value)
}

// has is Has for an attempt whose first lookup began at a time.
func (l *List) has(ctx context.Context, began time.Time, kind, value string) (bool, error) {
	value = strings.TrimSpace(value)
	if kind == IP {
		a, err := netip.ParseAddr(value)
		if err != nil {
			return false, ErrAddress
		}
		return l.hasAddr(ctx, began, a.WithZone("").Unmap())
	}
	f := textForm(kind)
	if f == 0 {
		return false, ErrKind
	}
	if value == "" || len(value) > MaxValue {
		return false, nil // no entry is like this
	}
	return l.in.hasText(ctx, began, f, value)
}

// hasAddr looks for the client that an address stands for, and where that is IPv4 in IPv6, also
// for the address as it is: a prefix of IPv6 may contain it.
func (l *List) hasAddr(ctx context.Context, began time.Time, a netip.Addr) (bool, error) {
	client := ipaddr.Client(a)
	yes, err := l.in.hasAddr(ctx, began, client)
	if yes || err != nil || client == a {
		return yes, err
	}
	return l.in.hasAddr(ctx, began, a)
}

// Denies reports whether a denylist names the value: by an entry of this kind, or by one
// without a kind, which matches a value of every kind. began is when the first lookup of the
// attempt began: all of them together wait no longer for a store than one.
func (l *List) Denies(ctx context.Context, began time.Time, kind, value string) (bool, error) {
	yes, err := l.has(ctx, began, kind, value)
	if yes || err != nil || kind == IP || kind == Any {
		return yes, err
	}
	return l.has(ctx, began, Any, value)
}

// Admits reports whether an allowlist names the value: by an entry of this kind, or by one
// without a kind if the value is the buyer. Everything else in an attempt may be made
// up: giving a listed buyer's name as a phone number must not admit a client. began is as for
// [List.Denies].
func (l *List) Admits(ctx context.Context, began time.Time, kind, value string) (bool, error) {
	yes, err := l.has(ctx, began, kind, value)
	if yes || err != nil || kind != Buyer {
		return yes, err
	}
	return l.has(ctx, began, Any, value)
}

// Stats says how large the list is at present.
func (l *List) Stats() Stats { return l.in.stats() }
