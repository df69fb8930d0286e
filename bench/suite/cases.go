package suite

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"path"
	"time"

	"github.com/stockgate/stockgate/bench/load"
	"github.com/stockgate/stockgate/bench/measure"
	"github.com/stockgate/stockgate/bench/peer"
)

// scenario is one case, hence one table: what is asked, of whom, and what must be answered.
type scenario struct {
	name, about string
	measure     func(context.Context, *bench, scenario, *measure.Case) error
	peers       func(*bench) []peer.Spec
	extra       bool // only when it is asked for by name

	method  string // default POST
	tls     bool
	h2      bool
	streams int   // on a connection, with HTTP/2; 0: all on one
	skus    int   // how many items are known; 0: one
	sizes   []int // for each of these numbers of items a peer of its own; the first is skus
	unknown bool  // no sale lists the item
	resume  bool  // each connection resumes a TLS session
	stock   int64
	starts  time.Duration // from now; default: an hour ago
	buyers  int           // how many there are; default: as many as items, at least fewBuyers
	deny    bool
	rate    bool
	accept  bool // every attempt is by another buyer, and reaches the shop
	want    load.Answer
	// stray is the share of answers that may be others: where a rate lets some pass, or where one
	// buyer has several attempts under way.
	stray float64
}

func peers(specs ...peer.Spec) func(*bench) []peer.Spec {
	return func(*bench) []peer.Spec { return specs }
}

var (
	soldOut  = load.Answer{Status: http.StatusConflict, Says: "sold_out"}
	accepted = load.Answer{Status: http.StatusOK, Says: "ok"}
	unsolved = load.Answer{Status: http.StatusForbidden, Says: "challenge"}
	refusing = peers(nginxDict, nginxEvalsha, caddyRespond, gate, gateFast)
	plenty   = int64(1_000_000_000)
)

const (
	// mostRequests is how many different requests a load generator has at hand. LuaJIT
	// hashes a few bytes of long strings: wrk would take half a minute for 131,072 of them.
	mostRequests = 1 << 15
	// fewBuyers are enough that none has two attempts under way: a gate would refuse
	// the second as a duplicate.
	fewBuyers = 1000
)

func cases() []scenario {
	all := []scenario{
		{name: "sold-out-post", about: "one item, sold out; POST with JSON", peers: refusing, stock: 1, want: soldOut},
		{name: "sold-out-get", about: "one item, sold out; GET with query and header", method: "GET", peers: refusing, stock: 1, want: soldOut},
		{name: "not-started", about: "the sale begins tomorrow; POST", peers: peers(nginxDict, gate, gateFast), stock: 1, starts: 24 * time.Hour,
			want: load.Answer{Status: http.StatusConflict, Says: "not_started"}},
		{name: "rate-limited", about: "100 buyers beyond their rate; POST", peers: peers(nginxDict, gate, gateFast), rate: true, buyers: 100,
			want: load.Answer{Status: http.StatusTooManyRequests, Says: "rate_limited"}, stray: 0.01},
		{name: "denied", about: "10,000 buyers on a list; POST", peers: peers(nginxDict, gate, gateFast), deny: true, buyers: 10_000,
			want: load.Answer{Status: http.StatusForbidden, Says: "denied"}},
		{name: "accepted-post", about: "reserved, proxied and confirmed, each by another buyer; POST with JSON",
			peers: peers(caddyProxy, nginxProxy, nginxEvalsha, gate, gateHS256), stock: plenty, accept: true, want: accepted},
		{name: "accepted-get", about: "the same; GET with query and header", method: "GET",
			peers: peers(caddyProxy, nginxProxy, nginxEvalsha, gate, gateHS256), stock: plenty, accept: true, want: accepted},
		{name: "accepted-key", about: "the same with an idempotency key; POST with JSON",
			peers: peers(caddyProxy, gate, gateKey, gateKeyHS256), stock: plenty, accept: true, want: accepted},
	}
	all = append(all,
		scenario{name: "known", about: "1, 10,000 and 1,000,000 items, all sold out; 32,768 requests, each by another buyer; POST", peers: peers(nginxDict, gate, gateFast),
			sizes: []int{1, 10_000, 1_000_000}, buyers: mostRequests, want: soldOut},
		scenario{name: "unknown-1m", about: "an item that none of 1,000,000 is; POST", peers: peers(nginxDict, gate, gateFast), skus: 1_000_000, unknown: true,
			want: load.Answer{Status: http.StatusNotFound, Says: "unknown_item"}},
		scenario{name: "tls-h1", about: "sold out; POST by HTTP/1.1 over TLS", peers: peers(nginxDict, caddyRespond, gate, gateFast), stock: 1, tls: true, want: soldOut},
		scenario{name: "tls-h2", about: "sold out; POST by HTTP/2 over TLS, one request at a time on each connection", peers: peers(nginxDict, caddyRespond, gate, gateFast),
			stock: 1, tls: true, h2: true, streams: 1, want: soldOut, stray: 0.01},
		scenario{name: "tls-h2-one", about: "the same, all requests on one connection", peers: peers(nginxDict, caddyRespond, gate, gateFast),
			stock: 1, tls: true, h2: true, want: soldOut},
	)
	all = append(all, connecting()...)
	all = append(all,
		scenario{name: "whole-sale", about: "1,000 units, every attempt by another buyer, until all are refused", measure: wholeSale,
			peers: peers(nginxDict, nginxEvalsha, gate, gateFast)},
		scenario{name: "store", about: "each answer on the disk: `store` beside a redis-server with appendfsync always, both on Caddy's core; reserved, proxied and confirmed; POST with JSON",
			measure: durable, peers: peers(gateDurable, gateStore), stock: plenty, accept: true, want: accepted},
		scenario{name: "reserve", about: "reservations in Redis, which has a core for itself", measure: reserve},
		scenario{name: "levers-refuse", about: "what settings are worth: sold out; POST", extra: true, peers: variants, stock: 1, want: soldOut},
		scenario{name: "guard", about: "what stockgate_guard costs: sold out; POST", extra: true, peers: guarded, stock: 1, want: soldOut},
		scenario{name: "fence", about: "what the fence costs: reserved, proxied and confirmed; POST", extra: true, peers: fenced, stock: plenty, accept: true, want: accepted},
		scenario{name: "keyed", about: "what an idempotency key costs: sold out; POST", extra: true, peers: peers(gate, gateKey, gateFast, gateFastKey), stock: 1, want: soldOut},
		scenario{name: "challenge", about: "what a challenge costs a refusal, where it asks no attempt and where it asks all: sold out, or challenge; POST",
			extra: true, peers: challenged, stock: 1, want: soldOut, stray: 0.001},
		// when wrk has sent all solutions, each connection may send one more that was used
		scenario{name: "challenge-solved", about: "the same for attempts that bring a solution: sold out; POST", extra: true, peers: solved, stock: 1, buyers: mostRequests,
			want: soldOut, stray: 0.004},
		scenario{name: "levers-accept", about: "what settings are worth: reserved, proxied and confirmed", extra: true, peers: variants, stock: plenty, accept: true, want: accepted},
	)
	for i := range all {
		if all[i].measure == nil {
			all[i].measure = interleaved
		}
		if all[i].method == "" {
			all[i].method = "POST"
		}
		all[i].skus = max(1, all[i].skus)
		if all[i].streams == 0 {
			all[i].streams = math.MaxInt
		}
		if all[i].buyers == 0 {
			all[i].buyers = max(fewBuyers, all[i].skus)
		}
	}
	return all
}

