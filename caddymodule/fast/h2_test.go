package fast_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/draw"
)

// h2Client is a client's connection that speaks HTTP/2.
type h2Client struct {
	t     *testing.T
	conn  net.Conn
	fr    *http2.Framer
	block bytes.Buffer
	enc   *hpack.Encoder
	next  uint32
	ended bool
}

func openH2(s *sitetest.FastSite, addr string) *h2Client {
	s.T.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		s.T.Fatal(err)
	}
	if s.Secure != nil {
		config := s.Secure.Clone()
		config.NextProtos = []string{"h2"}
		conn = tls.Client(conn, config)
	}
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute)) // a test that hangs says where
	c := &h2Client{t: s.T, conn: conn, fr: http2.NewFramer(conn, conn), next: 1}
	c.enc = hpack.NewEncoder(&c.block)
	c.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		s.T.Fatal(err)
	}
	_ = c.fr.WriteSettings()
	_ = c.fr.WriteWindowUpdate(0, 1<<30)
	return c
}

// ask sends a request that is written as HTTP/1.1, and returns the answer.
func (c *h2Client) ask(request string) string {
	c.t.Helper()
	head, body, _ := strings.Cut(request, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	line := strings.Split(lines[0], " ")
	fields := []hpack.HeaderField{{Name: ":method", Value: line[0]}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: line[1]}}
	if c.isSecure() {
		fields[1].Value = "https"
	}
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ":")
		if name == "Host" {
			fields = slices.Insert(fields, 1, hpack.HeaderField{Name: ":authority", Value: strings.TrimSpace(value)})
			continue
		}
		fields = append(fields, hpack.HeaderField{Name: strings.ToLower(name), Value: strings.TrimSpace(value)})
	}
	c.block.Reset()
	for _, f := range fields {
		_ = c.enc.WriteField(f)
	}
	id := c.next
	c.next += 2
	_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndStream: body == "", EndHeaders: true})
	for len(body) > 0 {
		n := min(len(body), 3000)
		_ = c.fr.WriteData(id, n == len(body), []byte(body[:n]))
		body = body[n:]
	}
	return c.answer(id)
}

func (c *h2Client) isSecure() bool { _, ok := c.conn.(*tls.Conn); return ok }

// answer reads the answer on a stream.
func (c *h2Client) answer(id uint32) string {
	c.t.Helper()
	var all strings.Builder
	for {
		f, err := c.fr.ReadFrame()
		if err != nil {
			c.ended = true
			return all.String() + "closed"
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = c.fr.WriteSettingsAck()
			}
		case *http2.GoAwayFrame:
			c.ended = true
			return all.String() + f.ErrCode.String()
		case *http2.RSTStreamFrame:
			if f.StreamID == id {
				return all.String() + f.ErrCode.String()
			}
		case *http2.MetaHeadersFrame:
			var lines []string
			for _, h := range f.Fields {
				lines = append(lines, fmt.Sprintf("%s: %s\r\n", h.Name, h.Value))
			}
			slices.Sort(lines)
			all.WriteString(strings.Join(lines, ""))
			if f.StreamEnded() {
				return all.String()
			}
		case *http2.DataFrame:
			all.Write(f.Data())
			if f.StreamEnded() {
				return all.String()
			}
		}
	}
}

// TestFastAnswersAreTheGatesOverHTTP2 asks both servers the same, and wants the same answers. Many
// requests come on one connection.
func TestFastAnswersAreTheGatesOverHTTP2(t *testing.T) {
	for name, secure := range map[string]bool{"without TLS": false, "with TLS": true} {
		t.Run(name, func(t *testing.T) {
			s := sitetest.OpenFastWith(t, secure, "protocols h1 h2 h2c", manySites+sitetest.BenchOut)
			s.SellOut()
			seed := draw.Seed(t)
			r := rand.New(rand.NewPCG(seed, 0))
			before := s.FastAnswers()
			most := draw.Times(300, 3000)
			var fast, plain *h2Client
			for n := 0; n < most || s.FastAnswers()-before < most/10; n++ {
				if n == 10*most {
					t.Fatalf("only %d of %d were answered by the wrapper", s.FastAnswers()-before, n)
				}
				request := generated(r)
				got, want, _ := sitetest.Agree(3, func() (string, string) {
					if n%40 == 0 || fast.ended || plain.ended {
						if fast != nil {
							fast.conn.Close()
							plain.conn.Close()
						}
						fast, plain = openH2(s, s.Fast), openH2(s, s.Plain)
					}
					return withoutH2Date(fast.ask(request)), withoutH2Date(plain.ask(request))
				})
				if got != want {
					t.Fatalf("%q:\n%s\nwant\n%s", request, got, want)
				}
			}
			fast.conn.Close()
			plain.conn.Close()
		})
	}
}

func withoutH2Date(answer string) string {
	return sitetest.WithoutDate(strings.NewReplacer("date: ", "Date: ", "stockgate-reservation: ", "Stockgate-Reservation: ").Replace(answer))
}

