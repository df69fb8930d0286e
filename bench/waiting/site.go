package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// site is the Caddyfile of the edge: its only unit is sold, so people wait until the end.
const site = `{
	admin %s
	storage file_system %s/storage
	persist_config off
	skip_install_trust
	auto_https disable_redirects
	log {
		level ERROR
	}
	%s
	stockgate {
		redis %s {
			timeout 5s
		}
	}
}
%s {
	%s
	@order path /api/order
	@waitlist path /waitlist /waitlist/*
	stockgate_guard
	stockgate_status
	stockgate_waitlist @waitlist {
		buyer {header.X-User-Id}
		line {json.sku}
		%s
	}
	stockgate @order flash {
		buyer {header.X-User-Id}
		line {json.sku}
		hold_for 1m
		%s
	}
	reverse_proxy %s
}
`

func caddyfile(dir, redis, shop string, r row) []byte {
	address, tls, servers, fast := fmt.Sprint("http://127.0.0.1:", port), "", "", ""
	if r.Protocol != plain {
		address, tls = fmt.Sprint("https://localhost:", port), "tls internal"
	}
	if r.Wrapper {
		servers, fast = "servers {\n\t\tlistener_wrappers {\n\t\t\tstockgate\n\t\t}\n\t}", "fast_refusals"
	}
	return fmt.Appendf(nil, site, admin, dir, servers, redis, address, tls, fast, fast, shop)
}

// website is a shop that takes each order.
type website struct {
	*http.Server
	addr string
}

func listen() (*website, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &website{&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })}, l.Addr().String()}
	go func() { _ = w.Serve(l) }()
	return w, nil
}

// sell puts one unit on sale, with room for people who wait.
func sell(people int) error {
	file := fmt.Sprintf("id: flash\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems: [{sku: \"1\", stock: 1}]\nwaitlist: {max: %d}\n", people)
	for _, step := range []struct{ method, path, body string }{{"PUT", "flash", file}, {"POST", "flash/open", ""}} {
		if err := insist(func() error {
			r, err := http.NewRequest(step.method, "http://"+admin+"/stockgate/sales/"+step.path, strings.NewReader(step.body))
			if err != nil {
				return err
			}
			a, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			defer a.Body.Close()
			if text, _ := io.ReadAll(a.Body); a.StatusCode >= 300 {
				return fmt.Errorf("%s %s: %d %s", step.method, step.path, a.StatusCode, text)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// insist tries again for half a minute.
func insist(do func() error) error {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if err := do(); err == nil || time.Now().After(end) {
			return err
		}
	}
}
