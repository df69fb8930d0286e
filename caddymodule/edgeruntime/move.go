package edgeruntime

import (
	"context"
	"errors"
	"sync"

	"github.com/stockgate/stockgate/internal/store/move"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// MoveOptions name the destination of a move.
type MoveOptions struct {
	// Dir is the directory of a store. Empty: Redis says which server.
	Dir   string
	Redis shard.Options
	By    string            // who asked
	Stage func(what string) // is called with each step
}

// moving is held during a move: one process moves one stock at a time.
var moving sync.Mutex

var errMoving = shard.Refused("a move is under way: ask again when it has ended")

// Move moves all stock to another Redis, see [move.Run].
func (d *Runtime) Move(ctx context.Context, o MoveOptions) (*move.Summary, error) {
	if !moving.TryLock() {
		return nil, errMoving
	}
	defer moving.Unlock()
	if !d.Begin() { // a reload must not end its connections
		return nil, shard.ErrStarting
	}
	defer d.End()
	if o.Dir != "" && d.store != nil && d.store.Status().Dir == o.Dir {
		return nil, shard.Refused("the stock is in %s already", o.Dir)
	}
	to, err := move.OpenDestination(ctx, o.Dir, d.Client().Options.Prefix, o.Redis, d.log)
	if err != nil {
		return nil, err
	}
	done, err := move.Run(ctx, move.Options{From: d.Store, Here: d.here(), Edge: d.Leases().ID(), Backlog: d.Backlog, Stage: o.Stage, To: to, By: o.By})
	_ = d.Recheck(ctx) // this edge must know where the stock is; the log and Ready report errors
	return done, errors.Join(err, to.Close())
}

// here is where the stock is, as operators write it.
func (d *Runtime) here() string {
	if d.store != nil {
		return d.store.Status().Dir
	}
	name, err := move.NameOf(&d.Client().Options)
	if err != nil {
		return ""
	}
	return name
}

// UndoMove ends a move that has not finished.
func (d *Runtime) UndoMove(ctx context.Context) error {
	if !moving.TryLock() {
		return errMoving
	}
	defer moving.Unlock()
	err := move.Undo(ctx, d.Store)
	_ = d.Recheck(ctx)
	return err
}
