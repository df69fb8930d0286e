package app

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// storeFenceWait is how long a sale waits, when the server has started again, for edges that do not say what
// they know. Only edges of this process and of one that was killed reach the server.
const storeFenceWait = 4 * time.Second

// leastMemory is the least that a server needs for itself and a small sale.
const leastMemory = 16 << 20

// OwnStore keeps the stock on this machine: Caddy runs a redis-server for it, which no other program reaches.
type OwnStore struct {
	// Dir is the directory with all that is sold, on a disk of this machine. It is made if it does not exist, belongs to the
	// user that runs Caddy, and has nothing else in it. A relative path begins in Caddy's working directory. Required.
	Dir string `json:"dir"`
	// RedisServer is the program: Redis 7 or newer, or Valkey. Default: `redis-server` or `valkey-server` in `PATH`.
	//
	// A path, or a name in PATH. A change counts from the server's next start.
	RedisServer string `json:"redis_server,omitempty"`
	// Memory is how much the server may use, at least 16MiB; when it is full, attempts are refused. Default: 1GiB.
	Memory int64 `json:"memory,omitempty"`
	// Timeout is how long an attempt waits; then it is `unavailable`. Default: 500ms.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	dir, program string // filled
}

// provision reads the options. The directory is not touched.
func (s *OwnStore) provision(prefix string) (o shard.Options, err error) {
	if s.dir, err = directive.FillAll(s.Dir); err != nil {
		return o, fmt.Errorf("store: directory %w", err)
	}
	if s.dir == "" {
		return o, fmt.Errorf("store: no directory given; write `store /var/lib/stockgate`")
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return o, fmt.Errorf("store: %w", err)
	}
	if s.program, err = directive.FillAll(s.RedisServer); err != nil {
		return o, fmt.Errorf("store: redis_server %w", err)
	}
	if err := s.check(); err != nil {
		return o, err
	}
	o = shard.Options{Addresses: []string{edgeruntime.StoreAddress(s.dir)}, Timeout: time.Duration(s.Timeout), FenceWait: storeFenceWait, Prefix: prefix}
	return o, o.Validate()
}

// check returns what is wrong with the options as they are written.
func (s *OwnStore) check() error {
	if s.Memory != 0 && s.Memory < leastMemory {
		return fmt.Errorf("store: memory %s is too little for a sale: give it 16MiB at least", humanize.IBytes(uint64(s.Memory)))
	}
	return nil
}

// server is what an edge runtime needs to know.
func (s *OwnStore) server() *edgeruntime.StoreOptions {
	if s == nil {
		return nil
	}
	return &edgeruntime.StoreOptions{Dir: s.dir, Program: s.program, Memory: s.Memory}
}

// readStore reads the option store.
func (a *App) readStore(d *caddyfile.Dispenser, usage string) error {
	s := new(OwnStore)
	if err := directive.Text(&s.Dir)(d, usage); err != nil {
		return err
	}
	options := map[string]directive.Option{
		"redis_server": {Usage: "redis_server <program>", Read: directive.Text(&s.RedisServer)},
		"memory":       {Usage: "memory <size>", Read: directive.Size(&s.Memory)},
		"timeout":      {Usage: "timeout <duration>", Read: directive.Duration(&s.Timeout)},
	}
	for name, why := range notInStore {
		options[name] = directive.Option{Read: func(d *caddyfile.Dispenser, _ string) error {
			return d.Errf("%s does not go with store: %s; for a server that runs elsewhere write `redis`", name, why)
		}}
	}
	at := *d // where store is, for errors about all of it
	if err := directive.ReadBlock(d, options); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return at.WrapErr(err)
	}
	a.Store = s
	return nil
}

// notInStore are options of redis, with the reason why a store has none of them.
var notInStore = map[string]string{
	"address":      "Caddy runs its server, and knows where",
	"username":     "Caddy makes its users itself",
	"password":     "Caddy makes its password itself",
	"tls":          "its server has no network",
	"sentinel":     "it has one server, which no other one replaces",
	"cluster":      "it has one server",
	"replica_acks": "it has no replicas, and each answer is on the disk before it is given",
	"at_risk":      "it has no replicas that could lack what was sold",
	"fence":        "no other edge sells from it",
}
