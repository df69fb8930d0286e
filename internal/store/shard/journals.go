package shard

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Entry is one entry of a stream: of a journal, or of the changes of a list.
type Entry = redis.XMessage

// EntryID is a number in the form of an entry's id.
func EntryID(seq int64) string { return strconv.FormatInt(seq, 10) + "-0" }

// Entries reads at most so many entries of a sale's journal, from the one with a number on.
func (s *Client) Entries(ctx context.Context, sale string, from, most int64) ([]Entry, error) {
	return s.StreamFrom(ctx, s.ShardKeys(sale)[JournalKey], EntryID(from), most)
}

// StreamFrom reads at most so many entries of a stream, from an id on.
func (s *Client) StreamFrom(ctx context.Context, key, from string, most int64) ([]Entry, error) {
	entries, err := behind(s.redis).XRangeN(ctx, key, from, "+", most).Result()
	return entries, Explain(err)
}

// JournalHead reads fields of a sale and the first entry of its journal in one round trip.
func (s *Client) JournalHead(ctx context.Context, sale string, fields ...string) (meta Fields, first []Entry, err error) {
	keys := s.ShardKeys(sale)
	pipe := behind(s.redis).Pipeline() // not MULTI: a full Redis refuses it
	read, entry := pipe.HMGet(ctx, keys[MetaKey], fields...), pipe.XRangeN(ctx, keys[JournalKey], "-", "+", 1)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, nil, Explain(err)
	}
	return read.Val(), entry.Val(), nil
}

// Journals reads journals on connections of its own: a read that waits occupies one (in a cluster one for
// each sale), and nothing else must wait behind it.
type Journals struct {
	shard *Client
	redis link
}

// OpenJournals prepares the connections. It does not dial.
func (s *Client) OpenJournals() (*Journals, error) {
	client, err := waiting(s)
	if err != nil {
		return nil, err
	}
	return &Journals{s, client}, nil
}

// waiting is a client whose calls may wait in Redis: every call has a context.
func waiting(s *Client) (redis.UniversalClient, error) {
	u, err := universal(&s.Options)
	if err != nil {
		return nil, err
	}
	u.ReadTimeout = LongestCall
	return redis.NewUniversalClient(u), nil
}

// Close ends reads that wait.
func (j *Journals) Close() error { return j.redis.Close() }

// Data reads a sale on these connections.
func (j *Journals) Data(sale string) Data { return Data{j.redis, j.shard.ShardKeys(sale)} }

// Position is how far a journal has come, by the sale itself.
type Position struct {
	Epoch string // empty: Redis does not have the sale
	Seq   int64
}

func positionOf(v []any) Position {
	if len(v) != 2 {
		return Position{}
	}
	f := Fields(v)
	return Position{f.Text(0), f.Number(1)}
}

// At reads the position of a journal and the entry with a number; none: it is not there.
func (j *Journals) At(ctx context.Context, sale string, seq int64) (Position, []Entry, error) {
	return look(ctx, j, sale, func(pipe redis.Pipeliner, key string) *redis.XMessageSliceCmd {
		return pipe.XRange(ctx, key, EntryID(seq), EntryID(seq))
	})
}

// End reads the position of a journal and its last entry.
func (j *Journals) End(ctx context.Context, sale string) (Position, []Entry, error) {
	return look(ctx, j, sale, func(pipe redis.Pipeliner, key string) *redis.XMessageSliceCmd {
		return pipe.XRevRangeN(ctx, key, "+", "-", 1)
	})
}

func look(ctx context.Context, j *Journals, sale string, entry func(redis.Pipeliner, string) *redis.XMessageSliceCmd) (Position, []Entry, error) {
	keys, pipe := j.shard.ShardKeys(sale), behind(j.redis).Pipeline()
	meta := pipe.HMGet(ctx, keys[MetaKey], "epoch", "seq")
	found := entry(pipe, keys[JournalKey])
	if _, err := pipe.Exec(ctx); err != nil {
		return Position{}, nil, Explain(err)
	}
	return positionOf(meta.Val()), found.Val(), nil
}

