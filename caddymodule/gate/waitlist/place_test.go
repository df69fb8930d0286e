package waitlist_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockgate/stockgate/caddymodule/gate/waitlist"
)

// A client that does not read is given up, and keeps no server.
func TestWaitlistSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		began, took := time.Now(), make(chan time.Duration, 1)
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for waitlist.SendEvent(w, "data: x") {
			}
			took <- time.Since(began)
		})}
		go srv.Serve(&oneConn{conn: server, done: make(chan struct{})})
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if d := <-took; d > 10*time.Second {
			t.Errorf("it is given up after %v", d)
		}
		client.Close()
		srv.Close()
	})
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn net.Conn
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{} }

// However many people are on the list, all of them together ask at most 30,000 times a second.
func TestWaitlistPollsAreSpread(t *testing.T) {
	for _, people := range []int{1, 59_999, 60_000, 60_001, 200_000, 999_999, 1_000_000} {
		least := waitlist.LeastPoll(people)
		most := 2*least - 1
		if least < 2 || int64(people) > 30_000*least || most > 3+2*int64(people)/30_000+1 {
			t.Errorf("%d people ask every %d to %d s", people, least, most)
		}
		seen := make(map[int64]bool)
		for range 100 {
			wait := waitlist.PollIn(people)
			if seen[wait] = true; wait < least || wait > most {
				t.Errorf("one of %d people asks after %d s, not %d to %d", people, wait, least, most)
			}
		}
		if len(seen) < 2 {
			t.Errorf("all %d people ask in the same second", people)
		}
	}
}

// A place is told in the JSON that encoding/json writes.
func TestToldIsJSON(t *testing.T) {
	at := time.Date(2026, 11, 11, 12, 0, 0, 120_000_000, time.UTC)
	for _, told := range []waitlist.Told{
		{}, {State: "waiting", SKU: `a"<&>é`, Region: "north", Quantity: 2, Place: 3, About: 40, SoldOut: true, Paused: true},
		{State: "offered", SKU: "a", Quantity: 1, Until: at, Now: at.Truncate(time.Second)}, {State: "ended", Why: "the sale has no waiting list any more"},
	} {
		want, err := json.Marshal(told)
		if err != nil {
			t.Fatal(err)
		}
		if got := told.Append(nil); string(got) != string(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
