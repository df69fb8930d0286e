package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Protocols, and what people ask.
const (
	plain, h1, h2      = "HTTP/1.1", "HTTP/1.1 over TLS", "HTTP/2 over TLS"
	idle, poll, stream = "idle", "poll", "stream"
)

var protocols = []string{plain, h1, h2}

// together is how many people ask at a time.
const together = 64

// crowd are the people.
type crowd struct {
	row
	base    string
	all     []*person
	ctx     context.Context
	leave   func()
	waiting sync.WaitGroup
	heard   atomic.Int64 // of those who wait
}

// person has a connection of its own.
type person struct {
	name, place string
	client      *http.Client
}

func newCrowd(r row) *crowd {
	c := &crowd{row: r, base: fmt.Sprint("http://127.0.0.1:", port)}
	if r.Protocol != plain {
		c.base = fmt.Sprint("https://localhost:", port)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.ctx, c.leave = ctx, func() {
		cancel()
		c.waiting.Wait()
		for _, p := range c.all {
			p.client.CloseIdleConnections()
		}
	}
	for i := range r.People {
		c.all = append(c.all, &person{name: fmt.Sprint("person-", i), client: c.client()})
	}
	return c
}

func (c *crowd) client() *http.Client {
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) { // its port is free as soon as it is closed
			k, err := new(net.Dialer).DialContext(ctx, network, fmt.Sprint("127.0.0.1:", port))
			if err == nil {
				err = k.(*net.TCPConn).SetLinger(0)
			}
			return k, err
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // it signs itself
		Protocols:       new(http.Protocols),
		ReadBufferSize:  1024, WriteBufferSize: 1024,
	}
	t.Protocols.SetHTTP1(c.Protocol != h2)
	t.Protocols.SetHTTP2(c.Protocol == h2)
	return &http.Client{Transport: t}
}

// each does something for all people, some at a time.
func (c *crowd) each(do func(*person) error) error {
	var next atomic.Int64
	errs := make([]error, together)
	var all sync.WaitGroup
	for w := range together {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(c.all)) && errs[w] == nil; i = next.Add(1) - 1 {
				errs[w] = do(c.all[i])
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// enter lets a buyer have the unit, and all people wait for it.
func (c *crowd) enter() error {
	door := c.client() // for all of them
	door.Transport.(*http.Transport).MaxIdleConnsPerHost = together
	defer door.CloseIdleConnections()
	buyer := &person{name: "buyer"}
	if err := insist(func() error { return buyer.post(door, c.base+"/api/order", nil) }); err != nil {
		return err
	}
	return c.each(func(p *person) error {
		return insist(func() error { return p.post(door, c.base+"/waitlist", &p.place) })
	})
}

// post orders or enters.
func (p *person) post(door *http.Client, url string, place *string) error {
	r, err := http.NewRequest("POST", url, strings.NewReader(`{"sku":"1"}`))
	if err != nil {
		return err
	}
	r.Header.Set("X-User-Id", p.name)
	r.Header.Set("Content-Type", "application/json")
	a, err := door.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %d %s", url, a.StatusCode, text)
	}
	if place != nil {
		*place = a.Header.Get("Location")
	}
	return err
}

// isKnown waits until the edge, which has started again, knows where people stand.
func (c *crowd) isKnown() error {
	last := c.all[len(c.all)-1]
	defer last.client.CloseIdleConnections()
	return insist(func() error { return c.stands(last) })
}

// stands asks for a place, and returns when it is told.
func (c *crowd) stands(p *person) error {
	a, err := p.client.Get(c.base + p.place)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && !strings.Contains(string(text), `"state":"waiting"`) {
		err = fmt.Errorf("%s: %d %s", p.place, a.StatusCode, text)
	}
	return err
}

// open lets each person open a connection, and ask.
func (c *crowd) open() error {
	err := c.each(func(p *person) error {
		if c.Asks == idle {
			return insist(func() error { return c.stands(p) })
		}
		begun := make(chan error, 1)
		c.waiting.Go(func() { c.waits(p, begun) })
		return <-begun
	})
	time.Sleep(3 * time.Second) // until the last request is read
	return err
}

// waits is a request that stays open: begun hears when it is sent, or, of a stream, when it has the first event.
func (c *crowd) waits(p *person, begun chan<- error) {
	tell := func(err error) {
		select {
		case begun <- err:
		default: // it knows
		}
	}
	ctx := c.ctx
	if c.Asks == poll {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) { tell(i.Err) }})
	}
	r, err := http.NewRequestWithContext(ctx, "GET", c.base+p.place, nil)
	if err != nil {
		tell(err)
		return
	}
	r.Header.Set("Prefer", "wait=30")
	if c.Asks == stream {
		r.Header.Del("Prefer")
		r.Header.Set("Accept", "text/event-stream")
	}
	a, err := p.client.Do(r)
	for err == nil && c.ctx.Err() == nil && (c.Asks == poll && a.Header.Get("Preference-Applied") != "" || a.StatusCode == http.StatusServiceUnavailable) {
		if _, err = io.Copy(io.Discard, a.Body); err == nil { // again: there was no news, or the edge did not know
			a.Body.Close()
			a, err = p.client.Do(r)
		}
	}
	if err != nil {
		tell(err)
		c.ends()
		return
	}
	defer a.Body.Close()
	if c.Asks == stream {
		lines := bufio.NewReaderSize(a.Body, 256)
		for err == nil {
			var line string
			if line, err = lines.ReadString('\n'); strings.HasPrefix(line, "data:") {
				tell(nil)
			}
		}
		tell(err)
	}
	c.ends()
}

// ends counts a request that is over before the measurement is.
func (c *crowd) ends() {
	if c.ctx.Err() == nil {
		c.heard.Add(1)
	}
}

// stillWaits returns an error if requests have been answered meanwhile: they were not measured.
func (c *crowd) stillWaits() error {
	if n := c.heard.Load(); n > 0 {
		return fmt.Errorf("%d of %d requests were over before the measurement", n, c.People)
	}
	return nil
}
