package webhook_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/webhook"
)

type vectors struct {
	Versions map[string]string
	Now      int64
	Cases    []struct {
		Name, Scheme, Key, URL, URI, Body string
		Description                       *webhook.Description
		Headers                           map[string]string
		Accepted                          bool
	}
}

func readVectors(t testing.TB) (v vectors) {
	t.Helper()
	raw, err := os.ReadFile("testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func verifier(t testing.TB, scheme, key string) webhook.Verifier {
	t.Helper()
	url := ""
	if scheme == "square" {
		url = squareURL
	}
	v, err := webhook.Presets[scheme].Verifier(key, url, 0)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const squareURL = "https://shop.example.com/webhooks/square"

// message is a webhook with a header and a body.
func message(h http.Header, body string) *webhook.Delivery {
	return &webhook.Delivery{Header: h, Body: []byte(body)}
}

func headers(of map[string]string) http.Header {
	h := make(http.Header)
	for name, value := range of {
		h.Set(name, value)
	}
	return h
}

// What the providers' own libraries sign and accept: testdata/generate.mjs makes the vectors.
func TestAgreesWithTheProvidersLibraries(t *testing.T) {
	v := readVectors(t)
	if len(v.Cases) < 100 || len(v.Versions) != 7 {
		t.Fatalf("%d cases of %v", len(v.Cases), v.Versions)
	}
	now := time.Unix(v.Now, 0)
	for _, c := range v.Cases {
		if c.Scheme == "signed" { // see TestDescriptions
			continue
		}
		h, one := headers(c.Headers), verifier(t, c.Scheme, c.Key)
		if c.Scheme == "square" && c.URL != squareURL {
			t.Fatalf("%s is for %s", c.Name, c.URL)
		}
		err := one.Verify(message(h, c.Body), now)
		if (err == nil) != c.Accepted {
			t.Errorf("%s: accepted is %v there, here: %v", c.Name, c.Accepted, err)
		}
		if err == nil && one.Look(message(h, ""), now) != nil {
			t.Errorf("%s: it would be refused before its body is read", c.Name)
		}
		// while a secret is changed, either is good
		other := map[string]string{"standard": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7o0", "adyen": strings.Repeat("ab", 32)}[c.Scheme]
		other = cmp.Or(other, "whsec_none_of_them")
		for _, both := range [][]webhook.Verifier{{verifier(t, c.Scheme, other), one}, {one, verifier(t, c.Scheme, other)}} {
			if err := webhook.Verify(both, message(h, c.Body), now); (err == nil) != c.Accepted {
				t.Errorf("%s, beside another secret: %v", c.Name, err)
			}
		}
	}
}

// No byte of what is signed can change.
func TestEveryByteCounts(t *testing.T) {
	v := readVectors(t)
	now := time.Unix(v.Now, 0)
	for _, c := range v.Cases {
		if !c.Accepted || c.Scheme == "adyen" || c.Scheme == "signed" { // Adyen signs fields, and not the body
			continue
		}
		one := verifier(t, c.Scheme, c.Key)
		for i := range c.Body {
			changed := []byte(c.Body)
			changed[i] ^= 1
			if one.Verify(message(headers(c.Headers), string(changed)), now) == nil {
				t.Fatalf("%s: byte %d can be changed", c.Name, i)
			}
		}
	}
}

func status(err error) int {
	if f, ok := errors.AsType[*webhook.Fault](err); ok {
		return f.Status
	}
	return 0
}

// A fault is 400 where nothing can be verified, 401 where it does not fit, and says which.
func TestFaults(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	now := time.Unix(1_790_000_000, 0)
	sig := "v1," + strings.Repeat("A", 43) + "="
	hmac, err := webhook.HMAC("x-signature", "sha256", "a key of some length")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scheme webhook.Verifier
		h      map[string]string
		status int
		text   string
	}{
		{verifier(t, "stripe", secret), nil, 400, "Stripe-Signature is missing"},
		{verifier(t, "stripe", secret), map[string]string{"Stripe-Signature": "t=1790000000"}, 400, "no signature v1"},
		{verifier(t, "stripe", secret), map[string]string{"Stripe-Signature": "v1=00"}, 400, "no timestamp"},
		{verifier(t, "stripe", secret), map[string]string{"Stripe-Signature": "t=1790000000,t=1790000001,v1=00"}, 400, "two timestamps"},
		{verifier(t, "stripe", secret), map[string]string{"Stripe-Signature": "t=1790000000x,v1=00"}, 400, "no time in seconds"},
		{verifier(t, "stripe", secret), map[string]string{"Stripe-Signature": "t=+1790000000,v1=00"}, 400, "no time in seconds"},
		{verifier(t, "stripe", secret), map[string]string{"Stripe-Signature": "t=1789999000,v1=00"}, 401, "16m40s old"},
		{verifier(t, "stripe", secret), map[string]string{"Stripe-Signature": "t=1790001000,v1=00"}, 401, "16m40s ahead"},
		{verifier(t, "stripe", secret), map[string]string{"Stripe-Signature": "t=1790000000,v1=00"}, 401, "no signature fits"},
		{verifier(t, "standard", secret), map[string]string{"webhook-id": "1", "webhook-timestamp": "1790000000"}, 400, "Webhook-Signature is missing"},
		{verifier(t, "standard", secret), map[string]string{"webhook-id": "1", "webhook-timestamp": "1790000000", "webhook-signature": "v2,AAAA"}, 400, "no signature v1"},
		{verifier(t, "standard", secret), map[string]string{"webhook-id": "1", "webhook-timestamp": "1789999000", "webhook-signature": sig}, 401, "old"},
		{verifier(t, "standard", secret), map[string]string{"webhook-id": "1", "webhook-timestamp": "1790000000", "webhook-signature": sig}, 401, "no signature fits"},
		{hmac, nil, 400, "X-Signature is missing"},
		{hmac, map[string]string{"X-Signature": "short"}, 400, "no sha256 in hex or base64"},
		{hmac, map[string]string{"X-Signature": strings.Repeat("0", 64)}, 401, "no signature fits"},
	} {
		err := c.scheme.Verify(message(headers(c.h), "{}"), now)
		if status(err) != c.status || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: %d %v, want %d %s", c.h, status(err), err, c.status, c.text)
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("a secret is told: %v", err)
		}
	}
	twice := http.Header{"Stripe-Signature": {"t=1790000000,v1=00", "t=1790000000,v1=00"}}
	if err := verifier(t, "stripe", secret).Verify(message(twice, ""), now); status(err) != 400 {
		t.Errorf("two headers: %v", err)
	}
	if err := webhook.Verify(nil, message(nil, ""), now); status(err) != 401 {
		t.Errorf("without a secret: %v", err)
	}
}

// The HMAC of the body in the forms that providers send; the values are of OpenSSL.
func TestHMAC(t *testing.T) {
	const body = `{"event":"order.paid","ref":"SO-1"}`
	for _, c := range []struct{ algorithm, signature string }{
		{"sha256", "67f088ed449b87a93a261d736b435d80c12364860aeead6bf5cad89b3f58cc3e"},
		{"sha256", "sha256=67f088ed449b87a93a261d736b435d80c12364860aeead6bf5cad89b3f58cc3e"},
		{"sha256", "67F088ED449B87A93A261D736B435D80C12364860AEEAD6BF5CAD89B3F58CC3E"},
		{"sha256", "Z/CI7USbh6k6Jh1za0NdgMEjZIYK7q1r9crYmz9YzD4="},
		{"sha512", "2da8ed2588baa5748387f2e073cb00200100b9d0892eca102edc0ab5e5b5e48481aaf369153d706e3e32ce6f20771a499330b2c82e4705379e61e8725643091a"},
		{"sha512", "LajtJYi6pXSDh/Lgc8sAIAEAudCJLsoQLtwKteW15ISBqvNpFT1wbj4yzm8gdxpJkzCyyC5HBTeeYehyVkMJGg=="},
	} {
		v, err := webhook.HMAC("x-signature", c.algorithm, "the shared key")
		if err != nil {
			t.Fatal(err)
		}
		h := headers(map[string]string{"X-Signature": c.signature})
		if err := v.Verify(message(h, body), time.Now()); err != nil {
			t.Errorf("%s: %v", c.signature, err)
		}
		if err := v.Verify(message(h, body+" "), time.Now()); status(err) != 401 {
			t.Errorf("%s, of another body: %v", c.signature, err)
		}
	}
}

// What Adyen signs are values in a document: it must say them once, and in one way.
func TestAdyenDocument(t *testing.T) {
	v := readVectors(t)
	good, key := "", ""
	for _, c := range v.Cases {
		if c.Name == "adyen: refused payment" {
			good, key = c.Body, c.Key
		}
	}
	one := verifier(t, "adyen", key)
	if err := one.Verify(message(nil, good), time.Now()); err != nil {
		t.Fatal(err)
	}
	change := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("no %s in %s", from, good)
		}
		return strings.Replace(good, from, to, 1)
	}
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"no JSON":                      {"notification", 400},
		"two documents":                {good + good, 400},
		"no items":                     {`{"live":"false","notificationItems":[]}`, 400},
		"a name twice":                 {change(`"success":"false"`, `"success":"true","success":"false"`), 400},
		"in another case":              {change(`"success":"false"`, `"success":"false","Success":"true"`), 400},
		"a letter that is taken for s": {change(`"success":"false"`, "\"success\":\"true\",\"\u017fuccess\":\"false\""), 401},
		"an item twice":                {change(`"NotificationRequestItem":`, `"NotificationRequestItem":{},"NotificationRequestItem":`), 400},
		"success is no string":         {change(`"success":"false"`, `"success":false`), 400},
		"the amount is a string":       {change(`"value":1130`, `"value":"1130"`), 400},
		"another number":               {change(`"value":1130`, `"value":1130.0`), 401},
		"a colon moves a field":        {change(`"currency":"EUR"`, `"currency":"EUR:AUTHORISATION"`), 400},
		"no signature":                 {change(`"hmacSignature"`, `"hmac"`), 400},
		"deep":                         {strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), 400},
	} {
		if err := one.Verify(message(nil, c.body), time.Now()); status(err) != c.status {
			t.Errorf("%s: %d %v, want %d", name, status(err), err, c.status)
		}
	}
}

