// Package selfcheck plays the recording of a purchase to the configuration that was learned from it: in
// this process, with an embedded Redis, before a shop that answers as it was recorded.
package selfcheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	_ "github.com/stockgate/stockgate/caddymodule" // what the configuration has
	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/learn"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Checked is what the check has seen.
type Checked struct {
	Warnings []string          // of Caddy about the configuration
	Problems []string          // requests that did not go as they were recorded
	Passed   int               // requests that passed untouched
	Doubts   []*learn.Exchange // refused orders whose units are in doubt
	Removed  []RemovedField
	Closed   []*learn.Exchange // requests that the configuration of a known shop answers with 404
}

// RemovedField is a field of a request's header that does not reach the shop.
type RemovedField struct {
	Request *learn.Exchange
	Field   string
}

// grace bounds how long one request, and each step of starting and ending, may take.
const grace = 30 * time.Second

// Run checks a configuration. It needs the Caddy of this process for itself. An error says why the check
// could not run; what it finds is in the result.
func Run(ctx context.Context, l *learn.Learned) (*Checked, error) {
	dir, err := os.MkdirTemp("", "learn")
	if err != nil {
		return nil, err
	}
	c := &check{learned: l, dir: dir, out: new(Checked)}
	err = c.run(ctx)
	return c.out, errors.Join(err, c.close())
}

type check struct {
	learned *learn.Learned
	dir     string
	shop    *shop
	edge    *edge.Edge
	prefix  string // of the keys: each time another one
	out     *Checked
}

// begun counts the edges of this process. An edge may still release its embedded Redis when the next one begins, and
// signs with another key.
var begun atomic.Int64

func (c *check) run(ctx context.Context) error {
	if err := c.adapt(); err != nil {
		return err
	}
	var err error
	if c.shop, err = openShop(c.learned); err != nil {
		return err
	}
	for _, x := range c.learned.Refused {
		if err := c.begin(ctx); err != nil {
			return err
		}
		if err := c.refused(ctx, x); err != nil {
			return err
		}
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	return c.play(ctx)
}

// begin runs the configuration with a sale of which nothing is sold.
func (c *check) begin(ctx context.Context) error {
	c.prefix = fmt.Sprint("check", begun.Add(1))
	if err := c.load(); err != nil {
		return err
	}
	return c.openSale(ctx)
}

// adapt adapts the configuration as operators get it, for its warnings.
func (c *check) adapt() error {
	_, warnings, err := adapted(c.learned.Caddyfile(learn.Addresses{}))
	if err != nil {
		return fmt.Errorf("the Caddyfile that was learned is wrong: %w", err)
	}
	for _, w := range warnings {
		c.warn(w.Message)
	}
	return nil
}

func (c *check) warn(message string) {
	for _, known := range c.out.Warnings {
		if strings.Contains(message, known) || strings.Contains(known, message) {
			return
		}
	}
	c.out.Warnings = append(c.out.Warnings, message)
}

func adapted(text string) ([]byte, []caddyconfig.Warning, error) {
	return caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
}

// Keys of the check: no recording has the keys of the shop and of its provider.
const (
	tokenSecret   = "a-secret-of-this-check-only-32-bytes-long"
	webhookSecret = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
)

const globalOptions = `	admin off
	persist_config off
	auto_https off
	storage file_system %s
	log default {
		level PANIC
	}
	log check {
		output file %s
		format json
		include http.handlers
	}`

// load runs the configuration before the recorded shop.
func (c *check) load() error {
	target := learn.Addresses{
		Global: fmt.Sprintf(globalOptions, c.path("storage"), c.path("log")), Store: "redis embedded {\n\ttimeout 20s\n}\nkey_prefix " + c.prefix, Site: "http://", Bind: "unix/" + c.socket(), Shop: c.shop.address(),
		TokenKey: "hmac " + tokenSecret, Webhook: webhookSecret,
	}
	config, _, err := adapted(c.learned.Caddyfile(target))
	if err == nil {
		err = caddy.Load(config, true)
	}
	if err != nil {
		return fmt.Errorf("the Caddyfile that was learned does not load: %w", err)
	}
	return c.readLog()
}

// socket is where the site listens: servers of the last configuration may still accept.
func (c *check) socket() string { return c.path(c.prefix) }

func (c *check) path(name string) string { return filepath.Join(c.dir, name) }

// openSale opens the sale of the recorded order.
func (c *check) openSale(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	c.edge = app.Active().Runtime().Edge
	if err := c.edge.Refresh(ctx); err != nil {
		return err
	}
	now, day := time.Now(), 24*time.Hour
	parsed, err := sale.Parse([]byte(c.learned.SaleFile(learn.Window{From: now.Add(-day), To: now.Add(day), Stock: 100_000})))
	if err != nil {
		return fmt.Errorf("the sale file that was learned is wrong: %w", err)
	}
	parsed.Limits = nil // a refused order is followed by one that is taken
	if _, err := c.edge.ApplyUnlessLost(ctx, parsed, reservation.ApplyOptions{By: "learn"}); err != nil {
		return err
	}
	if err := c.edge.Store.SetStatus(ctx, learn.SaleID, sale.Open, "learn"); err != nil {
		return err
	}
	return c.edge.Refresh(ctx)
}

// close ends what the check has started.
func (c *check) close() error {
	err := caddy.Stop()
	if c.shop != nil {
		err = errors.Join(err, c.shop.close())
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}
