package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/reservation"
)

const (
	// doctorDoubt is how old a hold in doubt may be before it is worth a warning.
	doctorDoubt = 10 * time.Minute
	// doctorCall bounds what is asked of Redis or of the ledger at a time.
	doctorCall = 5 * time.Second
)

// The levels of findings.
const (
	isOK      = "ok"
	isWarning = "warning" // it sells, and something should be looked at
	isError   = "error"   // a promise is broken, or will be
)

// finding is one thing that was looked at.
type finding struct {
	Level string `json:"level"`
	// Check is what was looked at: one word.
	Check string `json:"check"`
	// Text says how it is, and what to do about it, in one sentence.
	Text string `json:"text"`
}

// diagnosis answers GET doctor.
type diagnosis struct {
	Findings []finding `json:"findings"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
}

func (d *diagnosis) add(level, check, format string, args ...any) {
	d.Findings = append(d.Findings, finding{level, check, fmt.Sprintf(format, args...)})
	switch level {
	case isError:
		d.Errors++
	case isWarning:
		d.Warnings++
	}
}

// doctor looks at everything that this edge sees. Whatever does not answer is a
// finding, never an error of its own.
type doctor struct {
	diagnosis
	app   *App
	desk  *desk
	ctx   context.Context
	doubt time.Duration
}

func (o *operator) examine(r *http.Request) (any, error) {
	query, err := readQuery(r, "older")
	if err != nil {
		return nil, err
	}
	d := doctor{app: o.app, desk: o.desk, ctx: o.ctx, doubt: doctorDoubt}
	if query.Has("older") {
		if d.doubt, err = time.ParseDuration(query.Get("older")); err != nil || d.doubt <= 0 {
			return nil, badInput("older must be a length of time such as 10m")
		}
	}
	d.edge()
	if d.redis() {
		d.enrolment()
		d.ledger()
		d.sales()
	}
	d.gates()
	return d.diagnosis, nil
}

// call bounds one question.
func (d *doctor) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(d.ctx, doctorCall)
}

// edge says whether this edge sells.
func (d *doctor) edge() {
	if err := d.desk.Ready(); err != nil {
		d.add(isError, "edge", "this edge does not sell, its gates answer 503: %v", err)
	} else {
		d.add(isOK, "edge", "this edge may sell")
	}
	if n := d.desk.Backlog(); n > 0 {
		d.add(isWarning, "backlog", "redis does not know yet how %d forwarded attempts have ended: they are told again and again; holds of which it is never told are in doubt at their deadline", n)
	} else {
		d.add(isOK, "backlog", "redis knows how every forwarded attempt has ended")
	}
}

// redis looks at the servers. False: they do not answer, so that nothing in them can be
// looked at.
func (d *doctor) redis() bool {
	ctx, cancel := d.call()
	defer cancel()
	servers, err := d.desk.Inspect(ctx)
	if err != nil {
		d.add(isError, "redis", "%v: see that it runs, and that `redis` in the Caddyfile says where and as whom", err)
		return false
	}
	few := false
	for i := range servers {
		judgeServer(&d.diagnosis, &servers[i], d.app.options.ReplicaAcks)
		few = few || servers[i].Replicas < d.app.options.ReplicaAcks
	}
	if !few { // they are there: are they fast enough?
		if err := d.desk.CheckReplicas(ctx); err != nil {
			d.add(isError, "replicas", "buyers, the shop and operators hear 503: %v", err)
		}
	}
	if d.app.rates != nil {
		if _, err := d.desk.Rates().Inspect(ctx); err != nil {
			d.add(isError, "rate_redis", "gates with a shared rate answer 503: %v", err)
		} else {
			d.add(isOK, "rate_redis", "the redis of shared rates answers")
		}
	}
	return true
}

// enrolment says whether all edges sign with one secret.
func (d *doctor) enrolment() {
	ctx, cancel := d.call()
	defer cancel()
	if n, err := d.desk.Enrolment(ctx); err != nil {
		d.add(isError, "signing", "who signs cannot be read: %v", err)
	} else {
		judgeEnrolment(&d.diagnosis, n)
	}
	if d.app.Redis.Cluster || d.desk.embedded {
		return
	}
	if n, err := d.desk.Listeners(ctx); err != nil {
		d.add(isWarning, "edges", "how many edges listen cannot be read: %v", err)
	} else {
		d.add(isOK, "edges", "edges that listen on this redis: %d; run doctor on each of them, with --address", n)
	}
}

func judgeEnrolment(d *diagnosis, n reservation.Enrolment) {
	switch {
	case n.Signing == "":
		d.add(isError, "signing", "no edge has registered its signing key in redis: this one does when it may sell")
	case !n.Known:
		d.add(isError, "signing", "the edges sign with key %s, which this one does not have: give it the same `key`, or let all edges share Caddy's storage", n.Signing)
	case n.Signing != n.First:
		d.add(isWarning, "signing", "the key %s is registered, and this edge signs with %s: finish the change of keys on all edges, so that their `key` lines have one order", n.Signing, n.First)
	default:
		d.add(isOK, "signing", "this edge signs with the registered key %s; public keys that are published: %d", n.Signing, n.Public)
	}
}

// noSaleThere says that a sale has gone, or not come yet, since its name was read.
func noSaleThere(err error) bool { return errors.Is(err, reservation.ErrNoSale) }
