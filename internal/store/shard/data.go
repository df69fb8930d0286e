package shard

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Fields are values of a hash, in the order in which they were asked for.
type Fields []any

// Has reports whether there is a value.
func (f Fields) Has(i int) bool { return f[i] != nil }

// Text is a value; empty: there is none.
func (f Fields) Text(i int) string {
	text, _ := f[i].(string)
	return text
}

// Number is a value; 0: there is none, or it is no number.
func (f Fields) Number(i int) int64 {
	n, _ := strconv.ParseInt(f.Text(i), 10, 64)
	return n
}

// Scored is a member of a sorted set.
type Scored struct {
	Score  int64
	Member string
}

func scoredOf(all []redis.Z) []Scored {
	out := make([]Scored, len(all))
	for i, z := range all {
		member, _ := z.Member.(string)
		out[i] = Scored{int64(z.Score), member}
	}
	return out
}

// Data reads the keys of one shard outside of scripts: what is read is as of one moment only within one
// method. Places are those of key_types.go.
type Data struct {
	redis link
	keys  []string
}

// Data reads a sale.
func (s *Client) Data(sale string) Data { return Data{s.redis, s.ShardKeys(sale)} }

// Previous reads the previous epoch of a sale.
func (s *Client) Previous(sale string) Data { return Data{s.redis, s.PreviousKeys(sale)} }

// Meta reads fields of the sale itself.
func (d Data) Meta(ctx context.Context, fields ...string) (Fields, error) {
	return d.Values(ctx, MetaKey, fields...)
}

// Values reads fields of a hash.
func (d Data) Values(ctx context.Context, place int, fields ...string) (Fields, error) {
	v, err := behind(d.redis).HMGet(ctx, d.keys[place], fields...).Result()
	return v, Explain(err)
}

// Has reports whether a hash has a field.
func (d Data) Has(ctx context.Context, place int, field string) (bool, error) {
	ok, err := behind(d.redis).HExists(ctx, d.keys[place], field).Result()
	return ok, Explain(err)
}

// Bytes reads a value of a hash, which must be there.
func (d Data) Bytes(ctx context.Context, place int, field string) ([]byte, error) {
	v, err := behind(d.redis).HGet(ctx, d.keys[place], field).Bytes()
	return v, Explain(err)
}

// Length is how many fields a hash has.
func (d Data) Length(ctx context.Context, place int) (int64, error) {
	n, err := behind(d.redis).HLen(ctx, d.keys[place]).Result()
	return n, Explain(err)
}

// Scan reads about so many names and values that match a pattern (empty: all), of a hash or of a sorted
// set. It begins with cursor 0 and goes on with next; all have been read when next is 0 again. What
// changes meanwhile may be missing or come twice.
func (d Data) Scan(ctx context.Context, place int, cursor uint64, pattern string, about int64) (page []string, next uint64, err error) {
	switch place {
	case DeadlinesKey, InDoubtKey, UnbackedKey, TombstonesKey, LineKey, AtShopKey:
		page, next, err = behind(d.redis).ZScan(ctx, d.keys[place], cursor, pattern, about).Result()
	default:
		page, next, err = behind(d.redis).HScan(ctx, d.keys[place], cursor, pattern, about).Result()
	}
	return page, next, Explain(err)
}

