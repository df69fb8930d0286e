package redistest

import (
	"bufio"
	"errors"
	"io"
	"net"
)

// link is one client connection and its connection to the server. Its fields
// below the connections belong to p.mu.
type link struct {
	p      *Proxy
	client net.Conn
	server net.Conn

	queue       [][]byte  // read from the client, not yet written to the server
	pending     []command // written to the server, not yet answered
	clientGone  bool      // nothing more comes from the client, nor can go to it
	aborted     bool
	streaming   bool // subscribed: replies no longer match commands
	requestHeld bool
	replyHeld   bool
}

// streams are the commands after which replies no longer match commands.
var streams = map[string]bool{"SUBSCRIBE": true, "PSUBSCRIBE": true, "SSUBSCRIBE": true, "MONITOR": true}

// run starts the three loops of a link. They share only l's fields.
func (l *link) run() {
	l.p.wg.Go(l.readRequests)
	l.p.wg.Go(l.deliverRequests)
	l.p.wg.Go(l.passReplies)
}

// readRequests reads everything from the client, however slow the server is.
func (l *link) readRequests() {
	r := bufio.NewReader(l.client)
	for {
		frame, err := readFrame(r)
		l.p.mu.Lock()
		if err != nil {
			l.p.note(err)
			l.loseClient()
			l.p.mu.Unlock()
			return
		}
		l.queue = append(l.queue, frame)
		l.p.changed.Broadcast()
		l.p.mu.Unlock()
	}
}

// deliverRequests writes what was read to the server, in order.
func (l *link) deliverRequests() {
	for {
		frame, ok := l.next()
		if !ok {
			return
		}
		if _, err := l.server.Write(frame); err != nil {
			l.p.mu.Lock()
			l.abort()
			l.p.mu.Unlock()
			return
		}
	}
}

// next waits for a request that may be delivered. It is pending before it is
// written, so that its reply always finds it.
func (l *link) next() ([]byte, bool) {
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case l.aborted:
			return nil, false
		case len(l.queue) == 0:
			l.requestHeld = false
			if l.clientGone {
				l.finish()
				return nil, false
			}
		default:
			c := command{commandName(l.queue[0]), l.queue[0]}
			if l.requestHeld = p.requests.hits(c); l.requestHeld {
				p.changed.Broadcast() // WaitHeld may be waiting for it
				break
			}
			l.queue = l.queue[1:]
			p.delivered[c.name]++
			l.streaming = l.streaming || streams[c.name]
			if !l.streaming {
				l.pending = append(l.pending, c)
			}
			p.changed.Broadcast()
			return c.frame, true
		}
		p.changed.Wait()
	}
}

// passReplies passes the server's replies to the client, and continues reading when the
// client has left, so that the server can execute its commands.
func (l *link) passReplies() {
	r := bufio.NewReader(l.server)
	for {
		frame, err := readFrame(r)
		if err != nil {
			l.p.mu.Lock()
			l.p.note(err)
			l.abort()
			l.p.mu.Unlock()
			return
		}
		if !l.reply(frame) {
			continue
		}
		if _, err := l.client.Write(frame); err != nil {
			l.p.mu.Lock()
			l.loseClient()
			l.p.mu.Unlock()
		}
	}
}

// reply matches a reply with its command, and reports whether the client gets it.
func (l *link) reply(frame []byte) bool {
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if frame[0] == '>' || len(l.pending) == 0 { // a push, or a stream of messages
		return !l.clientGone
	}
	c := l.pending[0]
	for p.replies.hits(c) && !l.clientGone && !l.aborted {
		l.replyHeld = true
		p.changed.Broadcast()
		p.changed.Wait()
	}
	if l.aborted {
		return false
	}
	l.replyHeld = false
	if l.aborted { // dropped while it was held
		return false
	}
	l.pending = l.pending[1:]
	p.changed.Broadcast()
	if p.cutLeft > 0 && p.cut.hits(c) && !l.clientGone {
		p.cutLeft--
		l.loseClient()
	}
	l.finish()
	return !l.clientGone
}

// loseClient ends the client's side only. The caller holds p.mu.
func (l *link) loseClient() {
	l.clientGone = true
	l.client.Close()
	l.p.changed.Broadcast()
	l.finish()
}

// finish ends the link once the client has gone and the server has answered
// all that was asked. The caller holds p.mu.
func (l *link) finish() {
	if l.clientGone && len(l.queue) == 0 && len(l.pending) == 0 {
		l.abort()
	}
}

// abort ends the link, with everything under way. The caller holds p.mu.
func (l *link) abort() {
	l.aborted, l.clientGone = true, true
	l.queue, l.pending = nil, nil
	l.requestHeld, l.replyHeld = false, false
	l.client.Close()
	l.server.Close()
	delete(l.p.links, l)
	l.p.changed.Broadcast()
}

// note keeps the first error that is not just the end of a connection.
func (p *Proxy) note(err error) {
	var network net.Error
	if p.broken == nil && !errors.As(err, &network) &&
		!errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed) {
		p.broken = err
	}
}
