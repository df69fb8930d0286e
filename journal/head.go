package journal

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/shard"
)

// JournalHead says where a sale's journal begins and ends.
type Head struct {
	// Epoch is the life of the shard: another one means that Redis has lost the sale
	// since.
	Epoch int64 `json:"epoch"`
	// First and Last are numbers of movements. First 0: the journal is empty. Last is
	// the newest number that was given, whether or not its movement is still there.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Length is how many movements there are, Began when the first of them was made.
	Length int64     `json:"length"`
	Began  time.Time `json:"began,omitzero"`
	// Now is the shard's clock, as far as this process knows it.
	Now time.Time `json:"now"`
	// Lead is how far that is ahead of Redis's own time.
	Lead time.Duration `json:"lead,omitempty"`
	// Acked is the last movement that a ledger has; 0: none. AckedAt is when it said so,
	// by the shard's clock.
	Acked   int64     `json:"acked"`
	AckedAt time.Time `json:"acked_at,omitzero"`
	// Sent is the last movement that the outbox's receiver has; 0: none. SentAt is when it
	// was last known to be well, having taken something or having all, by the shard's
	// clock; zero: there was never an outbox.
	Sent   int64     `json:"sent"`
	SentAt time.Time `json:"sent_at,omitzero"`
	// Age is for how long the oldest movement has waited that no ledger has; 0: none
	// waits. Without a ledger it is the age of the journal.
	Age time.Duration `json:"age"`
	// Lost is how many movements Redis has lost at least since this process knows the
	// sale, as it has seen; 0: it has seen none being lost.
	Lost int64 `json:"lost,omitzero"`
}

// Behind is how many movements no ledger has.
func (h *Head) Behind() int64 { return max(h.Last-h.Acked, 0) }

// Unsent is how many movements the outbox's receiver does not have.
func (h *Head) Unsent() int64 { return max(h.Last-h.Sent, 0) }

// JournalHead reads where a sale's journal begins and ends; ErrNoSale when there is
// none.
func (j *Journal) Head(ctx context.Context, sale string) (Head, error) {
	before := j.shard.Clock(sale).Mark()
	known, _, _ := j.LastHead(sale)
	keys := j.shard.ShardKeys(sale)
	pipe := j.shard.Redis.Pipeline() // not MULTI: a full Redis refuses it
	meta := pipe.HMGet(ctx, keys[shard.MetaKey], "epoch", "seq", "acked", "acked_at", "clock", "sent", "sent_at", "lead")
	first := pipe.XRangeN(ctx, keys[shard.JournalKey], "-", "+", 1)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return Head{}, shard.Explain(err)
	}
	number := func(i int) int64 {
		text, _ := meta.Val()[i].(string)
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	if meta.Val()[0] == nil {
		return Head{}, shard.ErrNoSale
	}
	var err error
	h := Head{Epoch: number(0), Last: number(1), Acked: number(2), AckedAt: record.TimeOf(number(3)), Now: j.JournalNow(sale, number(4), number(7))}
	h.Lead = time.Duration(number(7)) * time.Millisecond
	h.Sent, h.SentAt = number(5), record.TimeOf(number(6))
	if known.Epoch == h.Epoch {
		j.shard.Clock(sale).Fell(shard.Mark{Life: before.Life, Seq: known.Last}, h.Last)
	}
	h.Lost = j.Fall(sale).Lost()
	if e := first.Val(); len(e) == 1 {
		if h.First, h.Began, err = beginning(e[0]); err != nil {
			return h, err
		}
		h.Length = h.Last - h.First + 1
	}
	defer func() { j.heads.Store(sale, h) }()
	if h.Behind() == 0 || h.First == 0 {
		return h, nil
	}
	waits, err := j.shard.Redis.XRangeN(ctx, keys[shard.JournalKey], entryID(h.Acked+1), "+", 1).Result()
	if err != nil || len(waits) == 0 {
		return h, shard.Explain(err)
	}
	_, since, err := beginning(waits[0])
	h.Age = max(h.Now.Sub(since), 0)
	return h, err
}

// beginning is the number of an entry's first movement, and when it was made.
func beginning(m redis.XMessage) (int64, time.Time, error) {
	e, err := EntryOf(m)
	if err != nil {
		return 0, time.Time{}, err
	}
	at, err := e.at()
	return e.First(), at, err
}

// LastHead is what this process knows of a sale's journal from before: what JournalHead
// has told last, and the newest number that any answer has told in the same life. False:
// nothing.
func (j *Journal) LastHead(sale string) (h Head, seq int64, ok bool) {
	last, ok := j.heads.Load(sale)
	if !ok {
		return Head{}, 0, false
	}
	h = last.(Head)
	return h, max(h.Last, j.shard.Clock(sale).Seq.Load()), true
}

// Fall is what this process has seen Redis lose of a sale; zero: nothing.
func (j *Journal) Fall(sale string) shard.Fall {
	if f := j.shard.Clock(sale).Fall.Load(); f != nil {
		return *f
	}
	return shard.Fall{}
}

// journalNow estimates the shard's clock, which was at least so late when it was
// last stored.
func (j *Journal) JournalNow(sale string, stored, lead int64) time.Time {
	now, ok := j.shard.Clock(sale).Now()
	if !ok {
		now = time.Now().UnixMilli()
	}
	return record.TimeOf(max(now+lead, stored))
}

// JournalBefore finds the last movement of a sale's journal that was made before a time;
// 0: there is none. The entries' times never go back, so few of them are read.
func (j *Journal) Before(ctx context.Context, sale string, h Head, before time.Time) (int64, error) {
	key := j.shard.ShardKeys(sale)[shard.JournalKey]
	low, high := h.First-1, h.Last // all up to low are older, none above high is
	if h.First == 0 {
		return 0, nil
	}
	for low < high {
		middle := low + (high-low+1)/2
		e, err := j.shard.Redis.XRangeN(ctx, key, entryID(middle), "+", 1).Result()
		if err != nil {
			return 0, shard.Explain(err)
		}
		if len(e) == 0 { // the end has gone: nothing older is there
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
