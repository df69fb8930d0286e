package journal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// Head says where a sale's journal begins and ends.
type Head struct {
	// Epoch is the life of the shard: another epoch means that Redis has lost the sale in
	// between, or a part of it.
	Epoch int64 `json:"epoch"`
	// First and Last are numbers of movements. First 0: the journal is empty. Last is the
	// newest number that was given, even if its movement is gone.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Length is how many movements there are. Began is when the first of them was made.
	Length int64     `json:"length"`
	Began  time.Time `json:"began,omitzero"`
	// Now is the shard's clock, as far as this process knows it.
	Now time.Time `json:"now"`
	// Lead is how far the shard's clock is ahead of Redis's own time.
	Lead time.Duration `json:"lead,omitempty"`
	// Acked is the last movement that a ledger has; 0: none. AckedAt is when the ledger
	// acknowledged it, by the shard's clock.
	Acked   int64     `json:"acked"`
	AckedAt time.Time `json:"acked_at,omitzero"`
	// Sent is the last movement that the outbox's receiver has; 0: none. SentAt is when the
	// outbox was last known to work, because its receiver took a movement or had all of them,
	// by the shard's clock; zero: there was never an outbox.
	Sent   int64     `json:"sent"`
	SentAt time.Time `json:"sent_at,omitzero"`
	// Age is how long the oldest movement that no ledger has has waited; 0: none waits. Without
	// a ledger it is the age of the journal.
	Age time.Duration `json:"age"`
	// Lost is the least number of movements that Redis has lost since this process has known
	// the sale; 0: this process has seen no loss.
	Lost int64 `json:"lost,omitzero"`
	// Fenced says that the sale waits for what its Redis lacks, see package fence: Last may be lower than
	// before, and what is lost is known afterwards.
	Fenced bool `json:"fenced,omitzero"`
	// Continues is the epoch that this one goes on from; zero: its numbers begin with 1.
	Continues Continued `json:"continues,omitzero"`
}

// Continued is an epoch from which another one goes on, such as after a restore from a backup. Numbers up to Last are the
// same movements in both. Those above are other ones.
type Continued struct {
	Epoch int64 `json:"epoch"`
	Last  int64 `json:"last"`
}

// Behind is how many movements no ledger has.
func (h *Head) Behind() int64 { return max(h.Last-h.Acked, 0) }

// Unsent is how many movements the outbox's receiver does not have.
func (h *Head) Unsent() int64 { return max(h.Last-h.Sent, 0) }

// ContinuedOf reads what lua/status.lua calls continues.
func ContinuedOf(text string) (c Continued) {
	_, _ = fmt.Sscan(text, &c.Epoch, &c.Last)
	return c
}

// Head reads where a sale's journal begins and ends. It returns ErrNoSale when there is no
// journal.
func (j *Journal) Head(ctx context.Context, sale string) (Head, error) {
	before := j.shard.Clock(sale).Mark()
	known, _, _ := j.LastHead(sale)
	meta, first, err := j.shard.JournalHead(ctx, sale, "epoch", "seq", "acked", "acked_at", "clock", "sent", "sent_at", "lead", "term", "fence", "fenced", "continues")
	if err != nil {
		return Head{}, err
	}
	if !meta.Has(0) {
		return Head{}, shard.ErrNoSale
	}
	h := Head{Epoch: meta.Number(0), Last: meta.Number(1), Acked: meta.Number(2), AckedAt: record.TimeOf(meta.Number(3)), Now: j.JournalNow(sale, meta.Number(4), meta.Number(7))}
	h.Lead = time.Duration(meta.Number(7)) * time.Millisecond
	h.Sent, h.SentAt = meta.Number(5), record.TimeOf(meta.Number(6))
	h.Continues = ContinuedOf(meta.Text(11))
	fell := known.Epoch == h.Epoch && h.Last < known.Last
	if h.Fenced = meta.Has(9) || fell && meta.Has(8) && j.isFenced(ctx, sale); !h.Fenced {
		if fell {
			j.shard.Clock(sale).Fell(shard.ClockMark{Life: before.Life, Seq: known.Last}, h.Last)
		}
		j.regained(sale, meta.Text(10), h.Last)
		h.Lost = j.Fall(sale).Lost()
	}
	if len(first) == 1 {
		if h.First, h.Began, err = beginning(first[0]); err != nil {
			return h, err
		}
		h.Length = h.Last - h.First + 1
	}
	h, err = j.HeadFor(ctx, sale, h, h.Acked)
	if !h.Fenced { // what was known counts until it is back, or given up
		j.heads.Store(sale, h)
	}
	return h, err
}