// Back reads at most so many entries of a journal, from the one with a number back.
func (j *Journals) Back(ctx context.Context, sale string, from, most int64) ([]Entry, error) {
	entries, err := behind(j.redis).XRevRangeN(ctx, j.shard.ShardKeys(sale)[JournalKey], EntryID(from), "-", most).Result()
	return entries, Explain(err)
}

// News is what has come to a journal, and its position after that.
type News struct {
	Entries []Entry
	Position
}

// Read reads at most so many entries of each journal after a number, and then the positions, in one round
// trip. It waits for entries that long; below 0: it does not.
func (j *Journals) Read(ctx context.Context, sales []string, after []int64, most int64, wait time.Duration) ([]News, error) {
	n := len(sales)
	streams := make([]string, 2*n)
	pipe, metas := behind(j.redis).Pipeline(), make([]*redis.SliceCmd, n)
	metaKeys := make([]string, n)
	for i, sale := range sales {
		keys := j.shard.ShardKeys(sale)
		streams[i], streams[n+i], metaKeys[i] = keys[JournalKey], EntryID(after[i]), keys[MetaKey]
	}
	read := pipe.XRead(ctx, &redis.XReadArgs{Streams: streams, Count: most, Block: wait})
	for i, key := range metaKeys {
		metas[i] = pipe.HMGet(ctx, key, "epoch", "seq")
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, Explain(err)
	}
	news := make([]News, n)
	for i := range news {
		news[i].Position = positionOf(metas[i].Val())
	}
	i := 0
	for _, s := range read.Val() { // those that came, in the order in which they were asked for
		for streams[i] != s.Stream {
			i = (i + 1) % n
		}
		news[i].Entries = s.Messages
	}
	return news, nil
}

// Newest reads the position of the journal of the sale with a meta key. It asks again where the
// connection breaks: it only reads.
func (j *Journals) Newest(ctx context.Context, metaKey string) (Position, error) {
	v, err := behind(j.redis).HMGet(ctx, metaKey, "epoch", "seq").Result()
	for try := 0; err != nil && BrokenConnection(err) && ctx.Err() == nil && try < 2; try++ {
		v, err = behind(j.redis).HMGet(ctx, metaKey, "epoch", "seq").Result()
	}
	return positionOf(v), Explain(err)
}

// SetLedgerMark notes which movement of a sale some ledger has.
func (s *Client) SetLedgerMark(ctx context.Context, sale, mark string) error {
	return Explain(behind(s.redis).HSet(ctx, s.LedgersKey(), sale, mark).Err())
}

// LedgerMark is what SetLedgerMark has noted; empty: nothing.
func (s *Client) LedgerMark(ctx context.Context, sale string) (string, error) {
	mark, err := behind(s.redis).HGet(ctx, s.LedgersKey(), sale).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return mark, Explain(err)
}

// NoteDrainer notes that a drainer had a lease at a moment, and forgets those that were not heard of since
// another one.
func (s *Client) NoteDrainer(ctx context.Context, drainer string, at, forget time.Time) error {
	pipe := behind(s.redis).Pipeline()
	pipe.ZAdd(ctx, s.DrainersKey(), redis.Z{Score: float64(at.UnixMilli()), Member: drainer})
	pipe.ZRemRangeByScore(ctx, s.DrainersKey(), "-inf", strconv.FormatInt(forget.UnixMilli(), 10))
	_, err := pipe.Exec(ctx)
	return Explain(err)
}

// DropDrainers drops what NoteDrainer has noted.
func (s *Client) DropDrainers(ctx context.Context, drainers ...string) error {
	members := make([]any, len(drainers))
	for i, d := range drainers {
		members[i] = d
	}
	return Explain(behind(s.redis).ZRem(ctx, s.DrainersKey(), members...).Err())
}

// DrainersSince are the drainers that were noted since a moment.
func (s *Client) DrainersSince(ctx context.Context, since time.Time) ([]string, error) {
	all, err := behind(s.redis).ZRangeByScore(ctx, s.DrainersKey(), &redis.ZRangeBy{Min: strconv.FormatInt(since.UnixMilli(), 10), Max: "+inf"}).Result()
	return all, Explain(err)
}
