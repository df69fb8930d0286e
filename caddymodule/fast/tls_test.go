package fast_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// tlsSites answer what they see of TLS, and refuse what is not yet sold.
const tlsSites = `
SITEshop.example.comPORT {
	stockgate /buy {
		buyer {header.X-User-Id}
		line {query.sku}
		FAST
	}
	@https protocol https
	respond @https "{http.request.tls.version} {http.request.tls.server_name} {http.request.tls.resumed} {http.request.tls.proto} {http.request.tls.client.subject} {http.request.proto}" 418
	respond 421
}
`

const buySoon = "GET /buy?sku=soon HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u\r\n\r\n"

// TestFastTLSIsSeen asks on one connection for what the wrapper refuses, and for what Caddy's
// handlers see of TLS.
func TestFastTLSIsSeen(t *testing.T) {
	for _, protocols := range []string{"protocols h1 h2", "protocols h1", "protocols h1 h2 h3"} {
		t.Run(protocols, func(t *testing.T) {
			s := sitetest.OpenFastWith(t, true, protocols, tlsSites)
			before := s.FastAnswers()
			ports := regexp.MustCompile(`h3=":\d+"`)
			three := buySoon + "GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n" + buySoon
			got, want, asked := sitetest.Agree(3, func() (string, string) {
				return ports.ReplaceAllString(sitetest.WithoutDate(s.Raw(s.Fast, three, 3)), "h3"), ports.ReplaceAllString(sitetest.WithoutDate(s.Raw(s.Plain, three, 3)), "h3")
			})
			if got != want || !strings.Contains(got, "tls1.3 shop.example.com false") || strings.Contains(protocols, "h3") != strings.Contains(got, "Alt-Svc: h3; ma=2592000") {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if fast := s.FastAnswers() - before; fast != 2*asked {
				t.Errorf("%d of %d times three were answered by the wrapper, want two of each", fast, asked)
			}
		})
	}
}

// TestFastTLSClients asks with Go's client and with curl, HTTP/1.1 and HTTP/2.
func TestFastTLSClients(t *testing.T) {
	s := sitetest.OpenFastWith(t, true, "protocols h1 h2", tlsSites)
	for _, version := range []int{1, 2} {
		before := s.FastAnswers()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.Secure.Clone(), ForceAttemptHTTP2: version == 2}}
		for range 3 {
			r, _ := http.NewRequest("GET", "https://"+s.Fast+"/buy?sku=soon", nil)
			r.Host = "shop.example.com"
			r.Header.Set("X-User-Id", "u")
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != 409 || resp.ProtoMajor != version {
				t.Errorf("%d over %s, want HTTP/%d", resp.StatusCode, resp.Proto, version)
			}
		}
		client.CloseIdleConnections()
		url := "https://shop.example.com:" + portOf(s.Fast) + "/buy?sku=soon"
		out, err := exec.Command("curl", "-sS", "-k", map[int]string{1: "--http1.1", 2: "--http2"}[version], "--resolve", "shop.example.com:"+portOf(s.Fast)+":127.0.0.1",
			"-H", "X-User-Id: u", "-w", "%{http_version} %{http_code}\n", "-o", "/dev/null", url, "-o", "/dev/null", url).CombinedOutput()
		if want := strings.Repeat(map[int]string{1: "1.1", 2: "2"}[version]+" 409\n", 2); err != nil || string(out) != want {
			t.Errorf("curl: %v, %q, want %q", err, out, want)
		}
		if fast := s.FastAnswers() - before; fast != fastOver[version] {
			t.Errorf("HTTP/%d: %d were answered by the wrapper, want %d", version, fast, fastOver[version])
		}
	}
}

// fastOver is how many of five requests the wrapper answers, by version of HTTP.
var fastOver = map[int]int{1: 5, 2: 5}

