package rig

import (
	"io"
	"net"
	"sync"
	"time"
)

// Proxy is a TCP link that can be slow, stand still or break.
type Proxy struct {
	listen net.Listener
	target string

	mu      sync.Mutex
	moved   *sync.Cond // stalled or closed has changed
	delay   time.Duration
	stalled bool
	deaf    bool                   // answers are thrown away
	refuses func(from net.IP) bool // nil: all are welcome
	closed  bool
	conns   map[net.Conn]bool
}

// NewProxy runs a link to an address.
func NewProxy(target string) (*Proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listen: ln, target: target, conns: map[net.Conn]bool{}}
	p.moved = sync.NewCond(&p.mu)
	go p.serve()
	return p, nil
}

// Addr is host:port of the link.
func (p *Proxy) Addr() string { return p.listen.Addr().String() }

// Delay makes whatever passes from now on come later.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Stall holds all bytes back until Resume.
func (p *Proxy) Stall() { p.set(func() { p.stalled = true }) }

// Resume ends Stall, Deafen and Cut. Connections that have missed an answer break.
func (p *Proxy) Resume() {
	p.set(func() {
		if p.deaf {
			p.hangUp()
		}
		p.stalled, p.deaf, p.refuses = false, false, nil
	})
}

// Deafen lets requests through and throws their answers away until Resume: what is asked is
// done, and its outcome stays unknown.
func (p *Proxy) Deafen() { p.set(func() { p.deaf = true }) }

// Cut breaks all connections, and refuses new ones until Resume.
func (p *Proxy) Cut() { p.CutFrom(func(net.IP) bool { return true }) }

// CutFrom is Cut for the connections from some addresses.
func (p *Proxy) CutFrom(some func(from net.IP) bool) {
	p.set(func() {
		p.refuses = some
		p.hangUp()
	})
}

// Lead makes the link lead somewhere else, and breaks what there is.
func (p *Proxy) Lead(target string) {
	p.set(func() {
		p.target = target
		p.hangUp()
	})
}

// Close ends the link.
func (p *Proxy) Close() {
	p.listen.Close()
	p.set(func() {
		p.closed, p.stalled = true, false
		p.hangUp()
	})
}

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.moved.Broadcast()
}

// hangUp resets all connections; the lock is held.
func (p *Proxy) hangUp() {
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		c.Close()
	}
	clear(p.conns)
}

func (p *Proxy) serve() {
	for {
		in, err := p.listen.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuses, target := p.refuses, p.target
		p.mu.Unlock()
		if from, ok := in.RemoteAddr().(*net.TCPAddr); refuses != nil && ok && refuses(from.IP) {
			in.Close()
			continue
		}
		out, err := net.Dial("tcp", target)
		if err != nil {
			in.Close()
			continue
		}
		p.mu.Lock()
		p.conns[in], p.conns[out] = true, true
		p.mu.Unlock()
		go p.pump(in, out, false)
		go p.pump(out, in, true)
	}
}

type parcel struct {
	due  time.Time
	data []byte
}

// pump moves bytes one way. They leave in their order, each when its delay is over.
func (p *Proxy) pump(from, to net.Conn, answers bool) {
	parcels := make(chan parcel, 1024)
	go func() {
		defer func() {
			from.Close()
			to.Close()
			p.mu.Lock()
			delete(p.conns, from)
			delete(p.conns, to)
			p.mu.Unlock()
			for range parcels { // so that the reader never waits
			}
		}()
		for x := range parcels {
			time.Sleep(time.Until(x.due))
			p.mu.Lock()
			for p.stalled && !p.closed {
				p.moved.Wait()
			}
			p.mu.Unlock()
			if _, err := to.Write(x.data); err != nil {
				return
			}
		}
	}()
	defer close(parcels)
	for {
		data := make([]byte, 32<<10)
		n, err := from.Read(data)
		if n > 0 {
			p.mu.Lock()
			due, lost := time.Now().Add(p.delay), answers && p.deaf
			p.mu.Unlock()
			if !lost {
				parcels <- parcel{due, data[:n]}
			}
		}
		if err == io.EOF || err != nil {
			return
		}
	}
}
