package movein

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/sale"
)

// atOnce is how many keys one call asks for.
const atOnce = 500

// readStock reads the keys of all items.
func readStock(ctx context.Context, from redis.UniversalClient, keys *sale.StockKeys, key Pattern, skus []string) ([]sale.MoveCounted, error) {
	out := make([]sale.MoveCounted, len(skus))
	for i, sku := range skus {
		out[i] = sale.MoveCounted{SKU: sku, Key: key.Fill("sku", sku).Text(), Ordered: -1}
	}
	for i := 0; i < len(out); i += atOnce {
		if err := readSome(ctx, from, keys, out[i:min(i+atOnce, len(out))]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readSome reads the keys of some items: their types first, because each has a command of its own.
func readSome(ctx context.Context, from redis.UniversalClient, keys *sale.StockKeys, some []sale.MoveCounted) error {
	pipe := from.Pipeline()
	types := make([]*redis.StatusCmd, len(some))
	for i := range some {
		types[i] = pipe.Type(ctx, some[i].Key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return unanswered(err)
	}
	pipe = from.Pipeline()
	reads := make([]func(*sale.MoveCounted) error, len(some))
	for i := range some {
		c := &some[i]
		c.Form = types[i].Val()
		read, err := ask(ctx, pipe, keys, c)
		if err != nil {
			return fmt.Errorf("%s %w", quoteKey(c.Key), err)
		}
		reads[i] = read
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) && !isReply(err) {
		return unanswered(err)
	}
	for i, read := range reads {
		if err := read(&some[i]); err != nil {
			return fmt.Errorf("%s %w", quoteKey(some[i].Key), err)
		}
	}
	return nil
}

// ask asks for the units of a key, and returns how the answer is read.
func ask(ctx context.Context, pipe redis.Pipeliner, keys *sale.StockKeys, c *sale.MoveCounted) (func(*sale.MoveCounted) error, error) {
	count := func(n *redis.IntCmd) func(*sale.MoveCounted) error {
		return func(c *sale.MoveCounted) (err error) {
			if c.Left, err = n.Result(); err != nil {
				return changed(err)
			}
			return nil
		}
	}
	switch c.Form {
	case "string":
		text := pipe.Get(ctx, c.Key)
		return func(c *sale.MoveCounted) (err error) {
			if text.Err() != nil {
				return changed(text.Err())
			}
			c.Left, err = units(text.Val())
			return err
		}, nil
	case "list":
		return count(pipe.LLen(ctx, c.Key)), nil
	case "set":
		return count(pipe.SCard(ctx, c.Key)), nil
	case "zset":
		return count(pipe.ZCard(ctx, c.Key)), nil
	case "hash":
		if keys.Left != "" {
			fields := pipe.HMGet(ctx, c.Key, keys.Left)
			return func(c *sale.MoveCounted) (err error) {
				c.Left, err = fieldUnits(fields, 0, keys.Left)
				return err
			}, nil
		}
		fields := pipe.HMGet(ctx, c.Key, keys.Total, keys.Ordered)
		return func(c *sale.MoveCounted) error { return readTotal(c, fields, keys) }, nil
	case "none":
		if keys.AbsentIsNone {
			return func(*sale.MoveCounted) error { return nil }, nil
		}
		return nil, errors.New("does not exist. Is it written as the script writes it, and is the number of the database in the address? " +
			"Redis drops a list or set whose last member goes: if a key that is missing means that nothing is left, write `absent: none`")
	}
	return nil, fmt.Errorf("is a %s: stock is a number, a hash, or a list or set of units", c.Form)
}

func readTotal(c *sale.MoveCounted, fields *redis.SliceCmd, keys *sale.StockKeys) error {
	total, err := fieldUnits(fields, 0, keys.Total)
	if err != nil {
		return err
	}
	if c.Ordered, err = fieldUnits(fields, 1, keys.Ordered); err != nil {
		return err
	}
	if c.Left = total - c.Ordered; c.Left < 0 {
		return fmt.Errorf("has %d in %s and %d in %s: the script has sold more than there was. Put %s right first", c.Ordered, keys.Ordered, total, keys.Total, keys.Total)
	}
	return nil
}

func fieldUnits(fields *redis.SliceCmd, i int, name string) (int64, error) {
	values, err := fields.Result()
	if err != nil {
		return 0, changed(err)
	}
	text, ok := values[i].(string)
	if !ok {
		return 0, fmt.Errorf("is a hash without the field %s: name its fields with total and ordered, or the one with what is left with left", shown(name))
	}
	n, err := units(text)
	if err != nil {
		return 0, fmt.Errorf("field %s %w", shown(name), err)
	}
	return n, nil
}

func quoteKey(key string) string { return "the key " + shown(key) }

// isReply reports whether the server has answered with an error.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// changed explains an answer that a key of this type does not give.
func changed(err error) error {
	if errors.Is(err, redis.Nil) || isReply(err) {
		return fmt.Errorf("has changed while it was read (%w): stop what still writes it", err)
	}
	return unanswered(err)
}

func unanswered(err error) error {
	if isReply(err) {
		return fmt.Errorf("the shop's Redis refuses: %w", err)
	}
	return fmt.Errorf("the shop's Redis does not answer: %w", err)
}
