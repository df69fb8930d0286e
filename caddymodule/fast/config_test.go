package fast_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// TestFastConfigurationErrors loads what adapts and yet cannot be.
func TestFastConfigurationErrors(t *testing.T) {
	s := sitetest.OpenCaddyfile(t, "respond 418")
	const gate = `{"handler":"stockgate","fast_refusals":{},"buyer":["BUYER"],"lines":[{"sku":["{query.sku}"]}]}`
	for buyer, want := range map[string]string{
		"{header.X-User-Id}":  "the server of this gate has no listener wrapper stockgate",
		"{http.auth.user.id}": "the value {http.auth.user.id} is known to Caddy only when it handles the request",
	} {
		if err := s.LoadGate(strings.Replace(gate, "BUYER", buyer, 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", buyer, err, want)
		}
	}
	for share, want := range map[string]string{"0%": `log "0%": write the share`, "150%": `log "150%": write the share`, "abc": `log "abc": write the share`} {
		logged := strings.Replace(gate, `"fast_refusals":{}`, `"fast_refusals":{"log":"`+share+`"}`, 1)
		if err := s.LoadGate(strings.Replace(logged, "BUYER", "{header.X-User-Id}", 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", share, err, want)
		}
	}
	f := &sitetest.FastSite{Site: s}
	for options, want := range map[string]string{
		"servers {\nlistener_wrappers {\nstockgate\nstockgate\n}\n}": "is given twice",
	} {
		if err := f.LoadText(options, "http://:0 {\nrespond 418\n}\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
}

// TestFastObstacles loads gates that the wrapper cannot refuse for, and says so in the
// log; with force it passes over what stands before them.
func TestFastObstacles(t *testing.T) {
	const gate = `
	stockgate /buy {
		buyer {header.X-User-Id}
		line {query.sku}
		FAST
	}
`
	s := sitetest.OpenFast(t, "", "SITEshop.example.comPORT {\nrespond 418\n}\n")
	request := "GET /buy?sku=soon HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u\r\n\r\n"
	for name, c := range map[string]struct {
		site, option, logged string
		fast                 bool
	}{
		"plain":             {gate, "fast_refusals", "", true},
		"header, forced":    {"header X-A b" + gate, "fast_refusals force", "", true},
		"redir elsewhere":   {"redir /old /new" + gate, "fast_refusals force", "", true},
		"asks about this":   {"forward_auth /buy 127.0.0.1:9 {\nuri /who\n}" + gate, "fast_refusals force", "http.handlers.reverse_proxy", false},
		"matcher, forced":   {"@in remote_ip 127.0.0.0/8\nheader @in X-A b" + gate, "fast_refusals force", "", true},
		"behind a matcher":  {"@in remote_ip 127.0.0.0/8\nhandle @in {" + gate + "}", "fast_refusals", "the matcher remote_ip", false},
		"after one":         {"@in remote_ip 10.0.0.0/8\nroute {\nhandle @in {\nrespond 418\n}\n" + gate + "}", "fast_refusals", "the matcher remote_ip", false},
		"underscore, other": {"vars a b\nlog_skip /x" + gate, "fast_refusals", "", true},
		"the client's IP":   {"vars client_ip 192.0.2.1" + gate, "fast_refusals", "http.handlers.vars", false},
	} {
		t.Run(name, func(t *testing.T) {
			const message = "no fast refusals of this gate: what stands before it can change the answer: "
			s.Move()
			sites := "http://shop.example.com:" + portOf(s.Fast) + " {\n" + strings.Replace(c.site, "FAST", c.option, 1) + "\nrespond 418\n}\n"
			if err := s.LoadText("servers {\nlistener_wrappers {\nstockgate\n}\n}", sites); err != nil {
				t.Fatal(err)
			}
			before := s.FastAnswers()
			s.Raw(s.Fast, request, 1)
			if fast := s.FastAnswers() > before; fast != c.fast {
				t.Errorf("fast %t, want %t", fast, c.fast)
			}
			logged := s.Logged(message + c.logged + "; move it behind the gate, or write `fast_refusals force`")
			if c.logged != "" && len(logged) == 0 {
				t.Errorf("the log does not say %q", c.logged)
			}
			if (c.logged == "") != answersFast() {
				t.Errorf("it answers: %t", answersFast())
			}
		})
	}
}

// TestFastUnsuited has servers whose answers the wrapper cannot know.
func TestFastUnsuited(t *testing.T) {
	s := sitetest.OpenFast(t, "", "SITEshop.example.comPORT {\nrespond 418\n}\n")
	s.Move()
	sites := "http://shop.example.com:" + portOf(s.Fast) + ` {
	stockgate /buy {
		buyer {header.X-User-Id}
		line {query.sku}
		fast_refusals
	}
	respond 418
}
`
	if err := s.LoadText("servers {\nexpected_underscore_headers X_A\nlistener_wrappers {\nstockgate\n}\n}", sites); err != nil {
		t.Fatal(err)
	}
	if answersFast() {
		t.Error("it answers")
	}
	if len(s.Logged("no fast refusals on this server: it expects header names with underscores or dots")) == 0 {
		t.Error("the log does not say why")
	}
}

// answersFast reports whether the running configuration's only wrapper answers anything.
func answersFast() bool {
	ln := new(net.TCPListener)
	return fastListener(ln) != net.Listener(ln)
}
