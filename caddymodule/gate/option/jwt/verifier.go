package jwt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/bearer"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// Verifier verifies the tokens of all issuers of a gate. It may be used after Close.
type Verifier struct {
	keys    []string // of the pool; Close empties it
	all     []*pooled
	issuers bearer.Issuers
}

// Open takes a verifier of each issuer from the pool, or makes it. It fetches nothing. Close is called
// even if it fails halfway.
func (cs Configs) Open() (v *Verifier, err error) {
	if err := cs.Check(); err != nil {
		return nil, err
	}
	v = new(Verifier)
	var all []*bearer.Verifier
	for i, c := range cs {
		key, one, err := c.open()
		if err != nil {
			return v, cs.at(i, err)
		}
		v.keys, v.all, all = append(v.keys, key), append(v.all, one), append(all, one.Verifier)
	}
	v.issuers, err = bearer.NewIssuers(all...)
	return v, err
}

// Close releases what Open took from the pool. On a nil Verifier it does nothing.
func (v *Verifier) Close() (err error) {
	if v == nil {
		return nil
	}
	for _, key := range v.keys {
		_, failed := verifiers.Delete(key)
		err = errors.Join(err, failed)
	}
	v.keys = nil
	return err
}

// at says which of several configurations an error is about.
func (cs Configs) at(i int, err error) error {
	if len(cs) == 1 {
		return err
	}
	return fmt.Errorf("number %d of %d: %w", i+1, len(cs), err)
}

// forgedLimit bounds the cost of the forged tokens of one address.
type forgedLimit struct {
	table   *filters.RateTable
	address string
	now     time.Time
}

// tooManyForged is how long an address has to wait.
type tooManyForged time.Duration

func (tooManyForged) Error() string { return "the address sent too many forged tokens" }

func (l *forgedLimit) Allow() error {
	if wait := l.table.Peek(l.now, l.address); wait > 0 {
		return tooManyForged(wait)
	}
	return nil
}

func (l *forgedLimit) Failed() { l.table.Take(l.now, l.address) }

// LimitFor returns the limit of a client's address, or of the /64 of an IPv6 address, over all issuers.
func (v *Verifier) LimitFor(clientIP string, now time.Time) bearer.Brake {
	return &forgedLimit{v.all[0].forged, attempt.Network(clientIP, attempt.DefaultIPv6Prefix), now}
}

// ClaimsOf returns the claims of a token, or the refusal of its attempt.
func (v *Verifier) ClaimsOf(ctx context.Context, token string, limit bearer.Brake) ([]byte, *sale.Refusal) {
	return v.ClaimsAt(ctx, token, limit, time.Now())
}

// ClaimsAt is ClaimsOf for a token that came at that time.
func (v *Verifier) ClaimsAt(ctx context.Context, token string, limit bearer.Brake, at time.Time) ([]byte, *sale.Refusal) {
	claims, err := v.issuers.VerifyAt(ctx, token, limit, at)
	if err == nil {
		return claims, nil
	}
	if invalid, ok := errors.AsType[bearer.Invalid](err); ok {
		return nil, &sale.Refusal{Reason: sale.NoBuyer, Detail: string(invalid)}
	}
	if wait, ok := errors.AsType[tooManyForged](err); ok {
		return nil, &sale.Refusal{Reason: sale.RateLimited, RetryAfter: refuse.WaitSeconds(time.Duration(wait)), Detail: forgedDetail}
	}
	return nil, refuse.Unavailable
}

const forgedDetail = "too many bearer tokens from this address could not be verified"
