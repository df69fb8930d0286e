// Command line measures how orders reach a shop that takes a few at a time: with the gate's
// queue, without it, and behind nginx with limit_req. Each peer sells the same units to the same
// crowd, one after the other.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stockgate/stockgate/bench/peer"
)

type options struct {
	caddy                        string
	units, attempts, connections int
	pace, atOnce                 int
	server, load                 int // cores
	memory                       bool
}

// result is what one peer has done.
type result struct {
	Peer string `json:"peer"`
	// PerSecond is how many orders came to the shop in the full seconds while it sold.
	PerSecond struct{ Min, Median, Max int } `json:"orders_per_second"`
	Sold      int                            `json:"sold"`
	ShopSaw   int                            `json:"shop_saw"`
	Attempts  int                            `json:"attempts"`
	// Once is the share of winners who asked once.
	Once        float64 `json:"winners_who_asked_once"`
	WinnerP50   float64 `json:"winner_p50_s"`
	WinnerMax   float64 `json:"winner_max_s"`
	Losers      int     `json:"losers_told"`
	LoserP50    float64 `json:"loser_p50_s"`
	LoserMax    float64 `json:"loser_max_s"`
	Refused     int     `json:"refused_and_not_told"`
	Open        int     `json:"open_requests"`
	EdgeKiB     float64 `json:"edge_kib_per_open_request"`
	LiveKiB     float64 `json:"live_kib_per_open_request"`
	RedisKiB    float64 `json:"redis_kib_per_waiting_order"`
	TookSeconds float64 `json:"took_s"`
}

// shop takes orders as slowly as it is told to, and counts when they come.
type shop struct {
	slots chan struct{}
	takes time.Duration
	units int

	mu   sync.Mutex
	at   []time.Time
	sold int
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.at = append(s.at, time.Now())
	s.mu.Unlock()
	s.slots <- struct{}{}
	time.Sleep(s.takes)
	<-s.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sold == s.units {
		w.WriteHeader(http.StatusConflict)
		return
	}
	s.sold++
	w.WriteHeader(http.StatusCreated)
}

// perSecond counts the orders in each full second.
func (s *shop) perSecond() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.at) == 0 {
		return nil
	}
	n := make([]int, int(s.at[len(s.at)-1].Sub(s.at[0])/time.Second)+1)
	for _, at := range s.at {
		n[int(at.Sub(s.at[0])/time.Second)]++
	}
	if len(n) > 1 {
		n = n[:len(n)-1] // it was not full
	}
	return n
}

// Peers without a gate: requests are open at the shop, or wait in Caddy.
const (
	caddyAlone   = "caddy alone"
	caddyWaiting = "caddy alone, waiting"
)

// Where a peer listens, and the admin endpoint of one that is a Caddy.
const (
	port  = 18611
	admin = "127.0.0.1:18612"
)

// caddyfile has what all Caddys have in common.
const caddyfile = `{
	admin %s
	storage file_system %s
	persist_config off
	auto_https off
	log {
		level ERROR
	}
	servers {
		listener_wrappers {
			stockgate
		}
	}
	stockgate {
		redis %s {
			timeout 5s
		}
	}
}
http://127.0.0.1:%d {
	@order path /api/order
	stockgate_guard
	stockgate_status
	stockgate @order {
		buyer {header.X-User-Id}
		line {json.sku}
		hold_for 1m
		fast_refusals
		%s
	}
	reverse_proxy %s
}
`

const nginx = `worker_processes 1;
worker_rlimit_nofile 20000;
pid nginx.pid;
error_log error.log crit;
daemon off;
events { worker_connections 19000; }
http {
	access_log off;
	limit_req_zone $server_port zone=orders:1m rate=%dr/s;
	upstream shop { server %s; keepalive 64; }
	server {
		listen 127.0.0.1:%d backlog=16384;
		location /api/order {
			limit_req zone=orders burst=%d;
			limit_req_status 503;
			proxy_read_timeout 300s;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_pass http://shop;
		}
	}
}
`

