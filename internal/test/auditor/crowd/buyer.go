// Package crowd has the auditor's buyers: they speak HTTP on their own connections, so
// that they can leave at any moment, and record each answer.
package crowd

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// Door is a site at which buyers buy.
type Door struct {
	Name, Addr string

	mu   sync.Mutex
	idle []*conn
}

type conn struct {
	net.Conn
	in   *bufio.Reader
	last bool // the server closes it
}

// Leave is when a buyer leaves.
type Leave int

// The moments at which a buyer leaves.
const (
	Stays       Leave = iota
	HalfRequest       // after a part of the request
	AfterAsking       // when the request is sent
	HalfClose         // sends FIN after the request, and goes on reading
	HalfAnswer        // after the first byte of the answer
	Slowly            // stays, and sends the request in drops
	Leaves
)

// Wish is what a buyer asks for.
type Wish struct {
	Buyer, Key, Ref string
	Lines           []auditor.Line
	Leave           Leave
	Until           <-chan struct{} // HalfClose sends FIN when it is closed; nil: at once
	Left            func()          // called when FIN is sent; nil: nothing
	Raw             string          // the body, where it must not be that of Lines
	Header          []string
}

// Crowd buys, and writes into a history.
type Crowd struct {
	History *auditor.History
	count   atomic.Int64
}

// body is the order as the gate and the shop read it.
func (w Wish) body() string {
	if w.Raw != "" {
		return w.Raw
	}
	var b strings.Builder
	b.WriteString(`{"items":[`)
	for i, l := range w.Lines {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"sku":%q,"quantity":%d}`, l.SKU, l.Qty)
	}
	b.WriteByte(']')
	if len(w.Lines) > 0 && w.Lines[0].Region != "" {
		fmt.Fprintf(&b, `,"region":%q`, w.Lines[0].Region)
	}
	if w.Ref != "" {
		fmt.Fprintf(&b, `,"order_no":%q`, w.Ref)
	}
	b.WriteByte('}')
	return b.String()
}

func (w Wish) text(id string) string {
	body := w.body()
	head := "POST /api/order HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nX-User-Id: " + w.Buyer + "\r\nX-Attempt: " + id + "\r\n"
	if w.Key != "" {
		head += "Idempotency-Key: " + w.Key + "\r\n"
	}
	for _, line := range w.Header {
		head += line + "\r\n"
	}
	return head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// Buy makes one attempt and returns it with the answer.
func (c *Crowd) Buy(d *Door, w Wish) *auditor.Attempt {
	a := &auditor.Attempt{ID: fmt.Sprint(c.count.Add(1)), Edge: d.Name, Buyer: w.Buyer, Key: w.Key, Ref: w.Ref, Lines: w.Lines}
	c.do(d, a, w.text(a.ID), w)
	return a
}

// Browse asks for another route of the site.
func (c *Crowd) Browse(d *Door) *auditor.Attempt {
	a := &auditor.Attempt{ID: fmt.Sprint(c.count.Add(1)), Edge: d.Name, Browse: true}
	c.do(d, a, "GET /catalogue?"+a.ID+" HTTP/1.1\r\nHost: shop\r\n\r\n", Wish{})
	return a
}

func (c *Crowd) do(d *Door, a *auditor.Attempt, text string, w Wish) {
	a.Sent = c.History.Tick()
	defer c.History.Heard(a)
	k, err := d.take(w.Leave == Stays)
	if err != nil {
		a.Err = err.Error()
		return
	}
	k.SetDeadline(time.Now().Add(2 * time.Minute))
	if err := k.exchange(a, text, w); err != nil {
		a.Err = err.Error()
		k.drop()
		return
	}
	a.Heard = c.History.Tick()
	if w.Leave == Stays && !k.last {
		d.give(k)
	} else {
		k.drop()
	}
}

var errLeft = errors.New("the buyer left")

func (k *conn) exchange(a *auditor.Attempt, text string, w Wish) error {
	if err := k.send(text, w.Leave); err != nil {
		return err
	}
	if w.Leave == HalfClose {
		defer k.halfClose(w)()
	}
	if w.Leave == HalfAnswer {
		k.in.ReadByte()
		return errLeft
	}
	r, err := http.ReadResponse(k.in, nil)
	for err == nil && r.StatusCode >= 100 && r.StatusCode < 200 && r.StatusCode != http.StatusSwitchingProtocols {
		r, err = http.ReadResponse(k.in, nil)
	}
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("%d, and then: %w", r.StatusCode, err)
	}
	Read(a, r.StatusCode, r.Header, body)
	k.last = r.Close
	return nil
}

// halfClose sends FIN when the wish says so, or never, if the answer comes first: then the caller
// calls done.
func (k *conn) halfClose(w Wish) (done func()) {
	answered, closed := make(chan struct{}), make(chan struct{})
	shut := func() {
		k.Conn.(*net.TCPConn).CloseWrite()
		if w.Left != nil {
			w.Left()
		}
	}
	if w.Until == nil {
		shut()
		return func() {}
	}
	go func() {
		defer close(closed)
		select {
		case <-w.Until:
			shut()
		case <-answered:
		}
	}()
	return func() { close(answered); <-closed }
}

// send writes the request as far as the buyer stays.
func (k *conn) send(text string, leave Leave) error {
	switch leave {
	case HalfRequest:
		io.WriteString(k, text[:len(text)*2/3])
		return errLeft
	case Slowly:
		for i := 0; i < len(text); i += 40 {
			if _, err := io.WriteString(k, text[i:min(i+40, len(text))]); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	}
	if _, err := io.WriteString(k, text); err != nil {
		return err
	}
	if leave == AfterAsking {
		return errLeft
	}
	return nil
}

// Read notes an answer.
func Read(a *auditor.Attempt, status int, h http.Header, body []byte) {
	a.Status, a.Reason, a.RetryAfter = status, h.Get("Stockgate-Refusal"), h.Get("Retry-After")
	a.Reservation, a.Replayed = h.Get("Stockgate-Reservation"), h.Get("Stockgate-Replayed") == "true"
	if a.Queue = h.Get("Stockgate-Queue"); a.Queue != "" {
		a.Place = h.Get("Location")
		return
	}
	a.Proof = h.Get("X-Order")
	var said struct{ Order string }
	if a.Proof == "" && json.Unmarshal(body, &said) == nil {
		a.Proof = said.Order
	}
}

// take returns a connection: one that was used before, if that is good enough.
func (d *Door) take(used bool) (*conn, error) {
	if k := d.again(used); k != nil {
		return k, nil
	}
	c, err := net.DialTimeout("tcp", d.Addr, time.Minute)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, in: bufio.NewReader(c)}, nil
}

func (d *Door) again(used bool) (k *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.idle); used && n > 0 {
		k, d.idle = d.idle[n-1], d.idle[:n-1]
	}
	return k
}

func (d *Door) give(k *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = append(d.idle, k)
}

// Forget closes the connections that nothing is asked on.
func (d *Door) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.idle {
		k.drop()
	}
	d.idle = nil
}

// drop resets the connection: a port that waits is one less for the next buyer.
func (k *conn) drop() {
	if tcp, ok := k.Conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	k.Close()
}
