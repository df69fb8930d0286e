package rig

import "fmt"

// Site is a scenario's Caddyfile; empty fields have defaults.
type Site struct {
	Redis   string // arguments and block of `redis`
	Store   string // arguments of `store`, which stands in the place of Redis
	Shop    string // host:port behind the gate
	App     string // more of the global block
	Gate    string // more of the gate's block
	Outcome string // `outcome backend` and such; default: response, hold_for 5s
	Others  string // other sites
	Server  string // more of the global `servers` block
	Key     string // of tokens; default auto, from the shared storage
	Flights int    // max_in_flight; default 1000
	Queue   string // options of a queue, in the place of max_in_flight
	Waits   bool   // people may wait for units, at /waitlist
	Reads   string // more that the gate and the waiting list read of an attempt
}

// stock is the option that says where the stock is.
func (s *Site) stock() string {
	if s.Store != "" {
		return "store " + s.Store
	}
	return "redis " + s.Redis
}

// RedisAt is the redis option for a server with a timeout, such as "2s".
func RedisAt(addr, timeout string) string { return addr + " {\n\t\ttimeout " + timeout + "\n\t}" }

func (s Site) caddyfile(e *Edge) string {
	outcome, token := s.Outcome, ""
	if outcome == "" {
		outcome = "hold_for 5s\n\t\tforward_timeout 3s"
	}
	if s.Key != "" {
		token = "token {\n\t\tkey " + s.Key + "\n\t}"
	}
	if s.Flights == 0 {
		s.Flights = 1000
	}
	room := fmt.Sprintf("max_in_flight %d", s.Flights)
	if s.Queue != "" {
		room = "queue {\n\t\t\t" + s.Queue + "\n\t\t}"
	}
	waitlist := ""
	if s.Waits {
		waitlist = fmt.Sprintf(waitlistBlock, s.Reads)
	}
	return fmt.Sprintf(`{
	admin unix/%s
	storage file_system %s
	persist_config off
	auto_https off
	skip_install_trust
	metrics
	servers {
		protocols h1 h2c
		%s
	}
	stockgate {
		%s
		%s
		%s
	}
}
http://:%d {
	bind 127.0.0.1
	@order {
		method POST
		path /api/order
	}
	stockgate_guard
	stockgate_status
	%s
	stockgate @order main {
		buyer       {header.X-User-Id}
		region      {json.region}
		lines       {json.items} sku quantity
		idempotency {header.Idempotency-Key}
		ref         {json.order_no}
		%s
		%s
		%s
		%s
	}
	reverse_proxy %s {
		transport http {
			dial_timeout 1m
		}
	}
}
%s
`, e.socket(), e.Storage, s.Server, s.stock(), token, s.App, e.Port, waitlist, s.Reads, room, outcome, s.Gate, s.Shop, s.Others)
}

// waitlistBlock is where people wait, with what the gate reads.
const waitlistBlock = `@waitlist path /waitlist /waitlist/*
	stockgate_waitlist @waitlist wait {
		buyer       {header.X-User-Id}
		region      {json.region}
		lines       {json.items} sku quantity
		%s
	}`
