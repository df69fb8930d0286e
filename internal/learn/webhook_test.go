package learn_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/learn"
)

// paidAt is a recording, made at the shop's side, of an order that leads to another company's page, and of the
// webhook that comes then.
func paidAt(header map[string]string, bodies ...string) []entry {
	all := with(func(o *entry) {
		o.body = `{"sku":"SNK-1","quantity":2,"order_no":"C-551277"}`
		o.status, o.answer, o.set = 303, "", map[string]string{"Location": "https://pay.example.net/p?order=C-551277"}
	})
	for _, body := range bodies {
		all = append(all, entry{method: "POST", url: "https://shop.example.com/hooks/pay", header: header, mime: asJSON, body: body, status: 204})
	}
	return all
}

// Signatures of the right form, by no key.
var (
	mac     = strings.Repeat("0123abcd", 8)
	asBytes = func() []byte { raw, _ := hex.DecodeString(mac); return raw }()
	mac64   = base64.StdEncoding.EncodeToString(asBytes)
)

// TestRecordedWebhooks compares what is written with the signature and the event of a recorded webhook.
func TestRecordedWebhooks(t *testing.T) {
	one := func(name, value string) map[string]string { return map[string]string{name: value} }
	const plain = `{"type":"payment.paid","order":"C-551277","status":"paid"}`
	for _, c := range []struct {
		name   string
		header map[string]string
		bodies []string
		want   []string // lines, and parts of questions
		not    string
	}{
		{"Stripe", one("Stripe-Signature", "t=1790000000,v1="+mac), []string{`{"type":"checkout.session.completed","data":{"object":{"client_reference_id":"C-551277","payment_status":"paid","status":"complete"}}}`},
			[]string{"stockgate_resolve /hooks/pay {", "verify stripe {env.WEBHOOK_SECRET}", "ref {json.data.object.client_reference_id}", "json type checkout.session.completed", "json data.object.payment_status paid", "form of `stripe`"}, "# stockgate_resolve"},
		{"Standard Webhooks", map[string]string{"webhook-id": "m_1", "webhook-timestamp": "1790000000", "webhook-signature": "v1," + mac64}, []string{plain}, []string{"verify standard {env.WEBHOOK_SECRET}", "ref {json.order}", "json type payment.paid", "json status paid"}, ""},
		{"GoCardless", one("Webhook-Signature", mac), []string{`{"events":[{"action":"confirmed","resource_metadata":{"order_no":"C-551277"}}]}`}, []string{"verify gocardless {env.WEBHOOK_SECRET}", "ref {json.resource_metadata.order_no}", "json action confirmed"}, "events {json"},
		{"the same header, one event", one("Webhook-Signature", mac), []string{plain}, []string{"verify hmac Webhook-Signature sha256 {env.WEBHOOK_SECRET}"}, "gocardless"},
		{"Paddle", one("Paddle-Signature", "ts=1790000000;h1="+mac), []string{`{"event_type":"transaction.completed","data":{"custom_data":{"order_no":"C-551277"},"status":"completed"}}`}, []string{"verify paddle {env.WEBHOOK_SECRET}", "json event_type transaction.completed", "json data.status completed"}, ""},
		{"Square", one("X-Square-Hmacsha256-Signature", mac64), []string{plain}, []string{"verify square {env.WEBHOOK_SECRET} https://shop.example.com/hooks/pay"}, ""},
		{"Adyen", nil, []string{`{"live":"false","notificationItems":[{"NotificationRequestItem":{"eventCode":"AUTHORISATION","success":"true","merchantReference":"C-551277","amount":{"value":1,"currency":"EUR"},"additionalData":{"hmacSignature":"` + mac64 + `"}}}]}`},
			[]string{"verify adyen {env.WEBHOOK_SECRET}", "ref {json.merchantReference}", "json eventCode AUTHORISATION", "json success true"}, "events {json"},
		{"PayPal", map[string]string{"Paypal-Transmission-Id": "a-1", "Paypal-Transmission-Time": "2026-11-01T10:00:00Z", "Paypal-Transmission-Sig": mac64, "Paypal-Auth-Algo": "SHA256withRSA", "Paypal-Cert-Url": "https://api.paypal.com/v1/notifications/certs/CERT-1"},
			[]string{`{"event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"status":"COMPLETED","custom_id":"C-551277"}}`}, []string{"verify paypal {env.WEBHOOK_ID}", "ref {json.resource.custom_id}", "json resource.status COMPLETED"}, "paypal_sandbox"},
		{"Razorpay", one("X-Razorpay-Signature", mac), []string{`{"event":"payment.captured","payload":{"payment":{"entity":{"notes":{"order_no":"C-551277"},"status":"captured"}}}}`}, []string{"verify razorpay {env.WEBHOOK_SECRET}", "json payload.payment.entity.status captured"}, ""},
		{"WooCommerce", one("X-WC-Webhook-Signature", mac64), []string{plain}, []string{"verify woocommerce {env.WEBHOOK_SECRET}"}, ""},
		{"a token", one("X-Callback-Token", mac), []string{plain}, []string{"verify xendit {env.WEBHOOK_SECRET}"}, ""},
		{"a header of its own", one("X-Shopify-Hmac-Sha256", mac64), []string{plain}, []string{"verify hmac X-Shopify-Hmac-Sha256 sha256 {env.WEBHOOK_SECRET}"}, ""},
		{"SHA-512", one("X-Signature", mac+mac), []string{plain}, []string{"verify hmac X-Signature sha512 {env.WEBHOOK_SECRET}"}, ""},
		{"several events", one("X-Signature", mac), []string{`{"data":{"events":[{"status":"paid","order":"C-551277"}]}}`}, []string{"events {json.data.events}", "ref {json.order}", "json status paid"}, ""},
		{"a list", one("X-Signature", mac), []string{`[{"status":"paid","order":"C-551277"}]`}, []string{"events {json}", "ref {json.order}"}, ""},
		{"the last that is paid", one("X-Signature", mac), []string{strings.ReplaceAll(plain, "paid", "created"), plain, strings.ReplaceAll(plain, "paid", "refunded")}, []string{"json type payment.paid"}, "created"},
		{"none that is paid", one("X-Signature", mac), []string{strings.ReplaceAll(plain, "paid", "created")}, []string{"# stockgate_resolve /webhooks/payment {", "Is this the webhook of the payment?"}, "payment.created"},
		{"of another order", one("X-Signature", mac), []string{strings.ReplaceAll(plain, "C-551277", "C-9")}, []string{"# stockgate_resolve /webhooks/payment {", "Is this the webhook of the payment?"}, "payment.paid"},
		{"a scheme that is not known", one("X-Signature", "t=1;v=2"), []string{plain}, []string{"# stockgate_resolve /hooks/pay {", "# \t\tsignature {header.X-Signature} hex", "How is the webhook signed?"}, "verify hmac"},
		{"a client that signs", map[string]string{"X-Sign": mac, "Origin": "https://shop.example.com"}, []string{plain}, []string{"# stockgate_resolve /webhooks/payment {"}, "X-Sign "},
		{"a browser's request", map[string]string{"X-Signature": mac, "Cookie": "sid=c0ffee5e55104"}, []string{plain}, []string{"# stockgate_resolve /webhooks/payment {"}, "X-Signature sha512"},
		{"a hostile header", one("X-Signature{env.HOME}", mac), []string{plain}, []string{"# stockgate_resolve /webhooks/payment {"}, "env.HOME"},
		{"a hostile state", one("X-Signature", mac), []string{`{"order":"C-551277","type":"paid } import /etc/passwd"}`}, []string{"# stockgate_resolve /webhooks/payment {"}, "passwd"},
		{"a buyer in the event", one("X-Signature", mac), []string{`{"order":"C-551277","status":"paid","email":"paid@mail.test","type":"paid@mail.test"}`}, []string{"json status paid"}, "mail.test"},
		{"no JSON", one("X-Signature", mac), []string{"C-551277"}, []string{"# stockgate_resolve /webhooks/payment {"}, "sha512"},
	} {
		l, err := learned(t, paidAt(c.header, c.bodies...))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		written := l.Caddyfile(learn.Addresses{}) + l.QuestionsFile(nil)
		for _, want := range c.want {
			if !strings.Contains(written, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, written)
			}
		}
		if c.not != "" && strings.Contains(l.Caddyfile(learn.Addresses{}), c.not) {
			t.Errorf("%s: %q in\n%s", c.name, c.not, l.Caddyfile(learn.Addresses{}))
		}
	}
}

