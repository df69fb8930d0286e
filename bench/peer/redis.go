package peer

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/bench/measure"
)

// ReserveScript gets, checks and decrements, with a purchase limit: KEYS stock and
// bought, ARGV sku, quantity, buyer and limit.
//
//go:embed files/reserve.lua
var ReserveScript string

// Redis is one redis-server. Unless a case is about that, it writes nothing to disk: no peer is slowed
// down by how another one's data is kept.
type Redis struct {
	*Process // nil: Caddy runs it
	Addr     string
	Client   *redis.Client
}

// StartRedis runs a redis-server on a core. Options come after its usual ones.
func StartRedis(name string, core int, dir string, options ...string) (*Redis, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	p, err := Start(name, core, dir, nil, "redis-server", append([]string{
		"--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction",
	}, options...)...)
	if err != nil {
		return nil, err
	}
	if err := p.Listens(addr); err != nil {
		p.Stop()
		return nil, err
	}
	return &Redis{p, addr, redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})}, nil
}

// redisOfStore is the server that Caddy runs for `store`, by the user that may look at the data.
func redisOfStore(dir string) (*Redis, error) {
	password, err := os.ReadFile(filepath.Join(dir, "password"))
	if err != nil {
		return nil, err
	}
	addr := filepath.Join(dir, "redis.sock")
	return &Redis{Addr: addr, Client: redis.NewClient(&redis.Options{
		Network: "unix", Addr: addr, Username: "stockgate", Password: strings.TrimSpace(string(password)), Protocol: 2,
	})}, nil
}

// Stop ends the server.
func (r *Redis) Stop() {
	_ = r.Client.Close()
	if r.Process != nil {
		r.Process.Stop()
	}
}

// Calls is what the server has run so far.
func (r *Redis) Calls(ctx context.Context) (measure.Calls, error) {
	info, err := r.Client.Info(ctx, "commandstats").Result()
	if err != nil {
		return measure.Calls{}, err
	}
	return measure.CommandStats(info)
}

// NetBytes is how many bytes the server has received and sent so far.
func (r *Redis) NetBytes(ctx context.Context) (int64, error) {
	info, err := r.Client.Info(ctx, "stats").Result()
	if err != nil {
		return 0, err
	}
	return measure.NetBytes(info)
}

// Fill loads stock for ReserveScript and returns the script's hash.
func (r *Redis) Fill(ctx context.Context, items []Item) (sha string, err error) {
	for len(items) > 0 {
		n := min(len(items), 10_000)
		pairs := make([]any, 0, 2*n)
		for _, item := range items[:n] {
			pairs = append(pairs, item.SKU, item.Stock)
		}
		if err := r.Client.HSet(ctx, "stock", pairs...).Err(); err != nil {
			return "", err
		}
		items = items[n:]
	}
	return r.Client.ScriptLoad(ctx, ReserveScript).Result()
}

// Item is what is sold.
type Item struct {
	SKU   string
	Stock int64
}

// writeLines writes a file with a line for each of n.
func writeLines(name string, n int, line func(i int) string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for i := range n {
		w.WriteString(line(i))
		w.WriteByte('\n')
	}
	if err := w.Flush(); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", name, err)
	}
	return f.Close()
}

func portOf(addr string) int {
	port, _ := strconv.Atoi(addr[strings.LastIndexByte(addr, ':')+1:])
	return port
}
