package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	_ "github.com/stockgate/stockgate/caddymodule" // what the demo's Caddyfile has
	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/token"
)

// orderRoute is the order route of the demo's shop.
const orderRoute = "/api/order"

// listRoute is where buyers enter the waiting list.
const listRoute = "/waitlist"

// siteFile is the demo's Caddyfile, for Redis, port, host, order route and the
// shop's address.
const siteFile = `{
	stockgate {
		%s
	}
}

http://:%s {
	bind %s
	@order {
		method POST
		path   %s
	}
	stockgate_guard
	stockgate_status%s
	stockgate @order {
		buyer {header.X-User-Id}  # a demo: buyers do not sign in
		line  {json.sku} {json.quantity}
		max_in_flight 4096        # the whole crowd at once%s
	}
	reverse_proxy %s
}
`

// listFile is the waiting list of the site.
const listFile = `
	@waitlist path /waitlist /waitlist/*
	stockgate_waitlist @waitlist {
		buyer {header.X-User-Id}
		line  {json.sku} {json.quantity}
	}`

// patientGate is what the gate has besides with a waiting list.
const patientGate = `
		hold_for      5m          # payments wait for the crowd`

// pageFile is the site of the dashboard, which only this machine reaches.
const pageFile = `
http://:%s {
	bind 127.0.0.1
	stockgate_dashboard {
		unprotected  # a demo: operators do not sign in
		acts
	}
}
`

// redisBlock is the part of siteFile about Redis.
const redisBlock = `redis %s {
			timeout 1m  # Redis, shop and crowd share this machine
		}`

// openSite opens the shop and the gate in front of it, and returns the Caddyfile without
// passwords.
func (d *demo) openSite() (shown string, err error) {
	host, port, err := freeAddress(d.Listen)
	if err != nil {
		return "", err
	}
	d.site = "http://" + net.JoinHostPort(reachable(host), port)
	behind, err := d.openShop()
	if err != nil {
		return "", err
	}
	bind := host
	if bind == "" {
		bind = "0.0.0.0 ::"
	}
	address, prefix := d.Redis, "\n\t\tkey_prefix "+d.prefix
	if address == "" {
		address, prefix = "embedded", ""
	}
	pages := ""
	if !d.Once {
		_, pagePort, err := freeAddress("127.0.0.1:0")
		if err != nil {
			return "", err
		}
		d.page, pages = "http://127.0.0.1:"+pagePort+"/", fmt.Sprintf(pageFile, pagePort)
	}
	list, patient := "", ""
	if d.Waitlist {
		list, patient = listFile, patientGate
	}
	write := func(address string) string {
		return fmt.Sprintf(siteFile, fmt.Sprintf(redisBlock, address)+prefix, port, bind, orderRoute, list, patient, behind) + pages
	}
	return write(hidePassword(address)), d.startCaddy(write(address))
}

// openShop starts the shop on a free port. It gets the gate's public keys from
// the site, like any shop, when the first order comes.
func (d *demo) openShop() (address string, err error) {
	keys, err := token.NewRemoteKeys(token.RemoteOptions{URL: d.site + "/.well-known/jwks.json"})
	if err != nil {
		return "", err
	}
	verifier, err := token.NewVerifier(token.Options{Audience: app.DefaultAudience, Remote: keys})
	if err != nil {
		return "", err
	}
	pays := ""
	if d.Waitlist {
		pays = "delay=300ms,status=402:0.33" // a payment takes its time, and one in three fails
	}
	if d.shop, err = shop.New(shop.Options{Verifier: verifier, Misbehave: pays}); err != nil {
		return "", err
	}
	d.atEnd(func(context.Context) error { return d.shop.Close() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	var handler http.Handler = d.shop
	if d.Waitlist {
		handler = d.paidLate(handler)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ErrServerClosed, when it is closed
	}()
	d.atEnd(func(context.Context) error {
		err := server.Close()
		<-done
		return err
	})
	return listener.Addr().String(), nil
}

// latestPaid is how long payments wait for the crowd.
const latestPaid = 30 * time.Second

// paidLate lets payments wait until most of those who found all units held are on the waiting list: how fast the machine
// is does not matter then.
func (d *demo) paidLate(shop http.Handler) http.Handler {
	most := (d.crowd().Concurrency - int(d.Stock)) * 2 / 3
	if most <= 0 {
		return shop
	}
	var waited sync.Once
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		waited.Do(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), latestPaid)
			defer cancel()
			for look := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil && d.onList() < most; {
				select {
				case <-look.C:
				case <-ctx.Done():
				}
			}
		})
		shop.ServeHTTP(w, r)
	})
}

// onList is how many people are on the waiting list.
func (d *demo) onList() (people int) {
	if l, ok := d.edge.Catalogue().Sale(crowdSale); ok {
		people, _, _ = d.edge.OnList(l)
	}
	return people
}

// startCaddy runs the Caddyfile in this process, without an admin endpoint, and with a storage
// that is removed at the end.
func (d *demo) startCaddy(text string) error {
	dir, err := os.MkdirTemp("", "stockgate-demo-")
	if err != nil {
		return err
	}
	d.atEnd(func(context.Context) error { return os.RemoveAll(dir) })
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return err
	}
	var config caddy.Config
	if err := json.Unmarshal(adapted, &config); err != nil {
		return err
	}
	never := false
	config.Admin = &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: &never}}
	config.StorageRaw = caddyconfig.JSONModuleObject(map[string]string{"root": dir}, "module", "file_system", nil)
	config.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{
		// the warnings that the endpoint is off, and that the buyers name themselves, are expected
		"default": {BaseLog: caddy.BaseLog{Level: "WARN"}, Exclude: []string{"admin", "http.handlers.stockgate", "http.handlers.stockgate_waitlist"}},
	}}
	if err := withoutTLS(&config); err != nil {
		return err
	}
	if err := caddy.Run(&config); err != nil {
		return fmt.Errorf("starting caddy: %w", err)
	}
	d.atEnd(func(ctx context.Context) error {
		edge := app.Active().Runtime()
		err := caddy.Stop()
		// Caddy does not wait for attempts in flight, but the keys must not be removed before them.
		edge.Wait(ctx)
		return errors.Join(err, edge.Stop(ctx))
	})
	return nil
}

// withoutTLS leaves out what only TLS needs: Caddy would warn that there is no TLS, and clean
// the storage while the demo removes it.
func withoutTLS(config *caddy.Config) error {
	var app caddyhttp.App
	if err := json.Unmarshal(config.AppsRaw["http"], &app); err != nil {
		return err
	}
	for _, server := range app.Servers {
		server.Protocols = []string{"h1"}
	}
	config.AppsRaw["http"] = caddyconfig.JSON(app, nil)
	config.AppsRaw["tls"] = caddyconfig.JSON(caddytls.TLS{DisableStorageClean: true}, nil)
	return nil
}

// freeAddress checks that no process listens on an address, and finds a port for port 0. Caddy
// itself would share the port with another Caddy.
func freeAddress(address string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(address)
	if err != nil {
		return "", "", err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", "", fmt.Errorf("cannot listen on %s: %w; stop what is there, or give another address with --listen", address, errors.Unwrap(err))
	}
	defer listener.Close()
	_, port, err = net.SplitHostPort(listener.Addr().String())
	return host, port, err
}

// reachable returns a host under which this machine reaches the listener.
func reachable(host string) string {
	switch strings.Trim(host, "[]") {
	case "", "0.0.0.0":
		return "127.0.0.1"
	case "::":
		return "::1"
	}
	return host
}