func main() {
	var o options
	flag.StringVar(&o.caddy, "caddy", "bin/caddy", "the Caddy with Stockgate")
	flag.IntVar(&o.units, "units", 2000, "units for sale")
	flag.IntVar(&o.attempts, "attempts", 50_000, "attempts of all buyers, at most")
	flag.IntVar(&o.connections, "connections", 15_000, "buyers, each with a connection")
	flag.IntVar(&o.pace, "pace", 50, "orders a second that the shop takes")
	flag.IntVar(&o.atOnce, "at-once", 20, "orders that the shop works on at a time")
	flag.IntVar(&o.server, "server", 0, "core of the measured server")
	flag.IntVar(&o.load, "load", 1, "core of Redis; the crowd and the shop are in this process, pin it with taskset")
	results := flag.String("results", "", "file for the results, as JSON")
	flag.BoolVar(&o.memory, "memory", false, "only measure what open requests take: of the queue, at the shop behind the gate, and in Caddy alone, at the shop or waiting")
	flag.Parse()
	peers := []string{"queue", "no queue", "nginx limit_req"}
	if o.memory {
		peers = []string{"queue", "no queue", caddyAlone, caddyWaiting}
	}
	var all []result
	for _, name := range peers {
		r, err := run(o, name)
		if err != nil {
			log.Fatalf("%s: %v", name, err)
		}
		all = append(all, r)
		fmt.Printf("%-20s %d sold, shop saw %d, %d/%d/%d a second (min/median/max), %d attempts, %.1f %% of winners asked once, winners p50 %.1f s max %.1f s, "+
			"%d losers told p50 %.2f s max %.2f s, %d refused and not told; %d open, %.1f KiB of the edge (%.1f live) and %.1f KiB of Redis each; %.0f s\n",
			name, r.Sold, r.ShopSaw, r.PerSecond.Min, r.PerSecond.Median, r.PerSecond.Max, r.Attempts, 100*r.Once, r.WinnerP50, r.WinnerMax, r.Losers, r.LoserP50, r.LoserMax,
			r.Refused, r.Open, r.EdgeKiB, r.LiveKiB, r.RedisKiB, r.TookSeconds)
	}
	if *results != "" {
		text, err := json.MarshalIndent(all, "", "  ")
		if err == nil {
			err = os.WriteFile(*results, append(text, '\n'), 0o644)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

// run sells the units at one peer.
func run(o options, name string) (r result, err error) {
	dir, err := os.MkdirTemp("", "line")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	s := &shop{slots: make(chan struct{}, o.atOnce), takes: time.Duration(o.atOnce) * time.Second / time.Duration(o.pace), units: o.units}
	web, err := listen(s)
	if err != nil {
		return r, err
	}
	defer web.Close()
	server, err := start(o, name, dir, web.addr)
	if err != nil {
		return r, err
	}
	c, done := &crowd{options: o, addr: server.addr}, make(chan struct{})
	defer func() { <-done }() // else it would ask the next peer
	defer server.stop()
	r.Peer = name
	before := server.memory()
	began := time.Now()
	if o.memory {
		s.takes = time.Hour
	}
	go func() { c.run(); close(done) }()
	// memory when the crowd has been told, and the winners wait
	select {
	case <-done:
	case <-time.After(15 * time.Second):
	}
	after, waiting := server.memory(), server.waiting()
	r.Open = int(c.open.Load())
	if waiting > 0 {
		r.RedisKiB = float64(after.redis-before.redis) / 1024 / float64(waiting)
	}
	if o.memory { // else most of it is of connections that wait for nothing
		c.tried.Store(int64(o.attempts)) // no buyer tries again
		r.EdgeKiB = float64(after.edge-before.edge) / 1024 / float64(r.Open)
		r.LiveKiB = (after.live - before.live) / 1024 / float64(r.Open)
		return r, nil
	}
	<-done
	r.TookSeconds = time.Since(began).Seconds()
	c.report(&r)
	n := s.perSecond()
	r.ShopSaw, r.Sold = len(s.at), s.sold
	if len(n) > 0 {
		sorted := slices.Sorted(slices.Values(n))
		r.PerSecond.Min, r.PerSecond.Median, r.PerSecond.Max = sorted[0], sorted[len(sorted)/2], sorted[len(sorted)-1]
	}
	return r, nil
}

// running is a started peer.
type running struct {
	addr  string
	proc  *peer.Process
	redis *peer.Redis
}

type memory struct {
	edge, redis int64
	live        float64 // of the edge, after a garbage collection; 0 for nginx
}

func (s *running) memory() (m memory) {
	m.edge, _ = s.proc.Resident()
	if s.redis == nil {
		return m
	}
	m.live, _ = peer.Live(context.Background(), admin)
	info, _ := s.redis.Client.Info(context.Background(), "memory").Result()
	_, rest, _ := strings.Cut(info, "used_memory:")
	fmt.Sscan(rest, &m.redis)
	return m
}

// waiting is how many orders wait in Redis.
func (s *running) waiting() int64 {
	if s.redis == nil {
		return 0
	}
	return s.redis.Client.ZCard(context.Background(), "stockgate:{flash.0}:line").Val()
}

func (s *running) stop() {
	s.proc.Stop()
	if s.redis != nil {
		s.redis.Stop()
	}
}

func start(o options, name, dir, shopAddr string) (*running, error) {
	s := &running{addr: fmt.Sprint("127.0.0.1:", port)}
	var err error
	if name == "nginx limit_req" {
		file := filepath.Join(dir, "nginx.conf")
		if err = os.WriteFile(file, fmt.Appendf(nil, nginx, o.pace, shopAddr, port, o.units), 0o644); err != nil {
			return nil, err
		}
		if s.proc, err = peer.Start("nginx", o.server, dir, nil, "nginx", "-p", dir, "-c", file); err != nil {
			return nil, err
		}
		return s, s.proc.Listens(s.addr)
	}
	if s.redis, err = peer.StartRedis("redis", o.load, dir); err != nil {
		return nil, err
	}
	gate := fmt.Sprintf("queue {\n\t\t\tpace %d\n\t\t\tat_once %d\n\t\t\twait 5m\n\t\t}", o.pace, o.atOnce)
	text := caddyfile
	switch {
	case name == "no queue" && o.memory:
		gate = fmt.Sprintf("max_in_flight %d", o.connections)
	case name == "no queue":
		gate = fmt.Sprintf("max_in_flight %d", o.atOnce)
	case name == caddyAlone, name == caddyWaiting:
		head, rest, _ := strings.Cut(caddyfile, "stockgate_guard")
		_, tail, _ := strings.Cut(rest, "%s\n\t}")
		gate, text = "", head+"%s\n"+tail
	}
	if name == caddyWaiting { // each request waits in Caddy, for an upstream that does not listen
		shopAddr = "127.0.0.1:1 {\n\t\tlb_try_duration 1h\n\t\tlb_try_interval 1h\n\t}"
	}
	file := filepath.Join(dir, "Caddyfile")
	if err = os.WriteFile(file, fmt.Appendf(nil, text, admin, dir, s.redis.Addr, port, gate, shopAddr), 0o644); err != nil {
		return nil, err
	}
	if s.proc, err = peer.Start("caddy", o.server, dir, nil, o.caddy, "run", "--config", file, "--adapter", "caddyfile"); err != nil {
		return nil, err
	}
	if err = s.proc.Listens(s.addr); err != nil {
		return nil, err
	}
	return s, sell("http://"+admin, o.units)
}