// TestPaymentPages looks at what is written for the provider on whose page buyers pay, where no webhook was recorded.
func TestPaymentPages(t *testing.T) {
	for page, want := range map[string]string{
		"https://checkout.stripe.com/c/pay":   "# \tverify stripe {env.WEBHOOK_SECRET}",
		"https://www.paypal.com/checkoutnow":  "# \tverify paypal {env.WEBHOOK_ID}",
		"https://pay.gocardless.com/flow":     "# \tverify gocardless {env.WEBHOOK_SECRET}",
		"https://notpaypal.com/x":             "# \tverify hmac X-Signature sha256 {env.WEBHOOK_SECRET}",
		"https://paypal.com.evil.example.org": "# \tverify hmac X-Signature sha256 {env.WEBHOOK_SECRET}",
	} {
		entries := paidAt(nil)
		entries[1].set["Location"] = page + "?order=C-551277"
		l, err := learned(t, entries)
		if err != nil {
			t.Errorf("%s: %v", page, err)
			continue
		}
		if file := l.Caddyfile(learn.Addresses{}); !strings.Contains(file, want) {
			t.Errorf("%s: no %s in\n%s", page, want, file)
		}
	}
}

// TestSharedPathOfAWebhook sends the webhook to a path that a browser has used.
func TestSharedPathOfAWebhook(t *testing.T) {
	entries := paidAt(map[string]string{"X-Signature": mac}, `{"order":"C-551277","status":"paid"}`)
	cart := entry{method: "POST", url: entries[2].url, header: map[string]string{"Cookie": "sid=c0ffee5e55104"}, mime: asJSON, body: `{"sku":"SNK-1"}`, status: 204}
	l, err := learned(t, append([]entry{cart}, entries...))
	if err != nil {
		t.Fatal(err)
	}
	if file := l.Caddyfile(learn.Addresses{}); !strings.Contains(file, "# stockgate_resolve /hooks/pay {") || !strings.Contains(l.QuestionsFile(nil), "Can the webhook have a path of its own?") {
		t.Error(file)
	}
}
