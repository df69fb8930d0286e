// Package doctor examines what an edge sees: itself, Redis, the ledger, its sales and its gates.
package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// Doubt is how old a hold in doubt may be before it is worth a warning.
	Doubt = 10 * time.Minute
	// callWithin bounds what is asked of Redis or of the ledger at a time.
	callWithin = 5 * time.Second
)

// examination examines everything that this edge sees. What does not answer is a finding, never
// an error.
type examination struct {
	adminapi.Diagnosis
	app     *app.App
	runtime *edgeruntime.Runtime
	ctx     context.Context
	doubt   time.Duration
}

// Examine returns the findings about an edge runtime and the app that it runs for. Holds in doubt that are older than
// doubt are a warning.
func Examine(ctx context.Context, a *app.App, runtime *edgeruntime.Runtime, doubt time.Duration) adminapi.Diagnosis {
	d := examination{app: a, runtime: runtime, ctx: ctx, doubt: doubt}
	d.all()
	return d.Diagnosis
}

func (d *examination) all() {
	d.edge()
	d.bypasses()
	if d.redis() {
		d.enrolment()
		d.silentEdges()
		d.counted()
		d.ledger()
		d.outbox()
		d.notices()
		d.sales()
	}
	d.gates()
}

// call returns the context of one question to Redis or the ledger.
func (d *examination) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(d.ctx, callWithin)
}

// edge examines whether this edge sells.
func (d *examination) edge() {
	if err := d.runtime.Ready(); err != nil {
		d.Add(adminapi.LevelError, "edge", "this edge does not sell, its gates answer 503: %v", err)
	} else {
		d.Add(adminapi.LevelOK, "edge", "this edge may sell")
	}
	if n := d.runtime.Backlog(); n > 0 {
		d.Add(adminapi.LevelWarning, "backlog", "redis does not know yet how %d forwarded attempts have ended: they are told again and again; holds of which it is never told are in doubt at their deadline", n)
	} else {
		d.Add(adminapi.LevelOK, "backlog", "redis knows how every forwarded attempt has ended")
	}
}

// redis examines the servers. It returns false where they do not answer, so that nothing in
// them can be examined.
func (d *examination) redis() bool {
	own := d.store()
	ctx, cancel := d.call()
	defer cancel()
	servers, err := d.runtime.Store.Shard().Inspect(ctx)
	if err != nil {
		advice := "see that it runs, and that `redis` in the Caddyfile says where and as whom"
		switch {
		case own:
			advice = "see the finding about the store"
		case d.runtime.Store.Shard().AnswersTLS(ctx):
			advice = "its port has TLS: write `tls` in `redis`"
		}
		d.Add(adminapi.LevelError, "redis", "%v: %s", err, advice)
		return false
	}
	few := false
	for i := range servers {
		judgeServer(&d.Diagnosis, &servers[i], d.app.RedisOptions().ReplicaAcks)
		few = few || servers[i].Replicas < d.app.RedisOptions().ReplicaAcks
	}
	if !few { // enough are connected: are they fast enough?
		if err := d.runtime.Store.Shard().CheckReplicas(ctx); err != nil {
			d.Add(adminapi.LevelError, "replicas", "buyers, the shop and operators hear 503: %v", err)
		}
	}
	d.topology()
	if d.app.CountsRatesApart() {
		if _, err := d.runtime.Rates().Shard().Inspect(ctx); err != nil {
			advice := "see that it runs, and that `rate_redis` says where and as whom"
			if d.runtime.Rates().Shard().AnswersTLS(ctx) {
				advice = "its port has TLS: write `tls` in `rate_redis`"
			}
			d.Add(adminapi.LevelError, "rate_redis", "gates with a shared rate answer 503: %v: %s", err, advice)
		} else {
			d.Add(adminapi.LevelOK, "rate_redis", "the redis of shared rates answers")
		}
	}
	return true
}

// enrolment examines whether all edges sign with one secret.
func (d *examination) enrolment() {
	ctx, cancel := d.call()
	defer cancel()
	if n, err := d.runtime.Enrolment(ctx); err != nil {
		d.Add(adminapi.LevelError, "signing", "the signing keys of the edges cannot be read: %v", err)
	} else {
		judgeEnrolment(&d.Diagnosis, n)
	}
	if d.app.RedisOptions().Cluster || d.runtime.IsLocal() {
		return
	}
	if n, err := d.runtime.Store.Shard().Listeners(ctx); err != nil {
		d.Add(adminapi.LevelWarning, "edges", "how many edges listen cannot be read: %v", err)
	} else {
		d.Add(adminapi.LevelOK, "edges", "edges that listen on this redis: %d; run doctor on each of them, with --address", n)
	}
}

func judgeEnrolment(d *adminapi.Diagnosis, n edge.Enrolment) {
	switch {
	case n.Signing == "":
		d.Add(adminapi.LevelError, "signing", "no edge has registered its signing key in redis: this one does when it may sell")
	case !n.Known:
		d.Add(adminapi.LevelError, "signing", "the edges sign with key %s, which this one does not have: give it the same `key`, or let all edges share Caddy's storage; if that key is lost, 'caddy stockgate key replace' says what replacing it costs", n.Signing)
	case n.Signing != n.First:
		d.Add(adminapi.LevelWarning, "signing", "the key %s is registered, and this edge signs with %s: finish the change of keys on all edges, so that their `key` lines have one order", n.Signing, n.First)
	default:
		d.Add(adminapi.LevelOK, "signing", "this edge signs with the registered key %s; public keys that are published: %d", n.Signing, n.Public)
	}
}

// noSaleThere reports whether Redis does not have the sale: it was lost, or not yet loaded,
// when its name was read.
func noSaleThere(err error) bool { return errors.Is(err, shard.ErrNoSale) }
