package sitetest

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
)

// Raw sends bytes to a server and returns its answers, up to a number of them or until it
// closes the connection.
func (s *FastSite) Raw(addr, request string, answers int) string {
	s.T.Helper()
	c := s.Open(addr)
	defer c.Close()
	c.head = strings.HasPrefix(request, "HEAD ")
	if _, err := io.WriteString(c, request); err != nil {
		s.T.Fatalf("fast %t: %q: %v", addr == s.Fast, request, err)
	}
	return c.Answers(answers)
}

// RawConn is a connection on which answers are read as bytes.
type RawConn struct {
	T *testing.T
	net.Conn
	R    *bufio.Reader
	head bool // answers have no bodies
}

// Open connects to a server.
func (s *FastSite) Open(addr string) *RawConn {
	s.T.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		s.T.Fatal(err)
	}
	if s.Secure != nil {
		config := s.Secure.Clone()
		config.NextProtos = s.Protocols
		c = tls.Client(c, config)
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute)) // a test that hangs says where
	return &RawConn{T: s.T, Conn: c, R: bufio.NewReader(c)}
}

// Answers reads a number of answers, or up to the end of the connection.
func (c *RawConn) Answers(n int) string {
	c.T.Helper()
	var all strings.Builder
	for range n {
		length := 0
		for {
			line, err := c.R.ReadString('\n')
			all.WriteString(line)
			if err != nil {
				return all.String()
			}
			if value, ok := strings.CutPrefix(line, "Content-Length: "); ok && !c.head {
				length, _ = strconv.Atoi(strings.TrimSpace(value))
			}
			if line == "\r\n" {
				break
			}
		}
		if _, err := io.CopyN(&all, c.R, int64(length)); err != nil {
			return all.String()
		}
	}
	return all.String()
}

// changing is what two answers to the same request may differ in: their time, and the
// number that every reservation has.
var changing = regexp.MustCompile(`(Date: |Stockgate-Reservation: |"server_time":)(?:..., )?[^\r,]*`)

// WithoutDate leaves out what may differ.
func WithoutDate(answer string) string { return changing.ReplaceAllString(answer, "$1…") }

// FastAnswers returns how many requests the wrapper has answered.
func (s *FastSite) FastAnswers() int {
	s.T.Helper()
	counter := prom.NewRegistry()
	counter.MustRegister(meter.All().Fast)
	found, err := counter.Gather()
	if err != nil {
		s.T.Fatal(err)
	}
	return int(found[0].GetMetric()[0].GetCounter().GetValue())
}

// Same sends a request to both servers and compares the answers. It returns the answer
// and whether the wrapper has given it.
func (s *FastSite) Same(request string) (answer string, fast bool) {
	s.T.Helper()
	before := s.FastAnswers()
	got, want := s.Both(request)
	if got != want {
		s.T.Errorf("%q:\n%s\nwant\n%s", request, got, want)
	}
	return got, s.FastAnswers() > before
}

// Both are the answers of both servers.
func (s *FastSite) Both(request string) (fast, plain string) {
	s.T.Helper()
	fast, plain, _ = Agree(3, func() (string, string) {
		return WithoutDate(s.Raw(s.Fast, request, 1)), WithoutDate(s.Raw(s.Plain, request, 1))
	})
	return fast, plain
}

// Agree asks both servers, at most tries times where they differ. Where they differ only by the spread of their
// waits, they agree: both answers are the first one.
func Agree(tries int, ask func() (string, string)) (fast, plain string, asked int) {
	for asked < tries {
		asked++
		fast, plain = ask()
		if fast == plain {
			break
		}
		if differBySpread(fast, plain) {
			return fast, fast, asked
		}
	}
	return fast, plain, asked
}

var waitTime = regexp.MustCompile(`(?i)(retry-after: |"retry_after":)([0-9]+)`)

// differBySpread reports whether answers differ only in how long their clients wait, and no more than refusals
// spread it. A second may pass between two answers. A body has the wait of its header.
func differBySpread(one, other string) bool {
	if waitTime.ReplaceAllString(one, "$1") != waitTime.ReplaceAllString(other, "$1") {
		return false
	}
	most := 2 + 1
	if strings.Contains(one, "paused") {
		most = 10 + 1
	}
	waits := waitsIn(other)
	for i, wait := range waitsIn(one) {
		if wait < 0 || waits[i] < 0 || max(wait-waits[i], waits[i]-wait) > most {
			return false
		}
	}
	return true
}

// waitsIn are the waits that answers name; -1 where a body has another than its header.
func waitsIn(answers string) (waits []int) {
	header := 0
	for _, found := range waitTime.FindAllStringSubmatch(answers, -1) {
		wait, _ := strconv.Atoi(found[2]) // digits
		switch inBody := found[1][0] == '"'; {
		case !inBody:
			header = wait
		case wait != header:
			wait = -1
		}
		waits = append(waits, wait)
	}
	return waits
}
