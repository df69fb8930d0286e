package redistest

import (
	"net"
	"strings"
)

// HoldRequests withholds the given commands from the server, and everything after them on
// the same connection. They are delivered by ReleaseRequests, even if the client has closed
// its connection by then.
func (p *Proxy) HoldRequests(commands ...string) {
	p.set(func() { p.requests = newFault(commands) })
}

// ReleaseRequests ends HoldRequests. WaitIdle tells when what was held has
// been executed.
func (p *Proxy) ReleaseRequests() { p.set(func() { p.requests = fault{} }) }

// HoldReplies lets the server execute the given commands and withholds its
// replies to them, and what follows on the same connection: the client waits
// until it gives up. ReleaseReplies delivers them to clients that still listen.
func (p *Proxy) HoldReplies(commands ...string) {
	p.set(func() { p.replies = newFault(commands) })
}

// ReleaseReplies ends HoldReplies.
func (p *Proxy) ReleaseReplies() { p.set(func() { p.replies = fault{} }) }

// CutReplies discards the next n replies to the given commands and closes the
// client's connection instead: the server has executed, and the client cannot
// know. A later call replaces the count.
func (p *Proxy) CutReplies(n int, commands ...string) {
	p.set(func() { p.cut, p.cutLeft = newFault(commands), n })
}

// CutsLeft is how many of the replies asked for by CutReplies have not been
// cut yet.
func (p *Proxy) CutsLeft() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cutLeft
}

// DropAll closes every connection, forgets what is held, and refuses new
// connections until Heal, as a machine without a Redis does.
func (p *Proxy) DropAll() { p.set(p.drop) }

// Heal ends every fault: what is held is delivered, nothing more is cut, and
// new connections are accepted.
func (p *Proxy) Heal() {
	p.t.Helper()
	var err error
	p.set(func() {
		p.requests, p.replies, p.cut, p.cutLeft = fault{}, fault{}, fault{}, 0
		if p.listener != nil || p.closed {
			return
		}
		var ln net.Listener
		if ln, err = net.Listen("tcp", p.addr); err == nil {
			p.serve(ln)
		}
	})
	if err != nil {
		p.t.Fatalf("redistest: heal the proxy: %v", err)
	}
}

// Lead ends all connections and takes new ones to another server, as an address that moves does.
func (p *Proxy) Lead(target string) {
	p.DropAll()
	p.set(func() { p.target = target })
	p.Heal()
}

// set changes the faults and wakes all that wait for a change.
func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// drop closes the listener and every link. The caller holds p.mu.
func (p *Proxy) drop() {
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	for l := range p.links {
		l.abort()
	}
	p.changed.Broadcast()
}

func newFault(commands []string) fault {
	f := fault{on: true}
	var names []string
	for _, c := range commands {
		if name, argument, ok := strings.Cut(c, " "); ok {
			f.with = append(f.with, command{strings.ToUpper(name), []byte(argument)})
		} else {
			names = append(names, c)
		}
	}
	f.names = nameSet(names)
	return f
}

// nameSet is nil for no names.
func nameSet(commands []string) map[string]bool {
	if len(commands) == 0 {
		return nil
	}
	names := map[string]bool{}
	for _, c := range commands {
		names[strings.ToUpper(c)] = true
	}
	return names
}
