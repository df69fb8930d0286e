// Package post is what all senders of webhooks have in common: the signatures of Standard Webhooks, a client that
// follows no redirect, and errors that do not repeat a URL.
package post

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Secret signs messages.
type Secret []byte

// The bounds of a secret's length in bytes, by Standard Webhooks.
const secretLeast, secretMost = 24, 64

var errSecret = errors.New("it is no secret of Standard Webhooks (whsec_ and base64): make one with `echo whsec_$(openssl rand -base64 32)`")

// ParseSecret reads a secret: base64, after whsec_ or alone. The error does not repeat
// it.
func ParseSecret(text string) (Secret, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(text, "whsec_"))
	if err != nil {
		return nil, errSecret
	}
	if len(raw) < secretLeast || len(raw) > secretMost {
		return nil, fmt.Errorf("it has %d bytes, and it must have %d to %d: make one with `echo whsec_$(openssl rand -base64 32)`", len(raw), secretLeast, secretMost)
	}
	return raw, nil
}

// Sign sets the headers of Standard Webhooks: with several secrets there are several
// signatures, and a receiver needs to verify one.
func Sign(h http.Header, secrets []Secret, id string, at time.Time, body []byte) {
	seconds := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		mac := hmac.New(sha256.New, s)
		mac.Write([]byte(id + "." + seconds + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", seconds)
	h.Set("Webhook-Signature", strings.Join(signatures, " "))
}