// TestFastHTTP2IsSeen has requests that are refused, and requests that go on, on one connection.
func TestFastHTTP2IsSeen(t *testing.T) {
	s := sitetest.OpenFastWith(t, true, "protocols h1 h2", tlsSites)
	before := s.FastAnswers()
	c := openH2(s, s.Fast)
	defer c.conn.Close()
	for range 3 {
		if got := c.ask(buySoon); !strings.Contains(got, ":status: 409") || !strings.Contains(got, "not_started") {
			t.Errorf("%s", got)
		}
		if got := c.ask("GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"); !strings.Contains(got, "tls1.3 shop.example.com false h2 ") || !strings.Contains(got, "HTTP/2.0") {
			t.Errorf("%s", got)
		}
	}
	if fast := s.FastAnswers() - before; fast != 3 {
		t.Errorf("%d were answered by the wrapper, want 3", fast)
	}
}

// TestFastHTTP2Names has a server that insists on the host that the handshake has named.
func TestFastHTTP2Names(t *testing.T) {
	s := sitetest.OpenFastWith(t, true, "protocols h1 h2\nstrict_sni_host on", tlsSites)
	for name, fast := range map[string]int{"shop.example.com": 1, "other.example.com": 0} {
		s.Secure.ServerName = name
		before := s.FastAnswers()
		got, want, asked := sitetest.Agree(1, func() (string, string) {
			return withoutH2Date(openH2(s, s.Fast).ask(buySoon)), withoutH2Date(openH2(s, s.Plain).ask(buySoon))
		})
		if got != want || s.FastAnswers()-before != fast*asked || (fast == 0) != strings.Contains(got, ":status: 421") {
			t.Errorf("%s: %s\nwant\n%s", name, got, want)
		}
	}
}

// TestFastHTTP2Reload loads another configuration: a connection hears which of its requests were
// answered, and ends. The old gate answers no more.
func TestFastHTTP2Reload(t *testing.T) {
	s := sitetest.OpenFastWith(t, true, "protocols h1 h2", tlsSites)
	c := openH2(s, s.Fast)
	defer c.conn.Close()
	for range 3 {
		if got := c.ask(buySoon); !strings.Contains(got, ":status: 409") {
			t.Fatal(got)
		}
	}
	before := s.FastAnswers()
	if err := s.LoadFastAt("protocols h1 h2", tlsSites, portOf(s.Fast), portOf(s.Plain)); err != nil {
		t.Fatal(err)
	}
	var gone *http2.GoAwayFrame
	for {
		f, err := c.fr.ReadFrame()
		if err != nil {
			break
		}
		if away, ok := f.(*http2.GoAwayFrame); ok {
			gone = away
			if away.ErrCode != http2.ErrCodeNo || away.LastStreamID != 5 {
				t.Errorf("GOAWAY %v with stream %d, want 5", away.ErrCode, away.LastStreamID)
			}
			_ = c.fr.WriteSettingsAck()
		}
	}
	if gone == nil {
		t.Error("the connection has ended without GOAWAY")
	}
	if after := s.FastAnswers(); after != before {
		t.Errorf("%d answers in the meantime", after-before)
	}
	if got := openH2(s, s.Fast).ask(buySoon); !strings.Contains(got, ":status: 409") {
		t.Error(got)
	}
}

// TestFastNodeClients asks with Node's https and http2.
func TestFastNodeClients(t *testing.T) {
	s := sitetest.OpenFastWith(t, true, "protocols h1 h2", tlsSites)
	script := s.Path("client.js")
	if err := os.WriteFile(script, []byte(nodeClient), 0o600); err != nil {
		t.Fatal(err)
	}
	for version, protocol := range map[int]string{1: "https", 2: "http2"} {
		before := s.FastAnswers()
		out, err := exec.Command("node", script, protocol, portOf(s.Fast)).CombinedOutput()
		if want := strings.Repeat("409 not_started\n", 600) + "418\n"; err != nil || string(out) != want {
			t.Errorf("%s: %v, %.2000s", protocol, err, out)
		}
		// Node's window over HTTP/2 is that of the protocol: its first answers lack credit
		if fast := s.FastAnswers() - before; version == 1 && fast != 600 || fast < 300 {
			t.Errorf("%s: %d of 600 were answered by the wrapper", protocol, fast)
		}
	}
}

