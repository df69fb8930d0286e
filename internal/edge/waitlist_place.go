package edge

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/store/waitlist"
)

// closedList is how entries end with their sale.
const closedList = "closed"

// Waiting returns where a buyer, given by its hash, stands on the list of a sale. known: this edge follows the list and
// the stock; else another one knows. found: the buyer is on it, or was lately. It allocates nothing.
func (e *Edge) Waiting(l *Listing, buyer string) (p waitlist.EntryPlace, found, known bool) {
	list := l.list()
	if list == nil {
		return p, false, false
	}
	p, found = list.PlaceOf(buyer, time.Now())
	switch {
	case !found || p.Ended != "":
	case !l.IsLive():
		p.Ended = closedList
	case l.Sale.Waitlist == nil: // the entry is about to end
	case p.Left < 0:
		return waitlist.EntryPlace{}, false, false
	default:
		p.SoldOut = p.Left < leastOf(l.Sale, p.Entry.Cell)
	}
	return p, found, true
}

// leastOf is how many units of a cell the smallest order has.
func leastOf(s *sale.Sale, cell string) int64 {
	line, _ := s.LineOf(cell)
	item, ok := s.Item(line.SKU)
	if !ok {
		return 1
	}
	least, _ := item.Bounds()
	return least
}

// Watch begins to watch the place of a buyer, see [waitlist.Watches.Open].
func (e *Edge) Watch(saleID, buyer string) *waitlist.PlaceWatch { return e.watches.Open(saleID, buyer) }

// Watching is how many clients wait for news of their places.
func (e *Edge) Watching() int { return e.watches.Size() }

// applyToList brings the waiting list to what a movement says, and tells clients that wait for it.
func (r *journalReader) applyToList(j *journalOf, m *journal.Moved) {
	if w, ok := m.Waits(); ok {
		if buyer := j.waits.Apply(w); buyer != "" {
			r.edge.watches.WakePerson(j.id, buyer)
		}
		if w.Resumes {
			r.edge.wakeOfferer()
		}
		if w.Pauses || w.Resumes {
			r.edge.watches.WakeCell(j.id, "")
		}
	}
	file := j.listing.Sale
	if file.Waitlist == nil { // when the list is there again, the units are read again
		j.waits.ForgetLeft()
		return
	}
	known := m.Leaves(func(cell string, units int64) {
		before, after := j.waits.MoveLeft(m.Seq, cell, units)
		if before == after {
			return
		}
		if least := leastOf(file, cell); (before < least) != (after < least) {
			r.edge.watches.WakeCell(j.id, cell)
		}
	})
	if !known {
		j.waits.ForgetLeft()
	}
}

// loadLeft reads which units of a sale with a waiting list may come back, if that is not known.
func (r *journalReader) loadLeft(ctx context.Context, j *journalOf) error {
	if j.f == nil || j.listing.Sale.Waitlist == nil || j.waits.KnowsLeft() {
		return nil
	}
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	loaded, err := j.waits.LoadLeft(ctx, r.journals.Data(j.id))
	if loaded {
		r.edge.watches.WakeCell(j.id, "")
	}
	return err
}

// IsOnList asks Redis whether a buyer, given by its hash, is on the list of a sale where this edge has read of no open entry:
// the buyer may have entered at another edge a moment ago. Few callers ask at a time; others wait for their turn, as long as an
// attempt may wait for Redis.
func (e *Edge) IsOnList(parent context.Context, l *Listing, buyer string) (bool, error) {
	ctx, cancel := context.WithTimeout(parent, e.shard.Timeout())
	defer cancel()
	select {
	case e.asksList <- struct{}{}:
		defer func() { <-e.asksList }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return waitlist.Has(ctx, e.shard.Data(l.Sale.ID), buyer)
}

// mostAsking bounds the calls of IsOnList.
const mostAsking = 32

// Withdraw takes a buyer, given by its hash, off the list of a sale. It reports whether the buyer was on it, which Redis
// knows: the buyer may have entered at another edge a moment ago.
func (e *Edge) Withdraw(parent context.Context, l *Listing, buyer string) (bool, error) {
	return e.desk.Leave(combine.Within(parent, e.shard.Timeout()), l.Sale.ID, 0, buyer, "left")
}

// ticketUse is for what tickets of waiting lists are made.
const ticketUse = "waitlist "

// ticketLength is the length of the proof in a ticket.
const ticketLength = (16*8 + 5) / 6

// proofOf is the proof that an edge has made a ticket.
func proofOf(secret *identity.Secret, saleID, buyer string) (proof [ticketLength]byte) {
	sum := secret.Ticket(saleID, ticketUse+buyer)
	base64.RawURLEncoding.Encode(proof[:], sum[:])
	return proof
}

// WaitTicket names a buyer, given by its hash, on the waiting list of a sale. It tells nothing of the buyer, and
// cannot be guessed.
func (e *Edge) WaitTicket(saleID, buyer string) (string, error) {
	secret := e.secret.Load()
	if secret == nil {
		return "", shard.ErrStarting
	}
	proof := proofOf(secret, saleID, buyer)
	return saleID + "~" + buyer + string(proof[:]), nil
}

// ReadWaitTicket returns the sale and the buyer's hash of a ticket; false: no edge has made it. It costs one
// HMAC, and allocates nothing.
func (e *Edge) ReadWaitTicket(ticket string) (saleID, buyer string, ok bool) {
	secret := e.secret.Load()
	saleID, rest, found := strings.Cut(ticket, "~")
	if !found || secret == nil || len(rest) < ticketLength || len(ticket) > mostTicket {
		return "", "", false
	}
	var given [ticketLength]byte
	buyer = rest[:len(rest)-copy(given[:], rest[len(rest)-ticketLength:])]
	proof := proofOf(secret, saleID, buyer)
	return saleID, buyer, subtle.ConstantTimeCompare(proof[:], given[:]) == 1
}

// mostTicket bounds the tickets that are read at all: a sale's name, a hash and a proof.
const mostTicket = sale.MaxName + 1 + 2*ticketLength
