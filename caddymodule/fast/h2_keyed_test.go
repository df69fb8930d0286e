package fast_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/stockgate/stockgate/internal/store/reservation"
)

// send sends a POST with a JSON body, without waiting for its answer.
func (c *h2Client) send(buyer, sale, body string) (id uint32) {
	c.block.Reset()
	scheme := "http"
	if c.isSecure() {
		scheme = "https"
	}
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: scheme}, {Name: ":authority", Value: "shop.example.com"}, {Name: ":path", Value: "/order"},
		{Name: "x-user-id", Value: buyer}, {Name: "sale", Value: sale}, {Name: "content-type", Value: "application/json"}, {Name: "content-length", Value: fmt.Sprint(len(body))},
	} {
		_ = c.enc.WriteField(f)
	}
	id = c.next
	c.next += 2
	_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndHeaders: true})
	_ = c.fr.WriteData(id, true, []byte(body))
	return id
}

// allAnswers reads until each stream has its answer and each PING its own.
func (c *h2Client) allAnswers(streams, pings int) map[uint32]string {
	c.t.Helper()
	got := make(map[uint32]string)
	for ended := 0; ended < streams || pings > 0; {
		f, err := c.fr.ReadFrame()
		if err != nil {
			c.t.Fatalf("%d of %d answers, %d PINGs are missing: %v", ended, streams, pings, err)
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = c.fr.WriteSettingsAck()
			}
		case *http2.PingFrame:
			pings--
		case *http2.RSTStreamFrame:
			got[f.StreamID] += f.ErrCode.String()
			ended++
		case *http2.MetaHeadersFrame:
			for _, h := range f.Fields {
				got[f.StreamID] += h.Name + ": " + h.Value + "\n"
			}
			if f.StreamEnded() {
				ended++
			}
		case *http2.GoAwayFrame:
			c.t.Fatalf("GOAWAY %v", f.ErrCode)
		case *http2.DataFrame:
			if f.StreamEnded() {
				ended++
			}
		}
	}
	return got
}

// Attempts with a ref that come on one HTTP/2 connection wait beside each other until the edge
// has read what other edges have bound: they share a check, and delay nothing else.
func TestKeyedAttemptsOfAConnectionShareACheck(t *testing.T) {
	for name, secure := range map[string]bool{"without TLS": false, "with TLS": true} {
		t.Run(name, func(t *testing.T) {
			u := openUnreadWith(t, secure, "protocols h1 h2 h2c", strings.Replace(winnerSites, "SITEPORT", "SITEshop.example.comPORT", 1))
			// a view that was not read for a second does not count, and then the gate answers: on a
			// machine that stands still for so long
			for try := 1; !u.share(try); try++ {
				if try == 20 {
					t.Fatal("the wrapper has hardly answered any attempt")
				}
			}
		})
	}
}

// share lets a connection make many attempts while no check ends. It reports whether the wrapper
// has answered most of them.
func (u *unread) share(try int) bool {
	u.T.Helper()
	const streams, sold = 64, 33
	before := u.FastAnswers()
	c := openH2(u.FastSite, u.Fast)
	defer c.conn.Close()
	c.ask("GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
	u.binds("none", "bulk", fmt.Sprintf("order-%d-%d", try, sold), 2)
	refs := make(map[uint32]int)
	for i := range streams {
		refs[c.send(fmt.Sprintf("buyer-%d-%d", try, i), "none", fmt.Sprintf(`{"sku":"bulk","quantity":1,"order_no":"order-%d-%d"}`, try, i))] = i
	}
	unkeyed := c.send(fmt.Sprintf("buyer-%d", try), "none", `{"sku":"bulk","quantity":1}`)
	_ = c.fr.WritePing(false, [8]byte{1})
	got := c.allAnswers(1, 1)
	if !strings.Contains(got[unkeyed], "stockgate-refusal: quantity") {
		u.T.Errorf("what comes before a check has ended: %v", got)
	}
	u.proxy.Heal()
	for id, answer := range c.allAnswers(streams, 0) {
		want := "stockgate-refusal: quantity"
		if refs[id] == sold {
			want = "stockgate-refusal: duplicate"
		}
		if !strings.Contains(answer, want) {
			u.T.Errorf("attempt %d gets %q, want %s", refs[id], answer, want)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := u.direct.Release(ctx, "none", fmt.Sprintf("of order-%d-%d", try, sold), reservation.SourceShop, ""); err != nil {
		u.T.Error(err)
	}
	return u.FastAnswers()-before > streams/2
}
