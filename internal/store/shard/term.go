package shard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/lua"
)

// A Term is a time in which a shard has one history, see lua/fence.lua.
type Term struct {
	// Name is "epoch:number:replid:first"; empty: the shard has no fence.
	Name string
	// Number counts the terms of an epoch.
	Number int64
	// Epoch is that of the shard.
	Epoch int64
}

// BegunBy reports whether the server with a master_replid has begun the term.
func (t Term) BegunBy(replid string) bool {
	words := strings.Split(t.Name, ":")
	return len(words) == 4 && words[2] == replid
}

// termOf reads a term's name.
func termOf(name string) Term {
	t := Term{Name: name}
	if epoch, rest, ok := strings.Cut(name, ":"); ok {
		number, _, _ := strings.Cut(rest, ":")
		t.Epoch, _ = strconv.ParseInt(epoch, 10, 64)
		t.Number, _ = strconv.ParseInt(number, 10, 64)
	}
	return t
}

// After reports whether a term follows another one.
func (t Term) After(u Term) bool {
	return t.Epoch > u.Epoch || t.Epoch == u.Epoch && t.Number > u.Number
}

// Known is how far a process has come in a shard's history: what Redis told it in the newest
// term that it knows. With replica_acks, only what the replicas have counts.
type Known struct {
	Term Term
	// Seq is the newest number of the journal.
	Seq int64
}

// Leases keeps this process's leases. See package fence.
type Leases interface {
	// Acquire returns nil once the lease for a sale runs, or is not needed.
	Acquire(ctx context.Context, sale string) error
	// Fenced is called when a sale's shard refuses calls until the edges have said what they know.
	Fenced(sale string)
}

// Lead has Client acquire a lease before it calls for promises about a sale, and believe the
// answers only while the lease runs.
func (s *Client) Lead(l Leases) { s.leases.Store(&l) }

// NeedsLease reports whether the answer to the operation counts only with a lease. A release of what
// the caller alone could send needs none: it need not outlive a failover.
func (op Operation) NeedsLease() bool {
	return op.Lease && !(op.Operation == lua.Release && op.Args[1] == "unsent")
}

// Acquire waits for the lease of a sale.
func (s *Client) Acquire(ctx context.Context, sale string) error {
	l := s.leases.Load()
	if l == nil || passOf(ctx) != "" {
		return nil
	}
	c := s.Clock(sale)
	c.used.Store(c.Mono().UnixNano())
	if c.LeaseRuns() {
		return nil
	}
	return (*l).Acquire(ctx, sale)
}

// AgainUnfenced makes a call, and makes it once more if the shard was fenced and is not after
// the next heartbeat: a server whose master_replid has changed for another reason than a
// promotion or a start refuses one call, and no caller notices.
func (s *Client) AgainUnfenced(ctx context.Context, sale string, call func() ([]Reply, int64, error)) ([]Reply, int64, error) {
	replies, seq, err := call()
	if errors.Is(err, ErrFenced) && s.leases.Load() != nil && s.Acquire(ctx, sale) == nil {
		return call()
	}
	return replies, seq, err
}

// StillLeased returns nil when the answer to a call is a promise: the lease runs, and the shard is in the
// term in which the call was made. An answer that came after the end of the lease counts once a heartbeat is
// answered in that term, as if both had come in the other order: StillLeased waits for that as long as an
// attempt waits for Redis. Else it returns ErrNoLease.
func (s *Client) StillLeased(ctx context.Context, sale string, before ClockMark) error {
	leases := s.leases.Load()
	c := s.Clock(sale)
	if leases == nil || passOf(ctx) != "" || c.Known().Term.Name == "" {
		return nil
	}
	if !c.stillLeased() {
		bounded, cancel := context.WithTimeout(ctx, s.Timeout())
		defer cancel()
		_ = (*leases).Acquire(bounded, sale)
	}
	if !c.stillLeased() || before.term != "" && before.term != c.Known().Term.Name {
		return ErrNoLease
	}
	return nil
}

type passKey struct{}

// WithPass lets calls through a fence, with what lua/fence.lua calls fence.
func WithPass(ctx context.Context, fence string) context.Context {
	return context.WithValue(ctx, passKey{}, "pass:"+fence)
}

func passOf(ctx context.Context) string {
	pass, _ := ctx.Value(passKey{}).(string)
	return pass
}

// History returns what a call says of this process's history: the arguments term and known of
// lua/shard.lua.
func (s *Client) History(ctx context.Context, sale string) (term string, known int64) {
	if pass := passOf(ctx); pass != "" {
		return pass, 0
	}
	if s.Options.NoFence {
		return "", 0
	}
	k := s.Clock(sale).Known()
	return k.Term.Name, k.Seq
}