// Each calls yield for the names and values that Scan reads, until it returns an error.
func (d Data) Each(ctx context.Context, place int, pattern string, about int64, yield func(name, value string) error) error {
	for cursor := uint64(0); ; {
		page, next, err := d.Scan(ctx, place, cursor, pattern, about)
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(page); i += 2 {
			if err := yield(page[i], page[i+1]); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// Count is how many members a sorted set has.
func (d Data) Count(ctx context.Context, place int) (int64, error) {
	n, err := behind(d.redis).ZCard(ctx, d.keys[place]).Result()
	return n, Explain(err)
}

// From reads at most so many members of a sorted set, from a score on; nil: from the first on.
func (d Data) From(ctx context.Context, place int, score *int64, most int) ([]Scored, error) {
	from := "-inf"
	if score != nil {
		from = strconv.FormatInt(*score, 10)
	}
	all, err := behind(d.redis).ZRangeByScoreWithScores(ctx, d.keys[place], &redis.ZRangeBy{Min: from, Max: "+inf", Count: int64(most)}).Result()
	return scoredOf(all), Explain(err)
}

// Last is the member of a sorted set with the highest score; false: it is empty.
func (d Data) Last(ctx context.Context, place int) (last Scored, ok bool, err error) {
	all, err := behind(d.redis).ZRevRangeWithScores(ctx, d.keys[place], 0, 0).Result()
	if err != nil || len(all) == 0 {
		return last, false, Explain(err)
	}
	return scoredOf(all)[0], true, nil
}

// Exists reports whether a key is there.
func (d Data) Exists(ctx context.Context, place int) (bool, error) {
	n, err := behind(d.redis).Exists(ctx, d.keys[place]).Result()
	return n > 0, Explain(err)
}

// Any reports whether any key of the shard is there.
func (d Data) Any(ctx context.Context) (bool, error) {
	n, err := behind(d.redis).Exists(ctx, d.keys...).Result()
	return n > 0, Explain(err)
}

// Drop deletes all keys.
func (d Data) Drop(ctx context.Context) error {
	return Explain(behind(d.redis).Unlink(ctx, d.keys...).Err())
}

// Records reads records of reservations, and fields of the sale, in one round trip.
func (d Data) Records(ctx context.Context, ids []string, fields ...string) (records, meta Fields, err error) {
	pipe := behind(d.redis).Pipeline() // not MULTI: a full Redis refuses it
	packed := pipe.HMGet(ctx, d.keys[RecordsKey], ids...)
	sale := pipe.HMGet(ctx, d.keys[MetaKey], fields...)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, Explain(err)
	}
	return packed.Val(), sale.Val(), nil
}

// StockHead is what a sale has beside its cells.
type StockHead struct {
	Meta Fields
	// OldestInDoubt is since when the oldest hold in doubt is so, in ms by the shard's clock; 0: none is.
	OldestInDoubt int64
	Unbacked      int64
}

// StockHead reads the head of a sale's stock, with fields of the sale, in one round trip.
func (d Data) StockHead(ctx context.Context, fields ...string) (StockHead, error) {
	h, _, err := d.stock(ctx, false, fields)
	return h, err
}

// Stock reads the head of a sale's stock and all cells in one round trip.
func (d Data) Stock(ctx context.Context, fields ...string) (StockHead, map[string]string, error) {
	return d.stock(ctx, true, fields)
}

func (d Data) stock(ctx context.Context, all bool, fields []string) (h StockHead, cells map[string]string, err error) {
	pipe := behind(d.redis).Pipeline() // not MULTI: a full Redis refuses it
	meta := pipe.HMGet(ctx, d.keys[MetaKey], fields...)
	var hash *redis.MapStringStringCmd
	if all {
		hash = pipe.HGetAll(ctx, d.keys[CellsKey])
	}
	oldest := pipe.ZRangeWithScores(ctx, d.keys[InDoubtKey], 0, 0)
	unbacked := pipe.ZCard(ctx, d.keys[UnbackedKey])
	if _, err := pipe.Exec(ctx); err != nil {
		return h, nil, Explain(err)
	}
	h = StockHead{Meta: meta.Val(), Unbacked: unbacked.Val()}
	if z := oldest.Val(); len(z) > 0 {
		h.OldestInDoubt = int64(z[0].Score)
	}
	if all {
		cells = hash.Val()
	}
	return h, cells, nil
}

// Cells reads all cells of a sale, and the number of its newest movement then. False: it changed meanwhile.
func (d Data) Cells(ctx context.Context) (cells map[string]string, seq int64, ok bool, err error) {
	pipe := behind(d.redis).Pipeline() // not MULTI: a full Redis refuses it
	before := pipe.HMGet(ctx, d.keys[MetaKey], "seq")
	all := pipe.HGetAll(ctx, d.keys[CellsKey])
	after := pipe.HMGet(ctx, d.keys[MetaKey], "seq")
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, 0, false, Explain(err)
	}
	seq = Fields(before.Val()).Number(0)
	return all.Val(), seq, seq == Fields(after.Val()).Number(0), nil
}

// EndMerging notes that nothing of the previous epoch of a sale is to be merged any more.
func (s *Client) EndMerging(ctx context.Context, sale string) error {
	return Explain(behind(s.redis).HDel(ctx, s.ShardKeys(sale)[MetaKey], "merging").Err())
}

// bytesOf is the value of a key; nil: there is none.
func (s *Client) bytesOf(ctx context.Context, key string) ([]byte, error) {
	v, err := behind(s.redis).Get(ctx, key).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return v, Explain(err)
}

// AddAnswerBytes counts bytes of a sale's stored answers, and returns how many there are.
func (s *Client) AddAnswerBytes(ctx context.Context, sale string, bytes int64) (int64, error) {
	n, err := behind(s.redis).IncrBy(ctx, s.AnswersKey(sale), bytes).Result()
	return n, Explain(err)
}

// StoreAnswer stores the shop's answer to a reservation's request for a time. One that is stored stays.
func (s *Client) StoreAnswer(ctx context.Context, sale, id string, answer []byte, keep time.Duration) error {
	return Explain(behind(s.redis).SetNX(ctx, s.AnswerKey(sale, id), answer, keep).Err())
}

// StoredAnswer is the stored answer to a reservation's request; nil: there is none.
func (s *Client) StoredAnswer(ctx context.Context, sale, id string) ([]byte, error) {
	return s.bytesOf(ctx, s.AnswerKey(sale, id))
}

// Shadow reads counters of dry runs.
func (s *Client) Shadow(ctx context.Context, sale string, fields ...string) (Fields, error) {
	v, err := behind(s.redis).HMGet(ctx, s.ShadowKey(sale), fields...).Result()
	return v, Explain(err)
}

// DropShadow drops the counters of dry runs.
func (s *Client) DropShadow(ctx context.Context, sale string) error {
	return Explain(behind(s.redis).Unlink(ctx, s.ShadowKey(sale)).Err())
}

// Counts reads what edges have counted of a sale, see lua/counts.lua.
func (s *Client) Counts(ctx context.Context, sale string) (map[string]string, error) {
	fields, err := behind(s.redis).HGetAll(ctx, s.CountsKeys(sale)[1]).Result()
	return fields, Explain(err)
}