// TestFastTLSOddClients has clients that break off, that speak another protocol than they have
// agreed on, or none at all: both servers do the same.
func TestFastTLSOddClients(t *testing.T) {
	s := sitetest.OpenFastWith(t, true, "protocols h1 h2", tlsSites)
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for name, c := range map[string]struct {
		offer []string
		send  string
		want  string
	}{
		"HTTP/1.1 after h2":   {[]string{"h2"}, buySoon, ""},
		"preface after http":  {[]string{"http/1.1"}, preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00", ""},
		"nothing was offered": {nil, buySoon, "409"},
		"half a request":      {[]string{"http/1.1"}, "GET /buy HTTP/1.1\r\nHost: sh", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s.Protocols = c.offer
			defer func() { s.Protocols = nil }()
			conn := s.Open(s.Fast)
			defer conn.Close()
			if _, err := io.WriteString(conn, c.send); err != nil {
				t.Fatal(err)
			}
			_ = conn.Conn.(*tls.Conn).CloseWrite()
			all, err := io.ReadAll(conn)
			if strings.HasPrefix(c.send, "GET") && err != nil || c.want == "" && strings.Contains(string(all), "HTTP/1.1 ") && !strings.HasPrefix(string(all), "HTTP/1.1 400") || !strings.Contains(string(all), c.want) {
				t.Errorf("%q, %v", all, err)
			}
		})
	}
	t.Run("no protocol in common", func(t *testing.T) {
		s.Protocols = []string{"spdy/3"}
		defer func() { s.Protocols = nil }()
		if err := s.Open(s.Fast).Conn.(*tls.Conn).Handshake(); err == nil || !strings.Contains(err.Error(), "no application protocol") {
			t.Error(err)
		}
	})
	t.Run("no TLS", func(t *testing.T) {
		secure := s.Secure
		s.Secure = nil
		defer func() { s.Secure = secure }()
		got, want := s.Both(buySoon)
		if got != want || !strings.Contains(got, "400 Bad Request") {
			t.Errorf("%q, want %q", got, want)
		}
		if got, want := s.Both("\x16\x03\x01\x00\x05hello"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestFastTLSNames has a server that asks for client certificates and so insists that a request
// is for the host that the handshake has named.
func TestFastTLSNames(t *testing.T) {
	s := sitetest.OpenFastWith(t, true, "protocols h1 h2\nstrict_sni_host on", tlsSites)
	if answer, fast := s.Same(buySoon); !fast || !strings.Contains(answer, "409") {
		t.Errorf("fast %t: %s", fast, answer)
	}
	if answer, fast := s.Same(strings.Replace(buySoon, "shop.", "SHOP.", 1)); !fast || !strings.Contains(answer, "409") {
		t.Errorf("fast %t: %s", fast, answer)
	}
	s.Secure.ServerName = "other.example.com"
	if answer, fast := s.Same(buySoon); fast || !strings.Contains(answer, "421 Misdirected Request") {
		t.Errorf("fast %t: %s", fast, answer)
	}
	s.Secure.ServerName = "shop.example.com"
	certificate, err := tls.LoadX509KeyPair(s.Path("cert"), s.Path("key"))
	if err != nil {
		t.Fatal(err)
	}
	asking := strings.Replace(tlsSites, "stockgate /buy", "tls {\nclient_auth {\nmode require\n}\n}\nstockgate /buy", 1)
	if err := s.LoadFast("protocols h1 h2", asking); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	s.Secure.Certificates = []tls.Certificate{certificate}
	if answer, fast := s.Same(buySoon); !fast || !strings.Contains(answer, "409") {
		t.Errorf("with a certificate, fast %t: %s", fast, answer)
	}
	if got, want := s.Both("GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"); got != want || !strings.Contains(got, "CN=buyer") {
		t.Errorf("%s, want %s", got, want)
	}
	s.Secure.Certificates = nil
	if got, want := s.Both(buySoon); got != want || got != "" {
		t.Errorf("without a certificate: %q, want %q", got, want)
	}
}

// TestFastTLSReload loads another configuration: idle connections get a proper end, and one
// whose request has begun is answered by Caddy.
func TestFastTLSReload(t *testing.T) {
	s := sitetest.OpenFastWith(t, true, "protocols h1 h2", tlsSites)
	idle, busy := s.Open(s.Fast), s.Open(s.Fast)
	for _, c := range []*sitetest.RawConn{idle, busy} {
		_, _ = io.WriteString(c, buySoon)
		if got := first(c.Answers(1)); got[0] != "HTTP/1.1 409 Conflict" {
			t.Fatal(got)
		}
	}
	_, _ = io.WriteString(busy, buySoon[:20])
	if err := s.LoadFastAt("protocols h1 h2", strings.Replace(tlsSites, "FAST", "FAST\nrefuse not_started 200 later", 1), portOf(s.Fast), portOf(s.Plain)); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(idle); len(rest) > 0 || err != nil {
		t.Errorf("the idle connection got %q, %v; want its end", rest, err)
	}
	_, _ = io.WriteString(busy, buySoon[20:])
	if rest, _ := io.ReadAll(busy); strings.Contains(string(rest), "later") {
		t.Errorf("the new gate answers on an old connection: %q", rest)
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
}

// TestTLSBehindTheWrapper has the wrapper before TLS: it sees ciphertext, and answers nothing.
func TestTLSBehindTheWrapper(t *testing.T) {
	s := sitetest.OpenFastWith(t, true, "protocols h1 h2", tlsSites)
	s.Move()
	sites := strings.NewReplacer("SITE", "https://", "PORT {", fmt.Sprintf(":%s {\n%s", portOf(s.Fast), s.TLSOption()), "FAST", "fast_refusals").Replace(tlsSites)
	if err := s.LoadText("skip_install_trust\nservers {\nprotocols h1 h2\nlistener_wrappers {\nstockgate\ntls\n}\n}\n", sites); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	before := s.FastAnswers()
	if got := s.Raw(s.Fast, buySoon, 1); !strings.Contains(got, "409") {
		t.Error(got)
	}
	if s.FastAnswers() != before {
		t.Error("the wrapper has answered")
	}
}
