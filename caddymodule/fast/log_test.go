package fast_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// logSink receives the lines of access logs.
type logSink struct {
	t     *testing.T
	ln    net.Listener
	lines chan string
}

func openSink(t *testing.T) *logSink {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &logSink{t, ln, make(chan string, 1000)}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					k.lines <- lines.Text()
				}
			}()
		}
	}()
	return k
}

// next is the next line.
func (k *logSink) next() map[string]any {
	k.t.Helper()
	line := make(map[string]any)
	text := <-k.lines
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		k.t.Fatalf("%v in %s", err, text)
	}
	return line
}

// loggedSites log every refusal, by the sites' own loggers.
const loggedSites = `
SITEshop.example.comPORT {
	log {
		output net LOGS
	}
	@post {
		method POST
		path /api/order
	}
	stockgate_guard
	stockgate @post {
		buyer {header.X-User-Id}
		line {json.sku}
		FAST
	}
	stockgate /item/* item {
		buyer {header.X-User-Id}
		line {path.1}
		FAST
	}
	stockgate /buy buy {
		buyer {header.X-User-Id}
		line {query.sku}
		refuse ended 503 "gone for good"
		FAST
	}
}
`

// loggedRequests are refused. Each sends what a log must not have.
var loggedRequests = map[string]string{
	"not started": "GET /buy?sku=soon HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u\r\nCookie: session=secret\r\ncookie: other=secret\r\n" +
		"authorization: Basic secret\r\nProxy-Authorization: Basic secret\r\nX-Twice: one\r\nx-twice: two\r\nX-Forwarded-For: 203.0.113.9\r\nUser-Agent: test\r\n\r\n",
	"POST": "POST /api/order HTTP/1.1\r\nHost: Shop.example.com:8080\r\nX-User-Id: u\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n" +
		`{"sku":"soon"}`,
	"unknown":                "GET /buy?sku=%22%3Cx%3E&a=b HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u\r\n\r\n",
	"HEAD":                   "HEAD /buy?sku=soon HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u\r\n\r\n",
	"no buyer":               "GET /buy?sku=soon HTTP/1.1\r\nHost: shop.example.com\r\n\r\n",
	"header that is removed": "GET /buy?sku=soon HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u\r\nStockgate-Token: x\r\n\r\n",
	"status of an error":     "GET /buy?sku=gone HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u\r\n\r\n",
	"guard":                  "GET /item/..;/buy HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u\r\n\r\n",
}

// TestFastRefusalsAreLogged compares the lines of the wrapper with those of Caddy for the same
// requests, over HTTP/1.1 and HTTP/2, with and without TLS.
func TestFastRefusalsAreLogged(t *testing.T) {
	for _, secure := range []bool{false, true} {
		sink := openSink(t)
		sites := strings.ReplaceAll(loggedSites, "LOGS", sink.ln.Addr().String())
		s := sitetest.OpenFastWith(t, secure, "", "SITEnone.example.comPORT {\n}\n")
		s.Option = "fast_refusals {\nlog 100%\n}"
		if err := s.LoadFast("protocols h1 h2 h2c\ntrusted_proxies static 127.0.0.0/8", sites); err != nil {
			t.Fatal(err)
		}
		for name, request := range loggedRequests {
			for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
				t.Run(fmt.Sprint(name, " ", proto, " TLS ", secure), func(t *testing.T) {
					ask := func(addr string) {
						if proto == "HTTP/1.1" {
							s.Raw(addr, request, 1)
							return
						}
						c := openH2(s, addr)
						defer c.conn.Close()
						c.ask("GET /buy HTTP/1.1\r\nHost: unknown.example.com\r\n\r\n") // grants credit; no site
						c.ask(request)
					}
					before := s.FastAnswers()
					ask(s.Fast)
					if s.FastAnswers() != before+1 {
						t.Fatal("the wrapper has not answered")
					}
					fast := sink.next()
					ask(s.Plain)
					plain := sink.next()
					if fast["sampled"] != "100%" {
						t.Errorf("sampled is %v", fast["sampled"])
					}
					delete(fast, "sampled")
					for _, line := range []map[string]any{fast, plain} {
						r := line["request"].(map[string]any)
						if r["proto"] != proto || r["remote_ip"] != "127.0.0.1" || r["remote_port"] == "" || line["duration"].(float64) <= 0 || line["ts"] == nil {
							t.Errorf("%v", line)
						}
						delete(r, "remote_port")
						delete(line, "duration")
						delete(line, "ts")
						line["logger"] = strings.TrimRight(line["logger"].(string), "0123456789")
					}
					if first, second := takeRetryAfter(t, fast), takeRetryAfter(t, plain); first+2 < second || first > 0 != (second > 0) {
						t.Errorf("Retry-After is %d, and then %d: a wait for a moment grows only by its spread", first, second)
					}
					if !reflect.DeepEqual(fast, plain) {
						t.Errorf("got\n%s\nwant\n%s", asJSON(fast), asJSON(plain))
					}
					if text := asJSON(fast); strings.Contains(text, "secret") {
						t.Errorf("it has credentials: %s", text)
					}
				})
			}
		}
	}
}

func asJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// TestFastRefusalsAreLoggedWithoutAccessLog: a gate that wants lines gets them under
// http.log.access where its site has no log, also beside a site that has one. A gate that does not
// ask for lines gets none.
func TestFastRefusalsAreLoggedWithoutAccessLog(t *testing.T) {
	const gate = "stockgate /buy {\nbuyer {header.X-User-Id}\nline {query.sku}\nFAST\n}\n}\n"
	const site, other = "SITEshop.example.comPORT {\n" + gate, "SITEother.example.comPORT {\nlog {\noutput file OTHER\n}\n}\n"
	s := sitetest.OpenFast(t, "", site)
	others := strings.ReplaceAll(other, "OTHER", s.Path("other"))
	for _, c := range []struct {
		name, option, sites string
		want                int
	}{
		{"not asked for", "fast_refusals", site, 0},
		{"no log", "fast_refusals {\nlog 100%\n}", site, 3},
		{"another site's log", "fast_refusals {\nlog 100%\n}", site + others, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Option = c.option
			if err := s.LoadFast("", c.sites); err != nil {
				t.Fatal(err)
			}
			log, before := s.Path("log"), s.FastAnswers()
			read := func() []byte {
				text, err := os.ReadFile(log)
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			old := len(read())
			s.Raw(s.Fast, buySoon+buySoon+buySoon, 3)
			if n := s.FastAnswers() - before; n != 3 {
				t.Fatalf("the wrapper has answered %d", n)
			}
			lines := 0
			for text := range strings.Lines(string(read()[old:])) {
				var line struct {
					Logger, Level, Msg, Sampled string
					Status                      int
				}
				if err := json.Unmarshal([]byte(text), &line); err != nil {
					t.Fatal(err)
				}
				if line.Msg != "handled request" {
					continue
				}
				if lines++; line.Logger != "http.log.access" || line.Sampled != "100%" || line.Status != 409 || line.Level != "info" {
					t.Errorf("%s", text)
				}
			}
			if lines != c.want {
				t.Errorf("%d lines, want %d", lines, c.want)
			}
		})
	}
}

// takeRetryAfter removes the wait until the sale begins from a line, which falls from second to
// second; 0: there is none.
func takeRetryAfter(t *testing.T, line map[string]any) (seconds int) {
	t.Helper()
	headers, _ := line["resp_headers"].(map[string]any)
	values, _ := headers["Retry-After"].([]any)
	delete(headers, "Retry-After")
	if len(values) == 0 {
		return 0
	}
	seconds, err := strconv.Atoi(fmt.Sprint(values[0]))
	if err != nil || len(values) > 1 {
		t.Errorf("Retry-After is %v", values)
	}
	return seconds
}
