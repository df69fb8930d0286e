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
	// First and Last are numbers of entries. First 0: the journal is empty. Last is
	// the newest number that was given, whether or not its entry is still there.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Length is how many entries there are, Began when the first of them was made.
	Length int64     `json:"length"`
	Began  time.Time `json:"began,omitzero"`
	// Now is the shard's clock, as far as this process knows it.
	Now time.Time `json:"now"`
	// Acked is the last entry that a ledger has; 0: none. AckedAt is when it said so,
	// by the shard's clock.
	Acked   int64     `json:"acked"`
	AckedAt time.Time `json:"acked_at,omitzero"`
	// Age is for how long the oldest entry has waited that no ledger has; 0: none
	// waits. Without a ledger it is the age of the journal.
	Age time.Duration `json:"age"`
}

// Behind is how many entries no ledger has.
func (h *JournalHead) Behind() int64 { return max(h.Last-h.Acked, 0) }

// JournalHead reads where a sale's journal begins and ends; ErrNoSale when there is
// none.
func (s *Store) JournalHead(ctx context.Context, sale string) (JournalHead, error) {
	keys := s.shardKeys(sale)
	pipe := s.redis.Pipeline() // not MULTI: a full Redis refuses it
	meta := pipe.HMGet(ctx, keys[metaKey], "epoch", "seq", "acked", "acked_at", "clock")
	first := pipe.XRangeN(ctx, keys[journalKey], "-", "+", 1)
	length := pipe.XLen(ctx, keys[journalKey])
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
	h := JournalHead{Epoch: number(0), Last: number(1), Length: length.Val(), Acked: number(2), AckedAt: timeOf(number(3)), Now: s.journalNow(sale, number(4))}
	if e := first.Val(); len(e) == 1 {
		m, err := movementOf(e[0])
		if err != nil {
			return h, err
		}
		h.First, h.Began = m.Seq, m.Time
	}
	defer func() { s.clock(sale).head.Store(&h) }()
	if h.Behind() == 0 || h.First == 0 {
		return h, nil
	}
	waits, err := s.redis.XRangeN(ctx, keys[journalKey], entryID(h.Acked+1), "+", 1).Result()
	if err != nil || len(waits) == 0 {
		return h, explain(err)
	}
	m, err := movementOf(waits[0])
	h.Age = max(h.Now.Sub(m.Time), 0)
	return h, err
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

// journalNow estimates the shard's clock, which was at least so late when it was
// last stored.
func (s *Store) journalNow(sale string, stored int64) time.Time {
	now, ok := s.clock(sale).now()
	if !ok {
		now = time.Now().UnixMilli()
	}
	return timeOf(max(now, stored))
}

// JournalBefore finds the last entry of a sale's journal that was made before a time;
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
		m, err := movementOf(e[0])
		if err != nil {
			return 0, err
		}
		if m.Time.Before(before) {
			low = min(max(m.Seq, middle), high)
		} else {
			high = middle - 1
		}
	}
	if low < h.First {
		return 0, nil
	}
	return low, nil
}
