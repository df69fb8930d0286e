// Package backup restores a store from a backup, so that no sale goes on from it before an operator has compared it with
// the shop: what was sold after the backup looks available in it. It does the same with a store whose disk has lost something.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/child"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// enough is a maxmemory that no backup reaches. Caddy sets the configured one.
const enough = 1 << 50

// Options say where a backup is restored.
type Options struct {
	Dir     string // absolute; empty, or it does not exist
	Program string // a path or a name in PATH; empty: redis-server or valkey-server
	Log     *zap.Logger
}

// Sale is a sale that was restored.
type Sale struct {
	ID string `json:"id"`
	// Was is its status in the backup; an open one is paused now.
	Was sale.Status `json:"was"`
	// Waiting is how many orders wait in its line, which is paused, and AtShop how many were at the shop.
	Waiting int64 `json:"waiting,omitempty"`
	AtShop  int64 `json:"at_shop,omitempty"`
}

// Restored is what a restore did.
type Restored struct {
	Dir string `json:"dir"`
	// Time is when the backup was made, Writer the server that made it.
	Time   time.Time `json:"time"`
	Writer string    `json:"writer"`
	Bytes  int64     `json:"bytes"`
	Sales  []Sale    `json:"sales"`
}

// Restore makes a store from a backup. Each sale that was open is paused, and its line of orders too. An error leaves the
// directory as it was.
func Restore(ctx context.Context, o Options, from io.Reader) (*Restored, error) {
	r, err := child.Restore(ctx, child.Options{Dir: o.Dir, Program: o.Program, Memory: enough, Log: o.Log}, from)
	if err != nil {
		return nil, err
	}
	done := &Restored{Dir: o.Dir, Time: r.Time, Writer: r.Writer, Bytes: r.Size, Sales: []Sale{}}
	server := shard.Options{Timeout: time.Minute}
	r.Connect(&server)
	by := "restored-from-a-backup-of-" + done.Time.UTC().Format(time.RFC3339)
	done.Sales, err = pause(ctx, server, func(store *reservation.Store, id string) (sale.Status, error) {
		return store.MarkRestored(ctx, id, done.Time, by)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("its sales cannot be paused: %w", err), r.Discard())
	}
	if err := r.Finish(); err != nil {
		return nil, err
	}
	return done, nil
}

// GoOn pauses the sales of a store whose disk has lost something, as after a restore, because an operator has accepted that
// at that time. It may be called again.
func GoOn(ctx context.Context, server shard.Options, accepted time.Time, log *zap.Logger) error {
	by := "disk-lost-writes-accepted-" + accepted.UTC().Format(time.RFC3339)
	sales, err := pause(ctx, server, func(store *reservation.Store, id string) (sale.Status, error) {
		return store.MarkLoss(ctx, id, accepted, by)
	})
	for _, s := range sales {
		if s.Was == sale.Open {
			log.Warn("the sale is paused, because what the disk has lost of it looks available: rebuild it from a ledger that has more, or compare it with the shop, and open it then", zap.String("sale", s.ID))
		}
	}
	return err
}

// mark pauses a sale and notes why. It returns the status that the sale had.
type mark func(store *reservation.Store, id string) (sale.Status, error)

// pause pauses the sales of a server, under whatever prefix they are.
func pause(ctx context.Context, server shard.Options, m mark) ([]Sale, error) {
	c, err := shard.Open(server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	prefixes, err := c.Prefixes(ctx)
	if err != nil {
		return nil, err
	}
	all := []Sale{}
	for _, prefix := range prefixes {
		server.Prefix = prefix
		sales, err := pausePrefix(ctx, server, m)
		if err != nil {
			return nil, err
		}
		all = append(all, sales...)
	}
	return all, nil
}

func pausePrefix(ctx context.Context, server shard.Options, m mark) (all []Sale, err error) {
	store, err := reservation.Open(server)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if err := store.Shard().EndFences(ctx); err != nil { // no edge of before knows of this server
		return nil, err
	}
	ids, err := store.Journal().Sales(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(ids)
	for _, id := range ids {
		s := Sale{ID: id}
		s.Was, err = m(store, id)
		if errors.Is(err, shard.ErrNoSale) {
			continue // Redis had lost it: edges say so
		}
		if err != nil {
			return nil, fmt.Errorf("sale %s: %w", id, err)
		}
		if s.Waiting, s.AtShop, err = pauseLine(ctx, store, id); err != nil {
			return nil, fmt.Errorf("the line of sale %s: %w", id, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// pauseLine pauses the line of a sale that has one: since the backup its orders may have been sent.
func pauseLine(ctx context.Context, store *reservation.Store, id string) (waiting, atShop int64, err error) {
	line, err := queue.Look(ctx, store, id)
	if line == nil || err != nil {
		return 0, 0, err
	}
	state, err := queue.Pause(ctx, store, id)
	return state.Waiting, state.AtShop, err
}