func TestSecrets(t *testing.T) {
	for name, make := range map[string]func() (webhook.Verifier, error){
		"empty":          func() (webhook.Verifier, error) { return webhook.Stripe("", 0) },
		"tolerance":      func() (webhook.Verifier, error) { return webhook.Stripe("whsec_1", 2*time.Hour) },
		"no base64":      func() (webhook.Verifier, error) { return webhook.Standard("whsec_%%%", 0) },
		"short":          func() (webhook.Verifier, error) { return webhook.Standard("whsec_AAAA", 0) },
		"no hex":         func() (webhook.Verifier, error) { return webhook.Adyen("a password") },
		"no header":      func() (webhook.Verifier, error) { return webhook.HMAC("", "sha256", "a key of some length") },
		"no algorithm":   func() (webhook.Verifier, error) { return webhook.HMAC("X-Signature", "md5", "a key of some length") },
		"a short key":    func() (webhook.Verifier, error) { return webhook.HMAC("X-Signature", "sha256", "short") },
		"no key of hmac": func() (webhook.Verifier, error) { return webhook.HMAC("X-Signature", "sha256", "") },
	} {
		if _, err := make(); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

// Without the secret no header and no body are accepted, by no provider's scheme.
func FuzzVerify(f *testing.F) {
	v := readVectors(f)
	for _, c := range v.Cases {
		for _, value := range c.Headers {
			f.Add(value, c.Body)
		}
	}
	verifiers := map[string]webhook.Verifier{"signed": described(f, webhook.Description{
		Algorithm: "hmac-sha512", Key: "a secret of some length", Fields: &webhook.HeaderFields{Header: "X-Signature", Between: ";", After: ":"},
		Over: "{header.X-Id}|{field.t}|{body}{newline}{uri}", Signature: "{field.s}", Encoding: "base64url", Time: "{field.t}", Unit: "ms",
	})}
	for name := range webhook.Presets {
		key := "c2VjcmV0IG9mIHNvbWUgbGVuZ3Ro"
		if name == "adyen" {
			key = strings.Repeat("ab", 32)
		}
		verifiers[name] = verifier(f, name, key)
	}
	f.Fuzz(func(t *testing.T, header, body string) {
		h := make(http.Header)
		for _, name := range []string{
			"Stripe-Signature", "Webhook-Id", "Webhook-Signature", "Paddle-Signature", "X-Square-Hmacsha256-Signature", "X-Razorpay-Signature", "X-Wc-Webhook-Signature", "X-Callback-Token", "X-Signature", "X-Id",
		} {
			h.Set(name, header)
		}
		h.Set("Webhook-Timestamp", strconv.FormatInt(v.Now, 10))
		for name, one := range verifiers {
			if one.Verify(&webhook.Delivery{Header: h, URI: "/hook", Body: []byte(body)}, time.Unix(v.Now, 0)) == nil {
				t.Errorf("%s accepts", name)
			}
		}
	})
}