// isFenced asks a script, which notices what the fence's own fields do not say yet: that another server
// leads. The operation is of no epoch, so that it changes nothing.
func (j *Journal) isFenced(ctx context.Context, sale string) bool {
	_, err := j.shard.Run(ctx, sale, shard.Op(lua.Acknowledge, 0, 0))
	return errors.Is(err, shard.ErrFenced)
}

// regained takes back that movements are lost, where a fence has given them back since. report is what
// lua/fence.lua calls fenced.
func (j *Journal) regained(sale, report string, last int64) {
	words := strings.Fields(report)
	if len(words) != 7 || words[2] == "0" { // none has ended
		return
	}
	missing, _ := strconv.ParseInt(words[4], 10, 64)
	base, _ := strconv.ParseInt(words[6], 10, 64)
	j.shard.Clock(sale).Regained(base, missing, last)
}

// HeadFor returns a head as it is for a ledger that has the movements up to a number: Acked and Age are
// that ledger's.
func (j *Journal) HeadFor(ctx context.Context, sale string, h Head, has int64) (Head, error) {
	h.Acked, h.Age = has, 0
	if h.Behind() == 0 || h.First == 0 {
		return h, nil
	}
	waits, err := j.shard.Entries(ctx, sale, has+1, 1)
	if err != nil || len(waits) == 0 {
		return h, err
	}
	_, since, err := beginning(waits[0])
	h.Age = max(h.Now.Sub(since), 0)
	return h, err
}

// beginning is the number of an entry's first movement, and when it was made.
func beginning(m shard.Entry) (int64, time.Time, error) {
	e, err := EntryOf(m)
	if err != nil {
		return 0, time.Time{}, err
	}
	at, err := e.at()
	return e.First(), at, err
}

// LastHead is what this process already knows of a sale's journal: the last result of Head, and
// the newest number that any answer has reported in the same epoch. False: it knows nothing.
func (j *Journal) LastHead(sale string) (h Head, seq int64, ok bool) {
	last, ok := j.heads.Load(sale)
	if !ok {
		return Head{}, 0, false
	}
	h = last.(Head)
	return h, max(h.Last, j.shard.Clock(sale).Seq.Load()), true
}

// Fall is the loss of movements that this process has seen in a sale; zero: none.
func (j *Journal) Fall(sale string) shard.Fall {
	if f := j.shard.Clock(sale).Fall.Load(); f != nil {
		return *f
	}
	return shard.Fall{}
}

// JournalNow estimates the shard's clock, which is at least as late as its last stored value.
func (j *Journal) JournalNow(sale string, stored, lead int64) time.Time {
	now, ok := j.shard.Clock(sale).Now()
	if !ok {
		now = time.Now().UnixMilli()
	}
	return record.TimeOf(max(now+lead, stored))
}

// Before finds the last movement of a sale's journal that was made before a given time; 0:
// there is none. The entries' times never go back, so it reads only few of them.
func (j *Journal) Before(ctx context.Context, sale string, h Head, before time.Time) (int64, error) {
	low, high := h.First-1, h.Last // all up to low are older, none above high
	if h.First == 0 {
		return 0, nil
	}
	for low < high {
		middle := low + (high-low+1)/2
		e, err := j.shard.Entries(ctx, sale, middle, 1)
		if err != nil {
			return 0, err
		}
		if len(e) == 0 { // the end is gone: nothing older exists
			high = middle - 1
			continue
		}
		entry, err := EntryOf(e[0])
		if err != nil {
			return 0, err
		}
		at, err := entry.at()
		if err != nil {
			return 0, err
		}
		if at.Before(before) {
			low = min(entry.Last, high)
		} else {
			high = min(entry.First(), middle) - 1
		}
	}
	if low < h.First {
		return 0, nil
	}
	return low, nil
}
