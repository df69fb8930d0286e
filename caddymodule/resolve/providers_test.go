package resolve_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/record"
)

const providerKey = "a secret of the provider"

// providerSite is a site with the webhook of a provider, whose body is {"order":…,"kind":…}.
func providerSite(verify string) func(shop, more string) string {
	return func(shop, more string) string {
		return "route {\nrewrite /old/* /hook?was=rewritten\nstockgate_resolve /hook {\n" + verify + `
		ref {json.order}
		@paid {
			json kind paid
		}
		confirm @paid
		` + more + "\n}\nreverse_proxy " + shop + "\n}"
	}
}

// from is a webhook with headers, given as names and values.
func from(target, body string, header ...string) *http.Request {
	r, err := http.NewRequest("POST", "http://127.0.0.1"+target, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func macOf(text string) []byte {
	mac := hmac.New(sha256.New, []byte(providerKey))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// The webhook of each provider confirms the order that it names, and one of another body nothing.
func TestWebhooksOfProviders(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	body := func(ref string) string { return `{"order":"` + ref + `","kind":"paid"}` }
	now := func() string { return strconv.FormatInt(time.Now().Unix(), 10) }
	h := openHooks(t, providerSite(`verify razorpay "`+providerKey+`"`))
	file := h.File("provider.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	for name, c := range map[string]struct {
		verify, target string
		body           func(ref string) string
		header         func(target, body string) []string
	}{
		"square": {"verify square {$KEY} https://shop.example.com/hook", "/hook", body, func(_, body string) []string {
			return []string{"X-Square-HmacSha256-Signature", base64.StdEncoding.EncodeToString(macOf("https://shop.example.com/hook" + body))}
		}},
		"paddle": {"verify paddle {$KEY} 30s", "/hook", body, func(_, body string) []string {
			at := now()
			return []string{"Paddle-Signature", "ts=" + at + ";h1=" + hex.EncodeToString(macOf(at+":"+body))}
		}},
		"razorpay": {"verify razorpay {$KEY}", "/hook", body, func(_, body string) []string {
			return []string{"X-Razorpay-Signature", hex.EncodeToString(macOf(body))}
		}},
		"gocardless": {"verify gocardless {$KEY}", "/hook", func(ref string) string { return `{"events":[` + body(ref) + `,{"kind":"other"}]}` }, func(_, body string) []string {
			return []string{"Webhook-Signature", hex.EncodeToString(macOf(body))}
		}},
		"woocommerce": {"verify woocommerce {$KEY}", "/hook", body, func(_, body string) []string {
			return []string{"X-WC-Webhook-Signature", base64.StdEncoding.EncodeToString(macOf(body))}
		}},
		"signed-hmac": {"verify signed {\nalgorithm hmac-sha256\nkey {$KEY}\nover v0: {header.X-Time} \":\" {uri} {newline} {body}\nfields X-Sig \", \"\nsignature {field.s} hex\ntime {header.X-Time} ms 1m\n}",
			"/old/hook?id=7", body, func(target, body string) []string {
				at := strconv.FormatInt(time.Now().UnixMilli(), 10)
				return []string{"X-Time", at, "X-Sig", "k=1, s=" + hex.EncodeToString(macOf("v0:"+at+":"+target+"\n"+body))}
			}},
		"signed-ed25519": {"verify signed {\nalgorithm ed25519\nkey {file." + file + "}\nover {header.X-Time} {body}\nsignature {header.X-Sig} base64\ntime {header.X-Time}\n}", "/hook", body, func(_, body string) []string {
			at := now()
			return []string{"X-Time", at, "X-Sig", base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(at+body)))}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			verify := strings.ReplaceAll(c.verify, "{$KEY}", `"`+providerKey+`"`)
			if err := h.LoadCaddyfile(providerSite(verify)(h.shop.Addr(), "")); err != nil {
				t.Fatal(err)
			}
			h.hold(name, name, "b", "plain", 1, record.ModeBackend, time.Hour)
			good := c.body(name)
			header := c.header(c.target, good)
			if a := h.Send(from(c.target, good+" ", header...)); a.Status != 401 || h.took() != 0 {
				t.Errorf("another body: %d %s", a.Status, a.Body)
			}
			if a := h.Send(from(c.target, good)); a.Status != 400 || !strings.Contains(a.Body, "is missing") {
				t.Errorf("without a signature: %d %s", a.Status, a.Body)
			}
			h.states("held", name)
			if a := h.Send(from(c.target, good, header...)); a.Status != 200 || h.took() != 1 {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			h.states("confirmed", name)
		})
	}
}

// A provider that sends a secret is believed by it alone.
func TestWebhookWithAToken(t *testing.T) {
	for _, verify := range []string{`verify xendit "` + providerKey + `"`, `verify token X-Callback-Token "` + providerKey + `"`} {
		h := openHooks(t, providerSite(verify))
		h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Hour)
		const body = `{"order":"SO-1","kind":"paid"}`
		for _, sent := range []string{"", "another secret", providerKey + "x"} {
			if a := h.Send(from("/hook", body, "X-Callback-Token", sent)); a.Status/100 != 4 || h.took() != 0 || strings.Contains(a.Body, providerKey) {
				t.Errorf("%q: %d %s", sent, a.Status, a.Body)
			}
		}
		if a := h.Send(from("/hook", body, "X-Callback-Token", providerKey)); a.Status != 200 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		h.states("confirmed", "r1")
	}
}

// WooCommerce's ping is not signed: it goes to the shop, settles nothing, and however many come, webhooks
// that are signed are heard.
func TestPingOfWooCommerce(t *testing.T) {
	h := openHooks(t, providerSite(`verify woocommerce "`+providerKey+`"`))
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Hour)
	ping := func(body string) sitetest.Answer {
		return h.Send(from("/hook", body, "Content-Type", "application/x-www-form-urlencoded"))
	}
	h.counts(func() {
		if a := ping("webhook_id=17"); a.Status != 200 || a.Body != "[accepted]" || h.shop.Got[0].Body != "webhook_id=17" {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}, "other 1")
	limited := 0
	for range 60 {
		if a := ping("webhook_id=17"); a.Status == 429 {
			limited++
			if a.Header.Get("Retry-After") == "" || !strings.Contains(a.Body, "too many pings of this address") {
				t.Errorf("%v %s", a.Header, a.Body)
			}
		}
	}
	if n := h.took(); limited == 0 || n != 61-limited {
		t.Errorf("of 60 more, %d were refused, and the shop got %d", limited, n)
	}
	const body = `{"order":"SO-1","kind":"paid"}`
	if a := h.Send(from("/hook", body, "X-WC-Webhook-Signature", base64.StdEncoding.EncodeToString(macOf(body)))); a.Status != 200 {
		t.Errorf("a signed one behind the pings: %d %s", a.Status, a.Body)
	}
	h.states("confirmed", "r1")
	h.took()
	for _, body := range []string{"webhook_id=17&order=SO-1", "webhook_id=x", `{"order":"SO-2","kind":"paid"}`} {
		if a := ping(body); a.Status != 400 || !strings.Contains(a.Body, "the header X-Wc-Webhook-Signature is missing") || h.took() != 0 {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	// a provider without such a ping has none
	if err := h.LoadCaddyfile(providerSite(`verify razorpay "`+providerKey+`"`)(h.shop.Addr(), "")); err != nil {
		t.Fatal(err)
	}
	if a := ping("webhook_id=17"); a.Status != 400 || h.took() != 0 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// A description that protects nothing is refused when the configuration loads, and says why.
func TestVerifyConfigurations(t *testing.T) {
	h := openHooks(t, providerSite(`verify razorpay "`+providerKey+`"`))
	signed := func(change ...string) string {
		text := "verify signed {\nalgorithm hmac-sha256\nkey \"" + providerKey + "\"\nover {header.X-Time} . {body}\nsignature {header.X-Sig} hex\ntime {header.X-Time} s 1m\n}"
		return strings.NewReplacer(change...).Replace(text)
	}
	if err := h.LoadCaddyfile(providerSite(signed())(h.shop.Addr(), "")); err != nil {
		t.Fatal(err)
	}
	for verify, says := range map[string]string{
		signed(" . {body}", ""): "over has no {body}: the signature would be good for any other body",
		signed(" . ", " "):      "",
		signed("time {header.X-Time} s 1m", "", " . ", " "):                 "side by side",
		signed("hmac-sha256", "rsa-sha256"):                                 "the key of rsa-sha256 is no PEM",
		signed("{header.X-Sig} hex", "{header.X-Sig}"):                      "write hex, base64 or base64url",
		signed("{header.X-Sig} hex", "{field.s} hex"):                       "fields names the header",
		signed(" s 1m", " 1m s"):                                            "write `time",
		signed("algorithm hmac-sha256\n", ""):                               "verify signed needs algorithm, key and signature",
		signed("algorithm", "algorithms"):                                   "unrecognized subdirective",
		`verify square "` + providerKey + `"`:                               "write `verify square <secret> <url>`",
		`verify square "` + providerKey + `" {env.NO_SUCH_URL}`:             "the URL is empty",
		`verify razorpay "` + providerKey + `" 5m`:                          "write `verify razorpay <secret>`",
		`verify token X_Token "` + providerKey + `"`:                        "never comes",
		`verify xendit short`:                                               "shorter than 8 bytes",
		"verify gocardless a_long_secret\nevents {json.events}":             "gocardless has its events in events, and needs no events",
		"verify gocardless a_long_secret\nverify hmac X sha256 another_one": "give each provider a stockgate_resolve and a path of its own",
	} {
		err := h.LoadCaddyfile(providerSite(verify)(h.shop.Addr(), ""))
		if says == "" && err == nil {
			continue
		}
		if err == nil || says == "" || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), providerKey) {
			t.Errorf("%s: %v, want %s", verify, err, says)
		}
	}
	for _, v := range []string{
		`{"scheme":"signed","key":"a long secret"}`,
		`{"scheme":"razorpay","key":"a long secret","signed":{"algorithm":"hmac-sha256"}}`,
		`{"scheme":"razorpay","key":"a long secret","url":"https://shop.example.com"}`,
		`{"scheme":"hmac","key":"a long secret","header":"X-Sig","algorithm":"sha256","url":"https://shop.example.com"}`,
		`{"scheme":"razorpay","key":"a long secret","header":"X-Sig"}`,
		`{"scheme":"token","key":"a long secret","header":"X-Sig","algorithm":"sha256"}`,
	} {
		handler := fmt.Sprintf(`{"handler":"stockgate_resolve","verify":[%s],"ref":["{json.a}"],"events":{"a":{"json":[{"path":"b"}]}},"rules":[{"outcome":"confirm","when":["@a"]}]}`, v)
		if err := h.LoadGate(handler); err == nil || !strings.Contains(err.Error(), "stockgate_resolve: verify ") {
			t.Errorf("%s: %v", v, err)
		}
	}
}
