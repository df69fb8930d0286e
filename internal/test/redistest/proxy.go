package redistest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/stockgate/stockgate/internal/test/ports"
)

// Proxy stands between a client and a Redis server and misbehaves on request.
// It understands enough of the protocol to act on whole commands and whole
// replies, so a fault hits what it is meant for.
//
// Whatever it has read from a client reaches the server, even if the client
// has gone: a stalled Redis does the same with what is in its socket.
//
// Faults apply to every command except those that set a connection up (HELLO,
// AUTH, SELECT, CLIENT), or only to the commands that are named. "EVALSHA" names
// all calls of scripts, "EVALSHA confirm" those with an argument confirm. What a server
// sends on a connection that has subscribed is passed on as it comes, and not
// waited for. All methods may be called from any goroutine.
type Proxy struct {
	t      T
	target string
	addr   string

	mu       sync.Mutex
	changed  *sync.Cond // of everything below
	listener net.Listener
	closed   bool
	links    map[*link]struct{}
	requests fault // held before the server sees them
	replies  fault // held after the server executed them
	cut      fault // discarded, and the client's connection closed
	cutLeft  int

	connections int
	delivered   map[string]int // commands written to the server, by name
	broken      error          // the first thing that was not RESP

	wg sync.WaitGroup
}

// fault is one kind of misbehaviour: off, or on for some commands.
type fault struct {
	on    bool
	names map[string]bool // nil: all but the set-up of a connection
	with  []command       // named together with an argument
}

// command is a command that was read: its name and its bytes.
type command struct {
	name  string
	frame []byte
}

// has reports whether one of its arguments is exactly this.
func (c command) has(argument string) bool {
	return bytes.Contains(c.frame, fmt.Appendf(nil, "\n$%d\r\n%s\r\n", len(argument), argument))
}

var setUp = map[string]bool{"HELLO": true, "AUTH": true, "SELECT": true, "CLIENT": true}

func (f fault) hits(c command) bool {
	switch {
	case !f.on:
		return false
	case f.names == nil && f.with == nil:
		return !setUp[c.name]
	}
	for _, w := range f.with {
		if c.name == w.name && c.has(string(w.frame)) {
			return true
		}
	}
	return f.names[c.name]
}

// NewProxy starts a proxy to target ("host:port"), closed when the test ends.
func NewProxy(t T, target string) *Proxy {
	t.Helper()
	ln, err := ports.Listen()
	if err != nil {
		t.Fatalf("redistest: start a proxy: %v", err)
	}
	p := &Proxy{
		t:         t,
		target:    target,
		addr:      ln.Addr().String(),
		links:     map[*link]struct{}{},
		delivered: map[string]int{},
	}
	p.changed = sync.NewCond(&p.mu)
	p.serve(ln)
	t.Cleanup(p.close)
	return p
}

// Addr is what the client connects to; it never changes.
func (p *Proxy) Addr() string { return p.addr }

// Connections counts the client connections that were accepted.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connections
}

// Requests counts the commands that were delivered to the server, set-up
// included; with names, only those commands.
func (p *Proxy) Requests(commands ...string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count(nameSet(commands))
}

// count is Requests for callers that hold p.mu; nil: all commands.
func (p *Proxy) count(names map[string]bool) int {
	n := 0
	for name, count := range p.delivered {
		if names == nil || names[name] {
			n += count
		}
	}
	return n
}

// WaitHeld returns when a request or a reply is being held.
func (p *Proxy) WaitHeld(ctx context.Context) error {
	return p.wait(ctx, "nothing is held", func() bool {
		for l := range p.links {
			if l.requestHeld || l.replyHeld {
				return true
			}
		}
		return false
	})
}

// WaitRequests returns when Requests has reached n.
func (p *Proxy) WaitRequests(ctx context.Context, n int, commands ...string) error {
	names := nameSet(commands)
	return p.wait(ctx, fmt.Sprintf("fewer than %d requests were delivered", n), func() bool {
		return p.count(names) >= n
	})
}

// WaitIdle returns when everything that the proxy has read was executed: no
// request is held or on its way, and none is unanswered.
func (p *Proxy) WaitIdle(ctx context.Context) error {
	return p.wait(ctx, "the proxy still has requests under way", func() bool {
		for l := range p.links {
			if len(l.queue) > 0 || len(l.pending) > 0 {
				return false
			}
		}
		return true
	})
}

// wait returns when cond is true, or an error with matter when ctx ends.
func (p *Proxy) wait(ctx context.Context, matter string, cond func() bool) error {
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changed.Broadcast()
	})
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !cond() {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("redistest: %s: %w", matter, err)
		}
		p.changed.Wait()
	}
	return nil
}

// serve accepts clients until the listener is closed.
func (p *Proxy) serve(ln net.Listener) {
	p.listener = ln
	p.wg.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return // closed by DropAll or at the end
			}
			p.connect(ln, client)
		}
	})
}

// connect gives an accepted client a connection of its own to the server.
func (p *Proxy) connect(ln net.Listener, client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections++
	if err != nil || p.listener != ln { // no server, or dropped meanwhile
		client.Close()
		if server != nil {
			server.Close()
		}
		return
	}
	l := &link{p: p, client: client, server: server}
	p.links[l] = struct{}{}
	l.run()
}

// close ends the proxy and everything that goes through it.
func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.drop()
	broken := p.broken
	p.mu.Unlock()
	p.wg.Wait()
	if broken != nil {
		p.t.Errorf("redistest: the proxy met something that is not RESP: %v", broken)
	}
}
