package movein

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/sale"
)

// scan reads all records once, in pages. Records of items that the sale does not have, and
// those of 0 units, are counted in skipped.
func (r *records) scan(ctx context.Context, _ time.Duration, each func([]sale.MovePurchase) error) (skipped int64, err error) {
	seen := &once{seed: maphash.MakeSeed(), known: make(map[uint64]struct{})}
	emit := func(key string, pairs []string, form string) error {
		list, passed, err := r.page(seen, key, pairs, form)
		skipped += passed
		if err != nil || len(list) == 0 {
			return err
		}
		return each(list)
	}
	if r.key.Has("buyer") {
		return skipped, r.scanKeys(ctx, r.from, emit)
	}
	keys := []string{r.key.Text()}
	if r.key.Has("sku") {
		keys = keys[:0]
		for sku := range r.listed {
			keys = append(keys, r.key.Fill("sku", sku).Text())
		}
		slices.Sort(keys)
	}
	for _, key := range keys {
		if err := r.scanKey(ctx, r.from, key, emit); err != nil {
			return skipped, err
		}
	}
	return skipped, nil
}

// once knows which records were read: a scan may return one of them twice.
type once struct {
	seed  maphash.Seed
	known map[uint64]struct{}
}

func (o *once) isNew(name string) (bool, error) {
	hash := maphash.String(o.seed, name)
	if _, known := o.known[hash]; known {
		return false, nil
	}
	if len(o.known) == MaxPurchases {
		return false, fmt.Errorf("there are more than %d records: sum them up by buyer first", MaxPurchases)
	}
	o.known[hash] = struct{}{}
	return true, nil
}

// scanKey reads one hash, set or sorted set.
func (r *records) scanKey(ctx context.Context, from redis.UniversalClient, key string, emit func(key string, pairs []string, form string) error) error {
	form, err := from.Type(ctx, key).Result()
	if err != nil {
		return unanswered(err)
	}
	scans := map[string]func(context.Context, string, uint64, string, int64) *redis.ScanCmd{"hash": from.HScan, "set": from.SScan, "zset": from.ZScan}
	scan := scans[form]
	switch {
	case scan != nil:
	case form == "none" && r.keys.AbsentIsNone:
		return nil
	case form == "none":
		return fmt.Errorf("%s does not exist. Is it written as the script writes it? If a key that is missing means that it has sold nothing, write `absent: none`", quoteKey(key))
	default:
		return fmt.Errorf("%s is a %s: purchases are read from a hash, a set, or with {buyer} in the key from a number for each buyer. "+
			"The members of a list have no name by which a purchase is told from another: copy them into a hash first", quoteKey(key), form)
	}
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		var pairs []string
		if pairs, cursor, err = scan(ctx, key, cursor, "", page).Result(); err != nil {
			return fmt.Errorf("%s %w", quoteKey(key), changed(err))
		}
		if err := emit(key, pairs, form); err != nil {
			return err
		}
	}
	return nil
}

// scanKeys reads the keys of all buyers.
func (r *records) scanKeys(ctx context.Context, from redis.UniversalClient, emit func(key string, pairs []string, form string) error) error {
	all, err := servers(ctx, from)
	if err != nil {
		return unanswered(err)
	}
	found := false
	for _, server := range all {
		some, err := r.scanServer(ctx, server, emit)
		if err != nil {
			return err
		}
		found = found || some
	}
	if !found && !r.keys.AbsentIsNone {
		return fmt.Errorf("there is no key like %s. If that means that nothing was sold, write `absent: none`", shown(r.keys.Key))
	}
	return nil
}

// scanServer reads those keys of one server, and reports whether it has any.
func (r *records) scanServer(ctx context.Context, server redis.Cmdable, emit func(key string, pairs []string, form string) error) (found bool, err error) {
	glob := r.key.glob()
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		keys, next, err := server.Scan(ctx, cursor, glob, page).Result()
		if err != nil {
			return false, unanswered(err)
		}
		cursor = next
		if len(keys) == 0 {
			continue
		}
		found = true
		pipe := server.Pipeline()
		values := make([]*redis.StringCmd, len(keys))
		for i, key := range keys {
			values[i] = pipe.Get(ctx, key)
		}
		if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) && !isReply(err) {
			return false, unanswered(err)
		}
		for i, key := range keys {
			text, err := values[i].Result()
			switch {
			case errors.Is(err, redis.Nil), moved(err): // it has gone since
				return false, fmt.Errorf("%s %w", quoteKey(key), changed(err))
			case err != nil:
				return false, fmt.Errorf("%s is no plain value (%w): with {buyer} in the key each buyer has a number", quoteKey(key), err)
			}
			if err := emit(key, []string{"", text}, "string"); err != nil {
				return false, err
			}
		}
	}
	return found, nil
}

// moved reports whether a cluster has moved the key to another server since.
func moved(err error) bool {
	_, elsewhere := redis.IsMovedError(err)
	_, soon := redis.IsAskError(err)
	return elsewhere || soon
}
