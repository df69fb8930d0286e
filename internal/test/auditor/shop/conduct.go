package shop

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// Conduct is how the shop treats one order: whether it takes it, and its answer.
type Conduct struct {
	Name   string
	takes  bool
	status int
	says   func(w http.ResponseWriter, r *http.Request, o *auditor.Order)
}

func (c Conduct) answer(w http.ResponseWriter, r *http.Request, o *auditor.Order) {
	if c.says != nil {
		c.says(w, r, o)
		return
	}
	plain(c.status, 0)(w, r, o)
}

// Sells and Refuses are what a well-behaved shop does.
var (
	Sells   = Conduct{Name: "sells", takes: true, status: 201}
	Refuses = Conduct{Name: "refuses", status: 422}
)

// plain answers with a status, and padding so that the answer is of some size.
func plain(status, padding int) func(http.ResponseWriter, *http.Request, *auditor.Order) {
	return func(w http.ResponseWriter, _ *http.Request, o *auditor.Order) {
		w.Header().Set("X-Order", o.Proof)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status != http.StatusNoContent && status != http.StatusNotModified {
			fmt.Fprintf(w, `{"order":%q,"pad":%q}`, o.Proof, strings.Repeat("x", padding))
		}
	}
}

// Status takes the order or not, and answers so.
func Status(status int, takes bool) Conduct {
	return Conduct{Name: fmt.Sprintf("status %d, took %v", status, takes), takes: takes, status: status}
}

// Large sells, and answers with so many bytes.
func Large(bytes int) Conduct {
	return Conduct{Name: "sells, large", takes: true, status: 201, says: plain(201, bytes)}
}

// Waits is another conduct after a channel is closed.
func Waits(until <-chan struct{}, c Conduct) Conduct {
	return Conduct{Name: c.Name + ", late", takes: c.takes, status: c.status, says: func(w http.ResponseWriter, r *http.Request, o *auditor.Order) {
		<-until
		c.answer(w, r, o)
	}}
}

// Gate closes once, however often it is asked to.
type Gate struct {
	C    chan struct{}
	once sync.Once
}

// NewGate is a closed gate: what waits on C goes on after Open.
func NewGate() *Gate { return &Gate{C: make(chan struct{})} }

// Open opens it.
func (g *Gate) Open() { g.once.Do(func() { close(g.C) }) }

// Slow is another conduct after a while.
func Slow(wait time.Duration, c Conduct) Conduct {
	return Conduct{Name: c.Name + ", slow", takes: c.takes, status: c.status, says: func(w http.ResponseWriter, r *http.Request, o *auditor.Order) {
		time.Sleep(wait)
		c.answer(w, r, o)
	}}
}

// raw writes bytes on the connection instead of an answer, and then closes it, or resets it.
func raw(name string, takes, reset bool, text func(o *auditor.Order) []string) Conduct {
	return Conduct{Name: name, takes: takes, says: func(w http.ResponseWriter, _ *http.Request, o *auditor.Order) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		for i, piece := range text(o) {
			if i > 0 {
				time.Sleep(5 * time.Millisecond)
			}
			io.WriteString(conn, piece)
		}
		if tcp, ok := conn.(*net.TCPConn); ok && reset {
			tcp.SetLinger(0)
		}
	}}
}

func fixed(pieces ...string) func(*auditor.Order) []string {
	return func(*auditor.Order) []string { return pieces }
}

// ok is a whole answer of success, in front of which something else may stand.
func ok(before string) func(*auditor.Order) []string {
	return func(o *auditor.Order) []string {
		body := fmt.Sprintf(`{"order":%q}`, o.Proof)
		return []string{before, fmt.Sprintf("HTTP/1.1 201 Created\r\nX-Order: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", o.Proof, len(body), body)}
	}
}

// drips is ok, byte by byte.
func drips(o *auditor.Order) []string {
	whole := strings.Join(ok("")(o), "")
	return strings.Split(whole, "")
}

// Odd are all ways in which the shop misbehaves.
func Odd() []Conduct {
	odd := []Conduct{
		raw("reset at once, not taken", false, true, fixed("")),
		raw("reset at once, taken", true, true, fixed("")),
		raw("closed without an answer, taken", true, false, fixed("")),
		raw("half a status line, taken", true, false, fixed("HTTP/1.1 20")),
		raw("half of the headers, taken", true, true, fixed("HTTP/1.1 201 Created\r\nX-Ord")),
		raw("garbage, taken", true, false, fixed("\x00\xff\x16garbage\r\n\r\n\r\n")),
		raw("garbage, not taken", false, false, fixed("SSH-2.0-OpenSSH\r\n")),
		raw("status 999", true, false, fixed("HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n")),
		raw("status 099", false, false, fixed("HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n")),
		raw("status 20x", true, false, fixed("HTTP/1.1 20x Odd\r\nContent-Length: 0\r\n\r\n")),
		raw("101 without being asked", false, false, fixed("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")),
		raw("101 without headers", false, false, fixed("HTTP/1.1 101 Switching Protocols\r\n\r\n")),
		raw("101, taken", true, true, fixed("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")),
		raw("103 and nothing more, taken", true, false, fixed("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n")),
		raw("102, 103, then sold", true, false, ok("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n")),
		raw("broken chunks, taken", true, false, fixed("HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n")),
		raw("a chunk without an end, taken", true, true, fixed("HTTP/1.1 502 Oh\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")),
		raw("two lengths, taken", true, false, fixed("HTTP/1.1 500 Oh\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nhello")),
		raw("a shorter body than promised, taken", true, false, fixed("HTTP/1.1 500 Oh\r\nContent-Length: 500\r\n\r\nhello")),
		raw("a header of 2 MB", true, false, fixed("HTTP/1.1 500 Oh\r\nX-Large: "+strings.Repeat("x", 2<<20)+"\r\nContent-Length: 0\r\n\r\n")),
		raw("drop by drop, sold", true, false, drips),
	}
	for _, status := range []int{200, 202, 204, 205, 299} {
		odd = append(odd, Status(status, true))
	}
	for _, status := range []int{302, 304, 408, 409, 499, 500, 503, 599} {
		odd = append(odd, Status(status, status%2 == 0))
	}
	for _, status := range []int{400, 403, 404, 410, 418, 422, 451} {
		odd = append(odd, Status(status, false))
	}
	return odd
}