// Names are the cases with their descriptions.
func Names() [][2]string {
	var names [][2]string
	for _, c := range cases() {
		names = append(names, [2]string{c.name, c.about})
	}
	return names
}

// choose finds cases by names or patterns.
func choose(patterns []string) ([]scenario, error) {
	var chosen []scenario
	used := make([]bool, len(patterns))
	for _, c := range cases() {
		take := len(patterns) == 0 && !c.extra
		for i, p := range patterns {
			match, err := path.Match(p, c.name)
			if err != nil {
				return nil, fmt.Errorf("the case %q: %w", p, err)
			}
			if match {
				used[i], take = true, true
			}
		}
		if take {
			chosen = append(chosen, c)
		}
	}
	for i, ok := range used {
		if !ok {
			return nil, fmt.Errorf("there is no case %q; see -list", patterns[i])
		}
	}
	return chosen, nil
}

// inSizes are the variants of a case by how many items are known, each with what it adds to
// a peer's name.
func (c scenario) inSizes(yield func(label string, s scenario) bool) {
	if len(c.sizes) == 0 {
		yield("", c)
		return
	}
	for _, n := range c.sizes {
		c.skus = n
		if !yield("-"+measure.Short(n), c) {
			return
		}
	}
}

// setup is what a case asks of its peers.
func (c scenario) setup(b *bench, dir string) peer.Setup {
	starts := c.starts
	if starts == 0 {
		starts = -time.Hour
	}
	now := time.Now().Truncate(time.Second)
	u := peer.Setup{
		Method: c.method, TLS: c.tls, InQuery: c.h2, Starts: now.Add(starts), Ends: now.Add(starts + 48*time.Hour), Limit: 2, Rate: c.rate,
		Shop: b.shop.Addr, Dir: dir, Server: b.Server, Load: b.Load, Caddy: b.Caddy,
	}
	for i := range c.skus {
		u.Items = append(u.Items, peer.Item{SKU: sku(i), Stock: c.stock})
	}
	if c.deny {
		for i := range c.buyers {
			u.Denied = append(u.Denied, buyer(i))
		}
	}
	return u
}

// orders is what a case asks for. The i-th request is about an item somewhere among
// all, so that a table shorter than the catalogue reaches all parts of it.
func (c scenario) orders(host string) (o load.Orders, requests int) {
	requests = min(max(c.skus, c.buyers), mostRequests)
	const far = 1_000_003 // prime
	o = load.Orders{Method: c.method, Host: host}
	o.SKU = func(i int) string {
		if c.unknown {
			return fmt.Sprintf("none%08d", i*far%c.skus)
		}
		return sku(i * far % c.skus)
	}
	o.Buyer = func(i int) string { return buyer(i * far % c.buyers) }
	if c.accept {
		o.Buyer = func(int) string { return "b" + load.Mark }
	}
	return o, requests
}

func sku(i int) string   { return fmt.Sprintf("sku-%08d", i) }
func buyer(i int) string { return fmt.Sprintf("buyer-%08d", i) }