// lease is one on the shard with an epoch; 0: the shard has none, or no fence.
type lease struct {
	until time.Time
	epoch int64
	// over: it was one on another shard, and counts only for calls that were made before that was
	// known.
	over bool
}

// Grant lets a lease on the shard of a term run until a moment of this process's monotonic clock.
func (c *Clock) Grant(t Term, until time.Time) { c.lease.Store(&lease{until: until, epoch: t.Epoch}) }

// EndLease ends the lease.
func (c *Clock) EndLease() { c.lease.Store(nil) }

// LeaseRuns reports whether a call may be made now that needs the lease.
func (c *Clock) LeaseRuns() bool {
	l := c.lease.Load()
	return l != nil && !l.over && c.Mono().Before(l.until)
}

// stillLeased reports whether the answer to such a call counts now.
func (c *Clock) stillLeased() bool {
	l := c.lease.Load()
	return l != nil && c.Mono().Before(l.until)
}

// Known is how far this process has come.
func (c *Clock) Known() Known {
	if k := c.known.Load(); k != nil {
		return *k
	}
	return Known{}
}

// hear takes in the term and the number of a reply. It returns false when the reply is of
// another history than the one that this process knows: what it says is no promise.
func (c *Clock) hear(m ClockMark, name string, seq int64, promised bool) bool {
	if name == "" {
		return true
	}
	var t Term
	for {
		old := c.known.Load()
		switch {
		case old != nil && old.Term.Name == name: // as nearly always
			t = old.Term
		case t.Name == "":
			t = termOf(name)
		}
		next := Known{Term: t}
		if old != nil {
			switch {
			case t.Name == old.Term.Name:
				next.Seq = old.Seq
			case !t.After(old.Term):
				return false
			case t.Epoch == old.Term.Epoch:
				next.Seq = old.Seq
			}
		}
		if promised && m.Life == c.life.Load() {
			next.Seq = max(next.Seq, seq)
		}
		if old != nil && next == *old || c.known.CompareAndSwap(old, &next) {
			return true
		}
	}
}

// LastUsed is when a call needed the lease.
func (c *Clock) LastUsed() time.Time { return time.Unix(0, c.used.Load()) }

// Adopt goes over to the shard's history: what this process knew beyond it is lost.
func (c *Clock) Adopt(name string, seq int64) { c.known.Store(&Known{termOf(name), seq}) }

// Beat is what an edge says to lua/fence.lua.
type Beat struct {
	// Edge is its id.
	Edge string
	// Does is one of the words in lua/fence.lua.
	Does string
	// Known is the newest number that the edge knows, Own the number of its promises that it
	// has not read in the journal.
	Known int64
	Own   int
	// Wait is how long a fence waits for edges that do not come.
	Wait time.Duration
	// Keeps is how the edge keeps what it sends, see fence/pledge.go.
	Keeps Durability
	// Ledger is how far the edge's ledger is.
	Ledger LedgerPosition
	// Tail are entries of the journal: number, time and movements of each.
	Tail []any
}

// LedgerPosition is "epoch:number", the newest movement of a sale that a ledger has; or one of these words.
type LedgerPosition string

const (
	// NoLedger: the edge has none.
	NoLedger LedgerPosition = ""
	// LedgerSilent: the ledger has not answered yet.
	LedgerSilent LedgerPosition = "?"
)

// Beat tells a sale's shard what an edge knows. It returns the answer, and the shard's term and
// seq. With an ErrNotReplicated there is an answer, but too few replicas have what it says.
func (s *Client) Beat(ctx context.Context, sale string, b *Beat) (Reply, Term, int64, error) {
	c := s.Clock(sale)
	before, known := c.Mark(), c.Known()
	args := append([]any{s.Channel(), sale, lua.Schema, b.Edge, known.Term.Name, b.Known, b.Does, b.Own, b.Wait.Milliseconds(), b.Keeps.word(),
		string(b.Ledger)}, b.Tail...)
	raw, err := s.Eval(ctx, lua.Fence, s.FenceKeys(sale), args, s.Options.ReplicaAcks)
	if len(raw) != Header+1 {
		if err == nil {
			err = fmt.Errorf("%w: fence gave %d values", ErrUnavailable, len(raw))
		}
		return nil, Term{}, 0, err
	}
	seq, _ := raw[2].(int64)
	name, _ := raw[3].(string)
	r := ReplyOf(raw[Header], new(TextReply))
	if err == nil && r.Code() == lua.OK && !c.hear(before, name, seq, true) {
		err = ErrNoLease
	}
	return r, termOf(name), seq, err
}
