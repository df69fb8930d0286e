package operator

import (
	"context"
	"net/http"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// moveStock moves all stock to another Redis.
func moveStock(o *serve.Operator, r *http.Request, stage func(what string)) (*adminapi.StockMoved, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	var asked adminapi.MoveRequest
	if err := request.JSON(r, serve.SmallBody, &asked); err != nil {
		return nil, err
	}
	to, err := targetOf(&asked)
	if err != nil {
		return nil, err
	}
	// it goes on after the client has disconnected: stock that is half copied sells nothing
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), adminapi.MoveTimeout)
	defer cancel()
	to.By, to.Stage = o.By, func(what string) {
		o.Log.Info("moving the stock", zap.String("by", o.By), zap.String("stage", what))
		stage(what)
	}
	done, err := o.Runtime.Move(ctx, *to)
	if err != nil {
		o.Log.Error("the stock is not moved", zap.String("by", o.By), zap.Error(err))
		return nil, err
	}
	o.Log.Info("the stock is moved, and sells nothing here any more", zap.String("by", o.By), zap.String("to", done.Where), zap.Strings("sales", done.Sales), zap.Int("keys", done.Keys))
	return &adminapi.StockMoved{Where: done.Where, Sales: done.Sales, Keys: done.Keys, Before: done.Before}, nil
}

// targetOf reads where stock is to be moved.
func targetOf(asked *adminapi.MoveRequest) (*edgeruntime.MoveOptions, error) {
	switch {
	case (asked.Store != "") == (len(asked.Redis) > 0):
		return nil, request.Bad("say where the stock goes: either store, a directory, or redis, addresses")
	case asked.Store == "":
		to := &edgeruntime.MoveOptions{Redis: shard.Options{
			Addresses: asked.Redis, Cluster: asked.Cluster, Username: asked.Username, Password: asked.Password,
			Sentinel: asked.Sentinel, SentinelUsername: asked.SentinelUsername, SentinelPassword: asked.SentinelPassword,
			TLS:      asked.TLS,
			TLSFiles: shard.TLSFiles{CA: asked.CA, Certificate: asked.Certificate, Key: asked.Key, ServerName: asked.ServerName},
			Timeout:  time.Minute, // no buyer waits
		}}
		if err := to.Redis.Validate(); err != nil {
			return nil, request.Bad("%w", err)
		}
		return to, nil
	case !filepath.IsAbs(asked.Store):
		return nil, request.Bad("store %q: write the whole path of the directory on the machine of this Caddy, such as /var/lib/stockgate", asked.Store)
	}
	return &edgeruntime.MoveOptions{Dir: filepath.Clean(asked.Store)}, nil
}

// serveMove moves the stock. Responses of status 102 name its stages.
func serveMove(w http.ResponseWriter, r *http.Request) error {
	o, err := serve.Of(w, r)
	if o == nil {
		return err
	}
	done, err := moveStock(o, r, stages(w))
	if err != nil {
		return serve.Refuse(w, err)
	}
	return serve.Write(w, http.StatusOK, done)
}

// undoMove ends a move that has not finished.
func undoMove(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), adminapi.MoveTimeout)
	defer cancel()
	if err := o.Runtime.UndoMove(ctx); err != nil {
		return nil, err
	}
	o.Ctx = ctx
	return map[string]bool{"undone": true}, o.Noted(nil, "a move of the stock is given up: it stays here")
}
