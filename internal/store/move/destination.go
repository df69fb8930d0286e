package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/child"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// enough is a maxmemory that no stock reaches. Caddy sets the configured one.
const enough = 1 << 50

// Destination is the Redis to which stock is moved. Close it.
type Destination struct {
	// Where names it, without a password.
	Where  string
	client *shard.Client
	own    *child.Server // nil: its server is not ours
}

// OpenDestination starts the server of dir, or connects to a Redis if dir is empty. prefix is the key prefix of the stock.
func OpenDestination(ctx context.Context, dir, prefix string, redis shard.Options, log *zap.Logger) (*Destination, error) {
	redis.Prefix, redis.Timeout = prefix, time.Minute
	t := &Destination{Where: dir}
	var err error
	if dir != "" {
		if t.own, err = child.Open(child.Options{Dir: dir, Memory: enough, Log: log}); err != nil {
			return nil, err
		}
		if err := t.own.Await(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("store: %w", err), t.own.Close())
		}
		t.own.Connect(&redis)
	} else if t.Where, err = NameOf(&redis); err != nil {
		return nil, err
	}
	if t.client, err = shard.Open(redis); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if err := t.client.Ping(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", t.Where, err), t.Close())
	}
	return t, nil
}

// NameOf names a Redis without its password.
func NameOf(o *shard.Options) (string, error) {
	if err := o.Validate(); err != nil {
		return "", err
	}
	addresses, database, err := o.Where()
	if err != nil {
		return "", err
	}
	name := strings.Join(addresses, " ")
	if database != 0 {
		name += fmt.Sprintf("/%d", database)
	}
	return name, nil
}

// Close ends the connections, and the server if it is ours.
func (t *Destination) Close() (err error) {
	if t.client != nil {
		err = t.client.Close()
	}
	if t.own != nil {
		err = errors.Join(err, t.own.Close())
	}
	return err
}
