// Package connect opens TLS connections and asks one thing on each, in a process of its own: to
// measure what new buyers cost a server, and what memory idle connections take.
package connect

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Plan is what to do.
type Plan struct {
	Addr string
	// HTTP2: Requests are targets of GET requests; else whole HTTP/1.1 requests.
	HTTP2    bool
	Host     string
	Requests []string
	Says     string // what the body of each answer has
	AtOnce   int
	// Resume: each handshake resumes the session of an earlier one.
	Resume bool
	For    time.Duration // of new connections
	// Idle are how many connections stay open: first so many, then so many; none: each is closed
	// after its answer.
	Idle []int
}

// Result is the result of one run of new connections.
type Result struct {
	Connections int64
	Seconds     float64
	P50, P99    time.Duration
}

// Main does what the plan says. For new connections it warms up, prints a line, waits for one,
// and prints the result. For idle ones it prints a line when as many are open as the plan says,
// and goes on when it reads one. It stays until its input ends.
func Main(ctx context.Context, plan string, in io.Reader, out io.Writer) error {
	var p Plan
	if err := json.Unmarshal([]byte(plan), &p); err != nil {
		return err
	}
	c := newClient(p)
	lines := bufio.NewReader(in)
	if len(p.Idle) > 0 {
		for _, n := range p.Idle {
			if err := c.hold(ctx, n); err != nil {
				return err
			}
			fmt.Fprintln(out, n)
			if _, err := lines.ReadString('\n'); err != nil {
				return err
			}
		}
		if err := c.stillOpen(); err != nil {
			return err
		}
		fmt.Fprintln(out, "open")
	} else {
		if _, err := c.run(ctx, time.Second); err != nil { // to warm up
			return err
		}
		fmt.Fprintln(out, "ready")
		if _, err := lines.ReadString('\n'); err != nil {
			return err
		}
		result, err := c.run(ctx, p.For)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(result); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, lines)
	return err
}

// client opens connections.
type client struct {
	Plan
	config *tls.Config
	number atomic.Int64
	mu     sync.Mutex
	held   []*tls.Conn
}

func newClient(p Plan) *client {
	c := &client{Plan: p}
	protocol := "http/1.1"
	if p.HTTP2 {
		protocol = "h2"
	}
	// the certificate signs itself
	c.config = &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13}
	if p.Resume {
		c.config.ClientSessionCache = &oneSession{}
	}
	return c
}

// run opens one connection after another for a time, some at once.
func (c *client) run(ctx context.Context, howLong time.Duration) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	times := make([][]time.Duration, c.AtOnce)
	errs := make([]error, c.AtOnce)
	if c.Resume { // the first has no session yet
		conn, err := c.open(ctx)
		if err != nil {
			return Result{}, err
		}
		_ = conn.Close()
	}
	started := time.Now()
	var at sync.WaitGroup
	for w := range c.AtOnce {
		at.Go(func() {
			for last := started; last.Sub(started) < howLong && ctx.Err() == nil; {
				conn, err := c.open(ctx)
				if err == nil && conn.ConnectionState().DidResume != c.Resume {
					err = fmt.Errorf("a session was resumed: %t, want %t", !c.Resume, c.Resume)
				}
				if err != nil {
					errs[w] = err
					cancel()
					return
				}
				_ = conn.Close()
				now := time.Now()
				times[w] = append(times[w], now.Sub(last))
				last = now
			}
		})
	}
	at.Wait()
	took := time.Since(started)
	if err := first(errs); err != nil {
		return Result{}, err
	}
	all := slices.Concat(times...)
	slices.Sort(all)
	return Result{int64(len(all)), took.Seconds(), all[len(all)/2], all[len(all)*99/100]}, nil
}

// hold opens connections until there are n, and keeps them.
func (c *client) hold(ctx context.Context, n int) error {
	errs := make([]error, c.AtOnce)
	var left atomic.Int64
	left.Store(int64(n - len(c.held)))
	var at sync.WaitGroup
	for w := range c.AtOnce {
		at.Go(func() {
			for left.Add(-1) >= 0 && errs[w] == nil {
				var conn *tls.Conn
				if conn, errs[w] = c.open(ctx); errs[w] == nil {
					c.mu.Lock()
					c.held = append(c.held, conn)
					c.mu.Unlock()
				}
			}
		})
	}
	at.Wait()
	return first(errs)
}

// first is the first error: the others say the same.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// stillOpen returns an error if the server has closed connections meanwhile.
func (c *client) stillOpen() error {
	var closed atomic.Int64
	until := time.Now().Add(time.Second)
	var all sync.WaitGroup
	for _, conn := range c.held {
		all.Go(func() {
			_ = conn.SetReadDeadline(until)
			for b := make([]byte, 512); ; {
				if _, err := conn.Read(b); err == nil {
					continue // such as a frame of HTTP/2
				} else if !errors.Is(err, os.ErrDeadlineExceeded) {
					closed.Add(1)
				}
				return
			}
		})
	}
	all.Wait()
	if n := closed.Load(); n > 0 {
		return fmt.Errorf("the server has closed %d of %d idle connections", n, len(c.held))
	}
	return nil
}

// open opens a connection and asks one thing. Its port is free as soon as it is closed: it is reset,
// else ports would run out, and servers that start later would not get theirs.
func (c *client) open(ctx context.Context) (*tls.Conn, error) {
	n := c.number.Add(1)
	d := net.Dialer{Timeout: 30 * time.Second}
	plain, err := d.DialContext(ctx, "tcp", c.Addr)
	if err != nil {
		return nil, err
	}
	if err := plain.(*net.TCPConn).SetLinger(0); err != nil {
		_ = plain.Close()
		return nil, err
	}
	conn := tls.Client(plain, c.config)
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	body, err := c.ask(conn, c.Requests[int(n)%len(c.Requests)])
	if err == nil && !strings.Contains(body, c.Says) {
		err = fmt.Errorf("the answer does not say %s: %q", c.Says, body)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, conn.SetDeadline(time.Time{})
}

func (c *client) ask(conn *tls.Conn, request string) (body string, err error) {
	if c.HTTP2 {
		return askHTTP2(conn, c.Host, request)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return "", err
	}
	return readAnswer(bufio.NewReaderSize(conn, 2048))
}

// oneSession is a cache that resumes the same session again and again.
type oneSession struct {
	mu    sync.Mutex
	state *tls.ClientSessionState
}

func (s *oneSession) Get(string) (*tls.ClientSessionState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.state != nil
}

func (s *oneSession) Put(_ string, state *tls.ClientSessionState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state != nil {
		s.state = state
	}
}
