package sales

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// queueState is the state of a sale's line as the API tells it.
func queueState(id string, s queue.State) adminapi.QueueState {
	return adminapi.QueueState{
		ID: id, Waiting: s.Waiting, AtShop: s.AtShop, Skipped: s.Skipped, OldestMs: s.Oldest.Milliseconds(), Bytes: s.Bytes,
		Pace: s.Pace, Paused: s.Paused, LaterMs: s.HeldUp.Milliseconds(),
	}
}

// queueOf is the state of a sale's line; nil: the sale has none.
func queueOf(o *serve.Operator, id string) (*adminapi.QueueState, error) {
	s, err := queue.Look(o.Ctx, o.Runtime.Store, id)
	if s == nil || err != nil {
		return nil, err
	}
	shown := queueState(id, *s)
	return &shown, nil
}

// saleWithLine returns the sale that the path names, which must exist: the script of the line
// does not look.
func saleWithLine(o *serve.Operator, r *http.Request) (string, error) {
	id, err := request.SaleID(r)
	if err != nil {
		return "", err
	}
	return id, o.Known(id)
}

func showQueue(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := saleWithLine(o, r)
	if err != nil {
		return nil, err
	}
	s, err := queue.Show(o.Ctx, o.Runtime.Store, id)
	return queueState(id, s), o.NoSale(id, err)
}

func pauseQueue(o *serve.Operator, r *http.Request) (any, error) {
	return changeQueue(o, r, "queue paused", queue.Pause)
}

func resumeQueue(o *serve.Operator, r *http.Request) (any, error) {
	return changeQueue(o, r, "queue resumed", queue.Resume)
}

func changeQueue(o *serve.Operator, r *http.Request, change string, make func(context.Context, *reservation.Store, string) (queue.State, error)) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := saleWithLine(o, r)
	if err != nil {
		return nil, err
	}
	s, err := make(o.Ctx, o.Runtime.Store, id)
	if err == nil {
		err = o.Runtime.Store.Shard().AwaitReplicas(o.Ctx)
	}
	return queueState(id, s), o.Noted(o.NoSale(id, err), change, zap.String("sale", id), zap.Int64("waiting", s.Waiting))
}

// drainQueue releases orders that wait. Those that come meanwhile are behind them.
func drainQueue(o *serve.Operator, r *http.Request) (any, error) {
	query, err := request.Query(r, "most")
	if err != nil {
		return nil, err
	}
	id, err := saleWithLine(o, r)
	if err != nil {
		return nil, err
	}
	most := int64(adminapi.MaxDrain)
	if query.Has("most") {
		if most, err = strconv.ParseInt(query.Get("most"), 10, 64); err != nil || most < 1 || most > adminapi.MaxDrain {
			return nil, request.Bad("most must be 1 to %d: how many orders to release; ask again for more", adminapi.MaxDrain)
		}
	}
	s, err := queue.Drain(o.Ctx, o.Runtime.Store, id, o.Cause, most)
	if err == nil {
		err = o.Runtime.Store.Shard().AwaitReplicas(o.Ctx)
	}
	if err != nil && s.Released > 0 {
		err = fmt.Errorf("%w (%d orders are released)", err, s.Released)
	}
	return adminapi.QueueDrained{QueueState: queueState(id, s), Released: s.Released},
		o.Noted(o.NoSale(id, err), "queue drained", zap.String("sale", id), zap.Int64("released", s.Released), zap.Int64("waiting", s.Waiting))
}
