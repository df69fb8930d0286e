package caddymodule_test

import (
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/stockgate/stockgate/internal/redistest"
)

const (
	addressGate  = "stockgate_guard\n@order {\nmethod POST\npath /order\n}\nstockgate @order main {\nbuyer {http.vars.user}\nline {json.sku}\n%s\n}\n%srespond 201\n"
	chosenByXFF  = "a client that sends X-Forwarded-For itself chooses its address"
	trustsLocal  = "servers {\ntrusted_proxies static private_ranges\n%s\n}"
	addressLists = "list bad file %s"
	addressHook  = "stockgate_resolve /hook {\nverify stripe " + hookSecret + "\nref {json.order}\n@paid {\njson type paid\n}\nconfirm @paid\n}\n"
)

// Whatever counts by the client's address warns where a client can choose it: the log at
// validation and at load, and the doctor.
func TestChosenAddress(t *testing.T) {
	p := admit(t, wellRedis, "", "", guardedGate)
	list := p.File("bad", "198.51.100.7\n")
	jwt := "region {jwt.region}\njwt hmac 0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		servers, gate, handlers string
		want                    string // what uses the address; empty: no warning
	}{
		"rate":                   {"", "rate {client_ip} 3 10s", "", "the gate main uses the client's address (rate)"},
		"identity":               {"", "identity ip {client_ip}", "", "the gate main uses the client's address (identity ip)"},
		"a part of a value":      {"", "region r-{http.vars.client_ip}", "", "the gate main uses the client's address (region)"},
		"denylist":               {"", "deny bad", "", "the gate main uses the client's address (deny)"},
		"allowlist":              {"", "allow bad", "", "the gate main uses the client's address (allow)"},
		"challenge":              {"", "challenge pow", "", "the gate main uses the client's address (challenge)"},
		"brake of forged tokens": {"", jwt, "", "the gate main uses the client's address (jwt)"},
		"several":                {"", "deny bad\nrate {client_ip} 3 10s\nrate {jwt.sub} 3 10s\n" + jwt, "", "the gate main uses the client's address (rate, deny, jwt)"},
		"check":                  {"", "", "stockgate_check /cart early {\nline {json.sku}\nrate {client_ip} 3 10s\n}\n", "the gate early uses the client's address (rate)"},
		"webhooks":               {"", "", addressHook, "stockgate_resolve uses the client's address (webhooks that were not accepted)"},
		"nothing":                {"", "rate {json.sku} 3 10s", "", ""},
		"strict":                 {"trusted_proxies_strict", "rate {client_ip} 3 10s", addressHook, ""},
		"a header of the proxy":  {"client_ip_headers CF-Connecting-IP", "rate {client_ip} 3 10s", addressHook, ""},
		"it comes first":         {"client_ip_headers X-Real-IP X-Forwarded-For", "deny bad", "", ""},
		"it comes second":        {"client_ip_headers x-forwarded-for X-Real-IP", "deny bad", "", "the gate main uses the client's address (deny)"},
	} {
		t.Run(name, func(t *testing.T) {
			p.see(t, strings.Replace(trustsLocal, "%s", c.servers, 1), strings.Replace(addressLists, "%s", list, 1),
				strings.Replace(strings.Replace(addressGate, "%s", c.gate, 1), "%s", c.handlers, 1), c.want)
		})
	}
	t.Run("unix sockets", func(t *testing.T) {
		p.see(t, "servers {\ntrusted_proxies_unix\n}", "", strings.Replace(strings.Replace(addressGate, "%s", "identity ip {client_ip}", 1), "%s", "", 1), "the gate main uses the client's address (identity ip)")
	})
	t.Run("no proxy is trusted", func(t *testing.T) {
		p.see(t, "", "", strings.Replace(strings.Replace(addressGate, "%s", "identity ip {client_ip}", 1), "%s", "", 1), "")
	})
}

// see loads a configuration, and compares what the log and the doctor say of addresses.
func (p *patient) see(t *testing.T, servers, options, directives, want string) {
	t.Helper()
	before := len(p.Read("log"))
	p.change(options, servers, directives)
	for place, text := range map[string]string{"the log": p.Read("log")[before:], "the doctor": p.doctor().Out} {
		if want == "" && strings.Contains(text, chosenByXFF) || want != "" && (!strings.Contains(text, want) || !strings.Contains(text, chosenByXFF) || !strings.Contains(text, "trusted_proxies_strict")) {
			t.Errorf("%s, want %q:\n%s", place, want, text)
		}
	}
}

// `caddy validate` says it too.
func TestChosenAddressIsValidated(t *testing.T) {
	s := openSite(t, nil)
	server := redistest.Start(t)
	file := s.File("Caddyfile", "{\nadmin off\nstorage file_system "+s.Path("storage")+"\nlog {\noutput file "+s.Path("validated")+"\n}\n"+
		strings.Replace(trustsLocal, "%s", "", 1)+"\nstockgate {\nredis "+server.Addr()+"\n}\n}\nhttp:// {\nbind unix/"+s.Path("validated.sock")+"\n"+
		strings.Replace(strings.Replace(addressGate, "%s", "rate {client_ip} 3 10s", 1), "%s", "", 1)+"}\n")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(text, map[string]any{"filename": file})
	if err != nil {
		t.Fatal(err)
	}
	var config caddy.Config
	if err := caddy.StrictUnmarshalJSON(adapted, &config); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&config); err != nil {
		t.Fatal(err)
	}
	if log := s.Read("validated"); !strings.Contains(log, chosenByXFF) {
		t.Errorf("the log does not say so:\n%s", log)
	}
}
