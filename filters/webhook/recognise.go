package webhook

import (
	"crypto/rsa"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// anyKey is one that all schemes take.
const anyKey = "00112233445566778899aabbccddeeff"

// Recognise names the schemes of which a webhook may be, because it has what they sign and a signature of their
// form: presets, or hmac with a header and an algorithm, such as "hmac X-Signature sha256", where no preset fits. Only
// the key tells whether the signature is right.
func Recognise(m *Delivery) (schemes []string) {
	for _, name := range slices.Sorted(maps.Keys(Presets)) {
		p := Presets[name]
		url := ""
		if p.URL {
			url = "https://shop.invalid/"
		}
		if v, err := p.Verifier(anyKey, url, 0); err == nil && fits(v, m) && p.hasEvents(m.Body) {
			schemes = append(schemes, name)
		}
	}
	if len(schemes) > 0 {
		return schemes
	}
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		lower := strings.ToLower(name)
		if !strings.Contains(lower, "signature") && !strings.Contains(lower, "hmac") && !strings.HasSuffix(lower, "sign") {
			continue
		}
		for _, algorithm := range []string{"sha256", "sha512"} {
			if v, err := HMAC(name, algorithm, anyKey); err == nil && fits(v, m) {
				schemes = append(schemes, "hmac "+name+" "+algorithm)
			}
		}
	}
	return schemes
}

// fits reports whether nothing but the key and the time keeps a verifier from accepting a webhook.
func fits(v Verifier, m *Delivery) bool {
	unsigned := *m
	unsigned.Certificate = func(string) (*rsa.PublicKey, error) { return nil, errNoneFits }
	err := v.Verify(&unsigned, time.Now())
	fault, ok := errors.AsType[*Fault](err)
	return err == nil || ok && fault.Status == http.StatusUnauthorized
}

func (p *Preset) hasEvents(body []byte) bool {
	if p.Events == nil {
		return true
	}
	_, err := p.Events.Events(body)
	return err == nil
}
