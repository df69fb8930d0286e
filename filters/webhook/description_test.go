package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/webhook"
)

func described(t testing.TB, d webhook.Description) webhook.Verifier {
	t.Helper()
	v, err := webhook.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Each algorithm in each encoding accepts what Node has signed, and no byte of it can change.
func TestDescriptions(t *testing.T) {
	v := readVectors(t)
	now, checked := time.Unix(v.Now, 0), 0
	for _, c := range v.Cases {
		if c.Scheme != "signed" {
			continue
		}
		checked++
		d := *c.Description
		d.Key = c.Key
		one := described(t, d)
		of := func(body, uri string, change ...string) *webhook.Delivery {
			h := headers(c.Headers)
			for i := 0; i < len(change); i += 2 {
				h.Set(change[i], change[i+1])
			}
			return &webhook.Delivery{Header: h, URI: uri, Body: []byte(body)}
		}
		if err := one.Verify(of(c.Body, c.URI), now); (err == nil) != c.Accepted || !c.Accepted && status(err) != 401 {
			t.Errorf("%s: %v", c.Name, err)
		}
		if err := one.Look(of("", c.URI), now); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		for name, m := range map[string]*webhook.Delivery{
			"another body": of(strings.Replace(c.Body, "SO-1", "SO-2", 1), c.URI),
			"another URI":  of(c.Body, c.URI+"&c=d"),
			"another time": of(c.Body, c.URI, "X-Time", "1790000001"),
		} {
			if err := one.Verify(m, now); status(err) != 401 {
				t.Errorf("%s, %s: %v", c.Name, name, err)
			}
		}
	}
	if checked < 42 {
		t.Errorf("only %d were checked", checked)
	}
}

// ofHMAC is the signature of a text, in hex.
func ofHMAC(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// One signature is good for one division of what is signed: a client cannot move the line between
// two parts.
func TestPartsAreKeptApart(t *testing.T) {
	const key = "a secret of some length"
	before := described(t, webhook.Description{Algorithm: "hmac-sha256", Key: key, Over: "v0:{header.X-Id}:{body}", Signature: "{header.X-Sig}", Encoding: "hex"})
	after := described(t, webhook.Description{Algorithm: "hmac-sha256", Key: key, Over: "{body}:{header.X-Id}", Signature: "{header.X-Sig}", Encoding: "hex"})
	colons := described(t, webhook.Description{Algorithm: "hmac-sha256", Key: key, Over: "{header.X-Id}::{body}", Signature: "{header.X-Sig}", Encoding: "hex"})
	behind := described(t, webhook.Description{Algorithm: "hmac-sha256", Key: key, Over: "{body}::{header.X-Id}", Signature: "{header.X-Sig}", Encoding: "hex"})
	sign := func(text, id, body string) *webhook.Delivery {
		return message(headers(map[string]string{"X-Id": id, "X-Sig": ofHMAC(key, text)}), body)
	}
	for _, c := range []struct {
		verifier webhook.Verifier
		text, id string
		body     string
		status   int
	}{
		{before, "v0:7:a=1:b=2", "7", "a=1:b=2", 0},
		{before, "v0:7:a=1:b=2", "7:a=1", "b=2", 400},
		{after, "a=1:b=2:7", "7", "a=1:b=2", 0},
		{after, "a=1:b=2:7", "b=2:7", "a=1", 400},
		{after, "a=1:b=2:7", "8", "a=1:b=2", 401},
		{colons, "7::a=1", "7", "a=1", 0},
		{colons, "7:::a=1", "7:", "a=1", 400}, // or 7 and :a=1
		{behind, "a=1:::7", ":7", "a=1", 400},
	} {
		if err := c.verifier.Verify(sign(c.text, c.id, c.body), time.Now()); status(err) != c.status {
			t.Errorf("%s as %s and %s: %v, want %d", c.text, c.id, c.body, err, c.status)
		}
	}
}

// A time in milliseconds directly before the body, as some providers write it.
func TestTimeBesideTheBody(t *testing.T) {
	const key = "a secret of some length"
	now := time.UnixMilli(1_790_000_000_123)
	v := described(t, webhook.Description{Algorithm: "hmac-sha256", Key: key, Over: "{header.X-Time}{body}", Signature: "{header.X-Sig}", Encoding: "hex", Time: "{header.X-Time}", Unit: "ms", Tolerance: time.Minute})
	sig := ofHMAC(key, "1790000000123{}")
	for _, c := range []struct {
		at, body string
		now      time.Time
		status   int
	}{
		{"1790000000123", "{}", now, 0},
		{"1790000000123", "{}", now.Add(61 * time.Second), 401},
		{"179000000012", "3{}", now, 401}, // long ago
		{"1790000000123{", "}", now, 400},
		{"1790000000", "{}", now, 401},
	} {
		m := message(headers(map[string]string{"X-Time": c.at, "X-Sig": sig}), c.body)
		if err := v.Verify(m, c.now); status(err) != c.status {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A secret that the provider sends is compared, and its header must come once.
func TestToken(t *testing.T) {
	v, err := webhook.Token("x-callback-token", "the secret of xendit")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		values []string
		status int
	}{
		{[]string{"the secret of xendit"}, 0},
		{[]string{"the secret of xendi"}, 401},
		{[]string{"the secret of xendit "}, 401},
		{nil, 400},
		{[]string{""}, 400},
		{[]string{"the secret of xendit", "the secret of xendit"}, 400},
	} {
		m := message(http.Header{"X-Callback-Token": c.values}, "{}")
		if err := v.Verify(m, time.Now()); status(err) != c.status {
			t.Errorf("%q: %v", c.values, err)
		}
	}
}

// WooCommerce's ping is a form with nothing but an id, without a signature.
func TestPing(t *testing.T) {
	ping := webhook.Presets["woocommerce"].Ping
	for body, want := range map[string]bool{
		"webhook_id=17": true, "webhook_id=": false, "webhook_id=17&a=b": false, "webhook_id=x": false, `{"webhook_id":17}`: false, "": false, "webhook_id=17\n": false,
	} {
		if got := ping(message(http.Header{}, body)); got != want {
			t.Errorf("%q: %t", body, got)
		}
	}
	if ping(message(headers(map[string]string{"X-WC-Webhook-Signature": "x"}), "webhook_id=17")) {
		t.Error("a signed one is none")
	}
}

// A description that protects nothing, or can never fit, is an error that says what to write.
func TestDescriptionErrors(t *testing.T) {
	good := webhook.Description{
		Algorithm: "hmac-sha256", Key: "a secret of some length", Over: "{header.X-Time}.{body}", Signature: "{header.X-Sig}", Encoding: "hex", Time: "{header.X-Time}",
	}
	described(t, good)
	v := readVectors(t)
	keys := make(map[string]string)
	for _, c := range v.Cases {
		if c.Description != nil {
			keys[c.Description.Algorithm] = c.Key
		}
	}
	type change = func(d *webhook.Description)
	for says, change := range map[string]change{
		"over has no {body}":                       func(d *webhook.Description) { d.Over = "{header.X-Time}.{header.X-Id}" },
		"over has {body} twice":                    func(d *webhook.Description) { d.Over = "{header.X-Time}.{body}.{body}" },
		"over: {json.a} is no placeholder here":    func(d *webhook.Description) { d.Over = "{json.a}.{body}" },
		"over: a brace is not closed":              func(d *webhook.Description) { d.Over = "{header.X-Time}.{body" },
		"over has {header.X-Id} and {body} side":   func(d *webhook.Description) { d.Over = "{header.X-Time}.{header.X-Id}{body}" },
		"over has {body} and {uri} side by side":   func(d *webhook.Description) { d.Over = "{header.X-Time}.{body}{uri}" },
		"over has {uri} and {header.X-Time} side":  func(d *webhook.Description) { d.Over = "{uri}{header.X-Time}.{body}" },
		"over has no {header.X-Time}: a time":      func(d *webhook.Description) { d.Over = "{body}" },
		"no time is signed: it takes no tolerance": func(d *webhook.Description) { d.Time, d.Tolerance = "", time.Minute },
		"the tolerance must be 1s to 1h":           func(d *webhook.Description) { d.Tolerance = 2 * time.Hour },
		`there is no unit of time "m"`:             func(d *webhook.Description) { d.Unit = "m" },
		"time {body}: write {header.NAME}":         func(d *webhook.Description) { d.Time = "{body}" },
		"signature v1={header.X}: write {header":   func(d *webhook.Description) { d.Signature = "v1={header.X}" },
		"its name may have letters, digits":        func(d *webhook.Description) { d.Signature = "{header.X_Sig}" },
		"{field.NAME} and fields need each other":  func(d *webhook.Description) { d.Signature = "{field.v1}" },
		"fields: what stands between two":          func(d *webhook.Description) { d.Fields = &webhook.HeaderFields{Header: "X-Sig"} },
		"the same stands between two fields": func(d *webhook.Description) {
			d.Fields = &webhook.HeaderFields{Header: "X-Sig", Between: ",", After: ","}
		},
		`the signature has the encoding ""`:        func(d *webhook.Description) { d.Encoding = "" },
		`there is no algorithm "md5": there are`:   func(d *webhook.Description) { d.Algorithm = "md5" },
		"the key is empty or shorter than 8 bytes": func(d *webhook.Description) { d.Key = "x7!" },
		"the key is no base64":                     func(d *webhook.Description) { d.Key, d.KeyEncoding = "%%%", "base64" },
		`there is no encoding "utf8" of keys`:      func(d *webhook.Description) { d.KeyEncoding = "utf8" },
		"the key of hmac-sha256 is a PEM file":     func(d *webhook.Description) { d.Key = keys["rsa-sha256"] },
		"the key of rsa-sha256 is no PEM":          func(d *webhook.Description) { d.Algorithm = "rsa-sha256" },
		"the key of ecdsa-sha256 is no PEM":        func(d *webhook.Description) { d.Algorithm = "ecdsa-sha256" },
		"the key of ed25519 is no PEM":             func(d *webhook.Description) { d.Algorithm = "ed25519" },
		"the key of rsa-sha256 is no RSA key":      func(d *webhook.Description) { d.Algorithm, d.Key = "rsa-sha256", keys["ed25519"] },
		"the key of ed25519 is no Ed25519 key":     func(d *webhook.Description) { d.Algorithm, d.Key = "ed25519", keys["ecdsa-sha256"] },
		"the key of rsa-sha512 is several":         func(d *webhook.Description) { d.Algorithm, d.Key = "rsa-sha512", strings.Repeat(keys["rsa-sha256"], 2) },
		"the key of rsa-sha512 is a private key": func(d *webhook.Description) {
			d.Algorithm, d.Key = "rsa-sha512", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"
		},
		"the key has 4 bytes in hex: a public key": func(d *webhook.Description) { d.Algorithm, d.Key, d.KeyEncoding = "ed25519", "abababab", "hex" },
		"token signs nothing":                      func(d *webhook.Description) { d.Algorithm = "token" },
	} {
		d := good
		change(&d)
		if _, err := webhook.Compile(d); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), d.Key) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}

// A provider's preset takes what its scheme has.
func TestPresetErrors(t *testing.T) {
	for _, c := range []struct {
		scheme, key, url string
		tolerance        time.Duration
		says             string
	}{
		{"square", "a key of square", "", 0, "the URL of the endpoint is needed"},
		{"square", "a key of square", "shop.example.com/hook", 0, "the whole URL"},
		{"square", "a key of square", "https://shop.example.com/{x}", 0, "the whole URL"},
		{"paddle", "a key of paddle", "https://shop.example.com/", 0, "and only there"},
		{"paddle", "a key of paddle", "", 2 * time.Hour, "the tolerance must be 1s to 1h"},
		{"razorpay", "a key of razorpay", "", time.Minute, "it takes no tolerance"},
		{"xendit", "short", "", 0, "shorter than 8 bytes"},
		{"woocommerce", "", "", 0, "the key is empty"},
	} {
		if _, err := webhook.Presets[c.scheme].Verifier(c.key, c.url, c.tolerance); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
