package reservation

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// JournalHead says where a sale's journal begins and ends.
type JournalHead struct {
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
func (h *JournalHead) Behind() int64 { return max(h.Last-h.Acked, 0) }

// Unsent is how many movements the outbox's receiver does not have.
func (h *JournalHead) Unsent() int64 { return max(h.Last-h.Sent, 0) }

// JournalHead reads where a sale's journal begins and ends; ErrNoSale when there is
// none.
func (s *Store) JournalHead(ctx context.Context, sale string) (JournalHead, error) {
	before := s.clock(sale).mark()
	known, _, _ := s.LastHead(sale)
	keys := s.shardKeys(sale)
	pipe := s.redis.Pipeline() // not MULTI: a full Redis refuses it
	meta := pipe.HMGet(ctx, keys[metaKey], "epoch", "seq", "acked", "acked_at", "clock", "sent", "sent_at", "lead")
	first := pipe.XRangeN(ctx, keys[journalKey], "-", "+", 1)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return JournalHead{}, explain(err)
	}
	number := func(i int) int64 {
		text, _ := meta.Val()[i].(string)
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	if meta.Val()[0] == nil {
		return JournalHead{}, ErrNoSale
	}
	var err error
	h := JournalHead{Epoch: number(0), Last: number(1), Acked: number(2), AckedAt: timeOf(number(3)), Now: s.journalNow(sale, number(4), number(7))}
	h.Lead = time.Duration(number(7)) * time.Millisecond
	h.Sent, h.SentAt = number(5), timeOf(number(6))
	if known.Epoch == h.Epoch {
		s.clock(sale).fell(mark{life: before.life, seq: known.Last}, h.Last)
	}
	h.Lost = s.Fall(sale).Lost()
	if e := first.Val(); len(e) == 1 {
		if h.First, h.Began, err = beginning(e[0]); err != nil {
			return h, err
		}
		h.Length = h.Last - h.First + 1
	}
	defer func() { s.clock(sale).head.Store(&h) }()
	if h.Behind() == 0 || h.First == 0 {
		return h, nil
	}
	waits, err := s.redis.XRangeN(ctx, keys[journalKey], entryID(h.Acked+1), "+", 1).Result()
	if err != nil || len(waits) == 0 {
		return h, explain(err)
	}
	_, since, err := beginning(waits[0])
	h.Age = max(h.Now.Sub(since), 0)
	return h, err
}

// beginning is the number of an entry's first movement, and when it was made.
func beginning(m redis.XMessage) (int64, time.Time, error) {
	e, err := entryOf(m)
	if err != nil {
		return 0, time.Time{}, err
	}
	at, err := e.at()
	return e.first(), at, err
}

// LastHead is what this process knows of a sale's journal from before: what JournalHead
// has told last, and the newest number that any answer has told in the same life. False:
// nothing.
func (s *Store) LastHead(sale string) (h JournalHead, seq int64, ok bool) {
	c := s.clock(sale)
	last := c.head.Load()
	if last == nil {
		return JournalHead{}, 0, false
	}
	return *last, max(last.Last, c.seq.Load()), true
}

// Fall is what this process has seen Redis lose of a sale; zero: nothing.
func (s *Store) Fall(sale string) Fall {
	if f := s.clock(sale).fall.Load(); f != nil {
		return *f
	}
	return Fall{}
}

// journalNow estimates the shard's clock, which was at least so late when it was
// last stored.
func (s *Store) journalNow(sale string, stored, lead int64) time.Time {
	now, ok := s.clock(sale).now()
	if !ok {
		now = time.Now().UnixMilli()
	}
	return timeOf(max(now+lead, stored))
}

// JournalBefore finds the last movement of a sale's journal that was made before a time;
// 0: there is none. The entries' times never go back, so few of them are read.
func (s *Store) JournalBefore(ctx context.Context, sale string, h JournalHead, before time.Time) (int64, error) {
	key := s.shardKeys(sale)[journalKey]
	low, high := h.First-1, h.Last // all up to low are older, none above high is
	if h.First == 0 {
		return 0, nil
	}
	for low < high {
		middle := low + (high-low+1)/2
		e, err := s.redis.XRangeN(ctx, key, entryID(middle), "+", 1).Result()
		if err != nil {
			return 0, explain(err)
		}
		if len(e) == 0 { // the end has gone: nothing older is there
			high = middle - 1
			continue
		}
		entry, err := entryOf(e[0])
		if err != nil {
			return 0, err
		}
		at, err := entry.at()
		if err != nil {
			return 0, err
		}
		if at.Before(before) {
			low = min(entry.last, high)
		} else {
			high = min(entry.first(), middle) - 1
		}
	}
	if low < h.First {
		return 0, nil
	}
	return low, nil
}
