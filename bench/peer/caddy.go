package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

//go:embed files/Caddyfile
var caddyfile string

// ErrNotBuilt reports that the Caddy binary cannot do what the peer is about.
var ErrNotBuilt = errors.New("not built")

func (s Spec) runCaddy(ctx context.Context, u Setup) (*Running, error) {
	dir := filepath.Join(u.Dir, s.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	r := &Running{Spec: s, Addr: addr, URL: "http://" + addr}
	host := addr
	if u.TLS { // a name, so that clients send it (SNI)
		host = fmt.Sprintf("localhost:%d", portOf(addr))
		r.URL = "https://" + host
		if err := certify(dir); err != nil {
			return nil, err
		}
	}
	if r.admin, err = freeAddress(); err != nil {
		return nil, err
	}
	binary := s.Binary
	if binary == "" {
		binary = u.Caddy
	}
	config := filepath.Join(dir, "Caddyfile")
	err = func() error {
		data := map[string]any{
			"Admin": r.admin, "Dir": dir, "Fast": s.Fast, "Gate": s.Gate, "HMAC": s.HMAC, "Guard": !s.NoGuard, "NoFence": s.NoFence, "Store": s.Store, "NoIdle": s.NoIdle, "Respond": s.Respond, "Key": s.Key, "Challenge": s.Challenge,
			"Deny": len(u.Denied) > 0, "Rate": u.Rate, "TLS": u.TLS, "Host": host, "Method": u.Method, "InQuery": u.InQuery, "Shop": u.Shop, "Redis": "",
		}
		if s.Gate {
			if err := s.builtIn(ctx, binary); err != nil {
				return err
			}
			if err := s.startRedis(r, u, dir); err != nil {
				return err
			}
			if r.Redis != nil {
				data["Redis"] = r.Redis.Addr
			}
		}
		if err := writeLines(filepath.Join(dir, "denied.txt"), len(u.Denied), func(i int) string { return "buyer:" + u.Denied[i] }); err != nil {
			return err
		}
		if err := render(config, caddyfile, data); err != nil {
			return err
		}
		if r.proc, err = Start(s.Name, u.Server, dir, s.Env, binary, "run", "--config", config, "--adapter", "caddyfile"); err != nil {
			return err
		}
		if err := r.proc.Listens(addr); err != nil {
			return err
		}
		if u.TLS {
			if err := r.handshakes(ctx); err != nil {
				return err
			}
		}
		if !s.Gate {
			return nil
		}
		if s.Store {
			if r.Redis, err = redisOfStore(filepath.Join(dir, "stock")); err != nil {
				return err
			}
		}
		if err := r.open(ctx); err != nil {
			return err
		}
		return r.applySales(ctx, u)
	}()
	if err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// startRedis starts the Redis of a gate that does not run one itself.
func (s Spec) startRedis(r *Running, u Setup, dir string) (err error) {
	switch {
	case s.Store:
	case s.Durable:
		r.Redis, err = StartRedis("redis", u.Server, dir, "--appendonly", "yes", "--appendfsync", "always")
	default:
		r.Redis, err = StartRedis("redis", u.Load, dir)
	}
	return err
}

// builtIn reports whether the binary has what the peer needs. What it does not know yet,
// it refuses to adapt.
func (s Spec) builtIn(ctx context.Context, binary string) error {
	if s.Fast {
		modules, err := exec.CommandContext(ctx, binary, "list-modules").Output()
		if err != nil {
			return fmt.Errorf("%s list-modules: %w", binary, err)
		}
		if !strings.Contains(string(modules), "caddy.listeners.stockgate") {
			return fmt.Errorf("%w: %s has no fast refusals", ErrNotBuilt, filepath.Base(binary))
		}
	}
	if s.Key {
		site := "{\n\tstockgate {\n\t\tredis 127.0.0.1:1\n\t}\n}\n:80 {\n\tstockgate {\n\t\tbuyer a\n\t\tline b\n\t\tidempotency {header.Idempotency-Key}\n\t}\n}\n"
		adapt := exec.CommandContext(ctx, binary, "adapt", "--adapter", "caddyfile", "--config", "-")
		adapt.Stdin = strings.NewReader(site)
		switch out, err := adapt.CombinedOutput(); {
		case err != nil && bytes.Contains(out, []byte("unrecognized subdirective")):
			return fmt.Errorf("%w: %s has no idempotency keys", ErrNotBuilt, filepath.Base(binary))
		case err != nil:
			return fmt.Errorf("%s adapt: %w: %s", binary, err, out)
		}
	}
	return nil
}

// handshakes waits until Caddy has loaded its certificate.
func (r *Running) handshakes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"}} // it signs itself
	for tick := time.Tick(20 * time.Millisecond); ; {
		c, err := d.DialContext(ctx, "tcp", r.Addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no TLS: %w: %s", err, r.Log())
		case <-tick:
		}
	}
}

// applySales loads the items, as many sales as they need, and opens them.
func (r *Running) applySales(ctx context.Context, u Setup) error {
	for from := 0; from < len(u.Items); from += sale.MaxItems {
		items := u.Items[from:min(from+sale.MaxItems, len(u.Items))]
		s := &sale.Sale{
			ID: SaleID(from), StartsAt: u.Starts, EndsAt: u.Ends, Items: make([]sale.Item, len(items)),
			Limits: []sale.Limit{{Per: "buyer", Every: "sale", Count: "units", Max: u.Limit}},
		}
		for i, item := range items {
			s.Items[i] = sale.Item{SKU: item.SKU, Stock: item.Stock}
		}
		if err := r.Apply(ctx, s, u.Method); err != nil {
			return err
		}
	}
	return nil
}
