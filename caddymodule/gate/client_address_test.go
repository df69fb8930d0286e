package gate_test

import (
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

const (
	addressGate  = "stockgate_guard\n@order {\nmethod POST\npath /order\n}\nstockgate @order main {\nbuyer {http.vars.user}\nline {json.sku}\n%s\n}\n%srespond 201\n"
	chosenByXFF  = "a client that sends X-Forwarded-For itself chooses its address"
	trustsLocal  = "servers {\ntrusted_proxies static private_ranges\n%s\n}"
	addressLists = "list bad file %s"
	addressHook  = "stockgate_resolve /hook {\nverify stripe whsec_secret\nref {json.order}\n@paid {\njson type paid\n}\nconfirm @paid\n}\n"
)

// Whatever counts by the client's address warns where a client can choose it: the log at
// validation and at load, and the doctor.
func TestChosenAddress(t *testing.T) {
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", sitetest.GuardedGate)
	list := p.File("bad", "198.51.100.7\n")
	const b2b = "stockgate %s b2b {\nbuyer {http.vars.user}\nline {json.sku}\n}\n"
	matched := func(matcher string) string {
		return "@b2b {\n" + matcher + "\n}\n" + strings.Replace(b2b, "%s", "@b2b", 1)
	}
	inside := func(handlers string) string {
		return "@inside client_ip 198.51.100.0/24\nhandle @inside {\n" + handlers + "}\n"
	}
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
		"matcher":                {"", "", matched("path /b2b\nclient_ip 198.51.100.0/24"), "the gate b2b uses the client's address (matcher client_ip)"},
		"matcher with not":       {"", "", matched("path /b2b\nnot client_ip 198.51.100.0/24"), "the gate b2b uses the client's address (matcher client_ip)"},
		"matcher expression":     {"", "", matched("expression path('/b2b') && client_ip('198.51.100.0/24')"), "the gate b2b uses the client's address (matcher expression)"},
		"matcher of a value":     {"", "", matched("path /b2b\nvars {client_ip} 198.51.100.7"), "the gate b2b uses the client's address (matcher vars)"},
		"matcher of a check":     {"", "", strings.Replace(matched("path /b2b\nclient_ip 198.51.100.0/24"), "stockgate @b2b b2b {\nbuyer {http.vars.user}", "stockgate_check @b2b b2b {", 1), "the gate b2b uses the client's address (matcher client_ip)"},
		"matcher of a webhook":   {"", "", "@hook client_ip 198.51.100.0/24\n" + strings.Replace(addressHook, "/hook", "@hook", 1), "stockgate_resolve uses the client's address (webhooks that were not accepted, matcher client_ip)"},
		"block around":           {"", "", inside(strings.Replace(b2b, "%s", "/b2b", 1)), "the gate b2b uses the client's address (matcher client_ip)"},
		"block around a page":    {"", "", inside("stockgate_dashboard {\nunprotected\n}\n"), "stockgate_dashboard uses the client's address (matcher client_ip)"},
		"block around status":    {"", "", inside("stockgate_status\n"), "stockgate_status uses the client's address (matcher client_ip)"},
		"block around the api":   {"", "", inside("stockgate_api {\nkey 0123456789abcdef0123456789abcdef\n}\n"), "stockgate_api uses the client's address (matcher client_ip)"},
		"who does not wait":      {"", "one_at_a_time {cookie.s} except @own", "@own client_ip 198.51.100.0/24\n", "the gate main uses the client's address (one_at_a_time except)"},
		"matcher of a peer":      {"", "", matched("path /b2b\nremote_ip 198.51.100.0/24"), ""},
		"strict matcher":         {"trusted_proxies_strict", "", matched("path /b2b\nclient_ip 198.51.100.0/24"), ""},
		"nothing":                {"", "rate {json.sku} 3 10s", "", ""},
		"strict":                 {"trusted_proxies_strict", "rate {client_ip} 3 10s", addressHook, ""},
		"a header of the proxy":  {"client_ip_headers CF-Connecting-IP", "rate {client_ip} 3 10s", addressHook, ""},
		"it comes first":         {"client_ip_headers X-Real-IP X-Forwarded-For", "deny bad", "", ""},
		"it comes second":        {"client_ip_headers x-forwarded-for X-Real-IP", "deny bad", "", "the gate main uses the client's address (deny)"},
	} {
		t.Run(name, func(t *testing.T) {
			see(p, t, strings.Replace(trustsLocal, "%s", c.servers, 1), strings.Replace(addressLists, "%s", list, 1),
				strings.Replace(strings.Replace(addressGate, "%s", c.gate, 1), "%s", c.handlers, 1), c.want)
		})
	}
	t.Run("unix sockets", func(t *testing.T) {
		see(p, t, "servers {\ntrusted_proxies_unix\n}", "", strings.Replace(strings.Replace(addressGate, "%s", "identity ip {client_ip}", 1), "%s", "", 1), "the gate main uses the client's address (identity ip)")
	})
	t.Run("no proxy is trusted", func(t *testing.T) {
		see(p, t, "", "", strings.Replace(strings.Replace(addressGate, "%s", "identity ip {client_ip}", 1), "%s", "", 1), "")
	})
}

// see loads a configuration, and compares what the log and the doctor say of addresses.
func see(p *sitetest.Patient, t *testing.T, servers, options, directives, want string) {
	t.Helper()
	before := len(p.Read("log"))
	p.Change(options, servers, directives)
	for place, text := range map[string]string{"the log": p.Read("log")[before:], "the doctor": p.Doctor().Out} {
		if want == "" && strings.Contains(text, chosenByXFF) || want != "" && (!strings.Contains(text, want) || !strings.Contains(text, chosenByXFF) || !strings.Contains(text, "trusted_proxies_strict")) {
			t.Errorf("%s, want %q:\n%s", place, want, text)
		}
	}
}

// `caddy validate` says it too.
func TestChosenAddressIsValidated(t *testing.T) {
	s := sitetest.Open(t, nil)
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
