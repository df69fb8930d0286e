package peer

import (
	"context"
	"time"
)

// Setup is a case's configuration for every peer.
type Setup struct {
	Method string // of an order: GET (query and header) or POST (JSON and header)
	TLS    bool
	// InQuery: the buyer stands in the query, not in a header.
	InQuery bool
	Items   []Item
	// Starts and Ends bound the sale.
	Starts, Ends time.Time
	// Limit is how many units one buyer may buy.
	Limit int64
	// Denied buyers are refused; none: there is no denylist.
	Denied []string
	// Rate lets each buyer try once an hour (nginx: once a minute, its slowest).
	Rate bool

	Shop string // address
	Dir  string // a directory for this case
	// Server and Load are cores: that of the peer, and that of everything else.
	Server, Load int
	// Caddy is the binary.
	Caddy string
}

// Kind is the kind of a peer.
type Kind string

// The kinds.
const (
	Caddy Kind = "caddy"
	Nginx Kind = "nginx"
)

// Spec is a peer.
type Spec struct {
	Name string
	Kind Kind

	// Caddy
	Respond bool // answer 409, whatever comes
	Gate    bool // Stockgate
	Fast    bool // with its listener wrapper
	HMAC    bool // tokens by HS256; else Ed25519
	Key     bool // with an idempotency key
	NoGuard bool // without stockgate_guard
	NoFence bool // with `fence off`
	Store   bool // with `store`, whose server shares the core of Caddy
	// Durable: its Redis has each answer on the disk before it gives it, and shares the core of Caddy.
	Durable bool
	// Challenge has the options of `challenge pow`; empty: there is none.
	Challenge string
	// Asked attempts are refused as challenge.
	Asked bool
	// Solved attempts each have a solution of their own, which peers without a challenge ignore.
	Solved bool
	NoIdle bool // without Caddy's limits of how long a body or an answer may stand still
	Binary string
	Env    []string

	// nginx
	Lua  bool
	Flag bool // what is sold out is remembered in a shared dict
}

// Running is a peer that has been started.
type Running struct {
	Spec  Spec
	URL   string
	Addr  string
	Redis *Redis // nil: it needs none
	proc  *Process
	admin string
}

// Run starts a peer with all that it needs.
func (s Spec) Run(ctx context.Context, u Setup) (*Running, error) {
	if s.Kind == Nginx {
		return s.runNginx(ctx, u)
	}
	return s.runCaddy(ctx, u)
}

// CPU is the processor time of the server alone.
func (r *Running) CPU() (float64, error) { return r.proc.CPU() }

// Resident is the resident memory of the server alone, in bytes.
func (r *Running) Resident() (int64, error) { return r.proc.Resident() }

// Admin is the address of Caddy's admin endpoint.
func (r *Running) Admin() string { return r.admin }

// Log is the end of what the server has printed.
func (r *Running) Log() string { return r.proc.Log() }

// Stop ends the peer and its Redis.
func (r *Running) Stop() {
	if r.proc != nil {
		r.proc.Stop()
	}
	if r.Redis != nil {
		r.Redis.Stop()
	}
}
