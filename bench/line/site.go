package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// website is the shop's server.
type website struct {
	*http.Server
	addr string
}

func listen(h http.Handler) (*website, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &website{&http.Server{Handler: h}, l.Addr().String()}
	go func() { _ = w.Serve(l) }()
	return w, nil
}

// sell puts the units on sale.
func sell(admin string, units int) error {
	file := fmt.Sprintf("id: flash\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems: [{sku: \"1\", stock: %d}]\n", units)
	for _, step := range []struct{ method, path, body string }{{"PUT", "/stockgate/sales/flash", file}, {"POST", "/stockgate/sales/flash/open", ""}} {
		var last error
		for range 50 { // Redis may not be ready yet
			r, err := http.NewRequest(step.method, admin+step.path, strings.NewReader(step.body))
			if err != nil {
				return err
			}
			a, err := http.DefaultClient.Do(r)
			if last = err; err == nil {
				text, _ := io.ReadAll(a.Body)
				a.Body.Close()
				if a.StatusCode < 300 {
					break
				}
				last = fmt.Errorf("%s %s: %d %s", step.method, step.path, a.StatusCode, text)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if last != nil {
			return last
		}
	}
	return nil
}