const nodeClient = `
const [, , protocol, port] = process.argv
const tls = { rejectUnauthorized: false, servername: 'shop.example.com' }
const headers = { 'x-user-id': 'u' }
let ask
if (protocol === 'http2') {
	const session = require('http2').connect('https://127.0.0.1:' + port, tls)
	ask = path => new Promise((done, fail) => {
		const r = session.request({ ...headers, ':path': path, ':authority': 'shop.example.com' })
		let answer
		r.on('response', h => { answer = [h[':status'], h['stockgate-refusal']].join(' ').trim() })
		r.on('data', () => {})
		r.on('end', () => done(answer))
		r.on('error', fail)
	})
	ask.close = () => session.close()
} else {
	const https = require('https')
	const agent = new https.Agent({ keepAlive: true, maxSockets: 4, ...tls })
	ask = path => new Promise((done, fail) => {
		https.get({ port, path, agent, headers: { ...headers, host: 'shop.example.com' }, ...tls }, r => {
			r.on('data', () => {})
			r.on('end', () => done([r.statusCode, r.headers['stockgate-refusal']].join(' ').trim()))
		}).on('error', fail)
	})
	ask.close = () => agent.destroy()
}
const main = async () => {
	for (let i = 0; i < 60; i++) {
		const ten = Array.from({ length: 10 }, () => ask('/buy?sku=soon'))
		for (const answer of await Promise.all(ten)) console.log(answer)
	}
	console.log(await ask('/'))
	ask.close()
}
main()
`

// A solution that comes over HTTP/2 counts once, for the wrapper and for the gate.
func TestFastChallengeOverHTTP2(t *testing.T) {
	for name, secure := range map[string]bool{"with TLS": true, "without TLS": false} {
		t.Run(name, func(t *testing.T) {
			s := sitetest.OpenFastWith(t, secure, "protocols h1 h2 h2c", sitetest.AskedSites+sitetest.BenchOut)
			fast, plain := openH2(s, s.Fast), openH2(s, s.Plain)
			ask := func(c *h2Client, sku, solution string) string {
				return c.ask("GET /asked?sku=" + sku + " HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u1\r\nChallenge-Solution: " + solution + "\r\n\r\n")
			}
			ask(fast, "soon", "") // below the rate from which on a solution is wanted
			solution := func(sku string) string {
				t.Helper()
				answer := ask(fast, sku, "")
				_, task, ok := strings.Cut(answer, "stockgate-challenge: ")
				if !ok {
					t.Fatalf("there is no task:\n%s", answer)
				}
				task, _, _ = strings.Cut(task, "\r\n")
				return sitetest.Solve(t, task)
			}
			is := func(c *h2Client, sku, solution, want string) {
				t.Helper()
				if a := ask(c, sku, solution); !strings.Contains(a, want) {
					t.Errorf("want %q:\n%s", want, a)
				}
			}
			const again = "stockgate-refusal: challenge"
			for try := 1; ; try++ { // until the edge knows that nothing is left
				s.SellOut()
				once, before := solution("out"), s.FastAnswers()
				is(fast, "out", once, "sold_out")
				if s.FastAnswers() > before {
					is(plain, "out", once, again)
					is(fast, "out", once, again)
					break
				}
				if try == 20 {
					t.Fatal("the wrapper never refuses what is sold out")
				}
			}
			once := solution("plain")
			is(fast, "plain", once, "418")
			is(fast, "plain", once, again)
			once = solution("plain")
			is(plain, "plain", once, "418")
			is(fast, "plain", once, again)
		})
	}
}

// What a server may read in another way is not answered by the wrapper: a method in small
// letters, a Host beside another authority, a path with a % that begins no escape.
func TestOddRequestsOverHTTP2(t *testing.T) {
	for name, secure := range map[string]bool{"with TLS": true, "without TLS": false} {
		t.Run(name, func(t *testing.T) {
			s := sitetest.OpenFastWith(t, secure, "protocols h1 h2 h2c", sitetest.AskedSites+sitetest.BenchOut)
			fast, plain := openH2(s, s.Fast), openH2(s, s.Plain)
			fast.ask("GET /asked?sku=soon HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u1\r\n\r\n") // below the rate from which on a solution is wanted
			const rest = " HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u1\r\n"
			for _, c := range []struct {
				what, request, want string
				here                bool
			}{
				{"as it should be", "GET /asked?sku=soon" + rest + "\r\n", ":status: 403", true},
				{"the same host", "GET /asked?sku=soon" + rest + "host: shop.example.com\r\n\r\n", ":status: 403", true},
				{"a small method", "get /asked?sku=soon" + rest + "\r\n", "the method is not in capitals", false},
				{"another host", "GET /asked?sku=soon" + rest + "host: other.example.com\r\n\r\n", "PROTOCOL_ERROR", false},
				{"no escape", "GET /asked%?sku=soon" + rest + "\r\n", "PROTOCOL_ERROR", false},
			} {
				before := s.FastAnswers()
				answer := fast.ask(c.request)
				if here := s.FastAnswers() > before; here != c.here || !strings.Contains(answer, c.want) {
					t.Errorf("%s: by the wrapper: %t, want %t with %q:\n%s", c.what, here, c.here, c.want, answer)
				}
				if got := plain.ask(c.request); !strings.Contains(got, c.want) {
					t.Errorf("%s: Caddy alone, want %q:\n%s", c.what, c.want, got)
				}
			}
		})
	}
}
