//go:build shops

package shoptest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// keptFields are the fields of headers that a stored recording has.
var keptFields = []string{"accept", "authorization", "content-type", "cookie", "location", "origin", "set-cookie", "vendure-auth-token", "x-publishable-api-key"}

var (
	tokens   = regexp.MustCompile(`[0-9a-f]{64}`)
	sessions = regexp.MustCompile(`session=[A-Za-z0-9+/_=-]+`)
	signed   = regexp.MustCompile(`session\.sig=[A-Za-z0-9_-]+`)
)

// scrubbed makes a recording small, and of a shop at a public name: without what the browser says of itself, and
// with other tokens than the shop's.
func scrubbed(t *testing.T, har []byte, at string) []byte {
	t.Helper()
	var read struct {
		Log struct {
			Entries []map[string]map[string]any `json:"entries"`
		} `json:"log"`
	}
	if err := json.Unmarshal(har, &read); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range read.Log.Entries {
		if strings.HasSuffix(fmt.Sprint(e["request"]["url"]), "/favicon.ico") {
			continue
		}
		for _, side := range []string{"request", "response"} {
			fields, _ := e[side]["headers"].([]any)
			e[side]["headers"] = slices.DeleteFunc(fields, func(f any) bool {
				return !slices.Contains(keptFields, strings.ToLower(fmt.Sprint(f.(map[string]any)["name"])))
			})
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(e); err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.TrimSpace(text.String()))
	}
	text := `{"log":{"version":"1.2","creator":{"name":"WebInspector","version":"537.36"},"pages":[],"entries":[` + "\n" + strings.Join(all, ",\n") + "\n]}}\n"
	text = strings.ReplaceAll(text, at, "https://shop.example.com")
	return []byte(otherTokens(text))
}

// otherTokens puts others in the place of tokens, each always the same.
func otherTokens(text string) string {
	known := make(map[string]string)
	other := func(token string) string {
		if known[token] == "" {
			sum := sha256.Sum256([]byte(fmt.Sprint("of a recording, ", len(known))))
			known[token] = hex.EncodeToString(sum[:])
		}
		return known[token]
	}
	text = sessions.ReplaceAllStringFunc(text, func(cookie string) string {
		name, value, _ := strings.Cut(cookie, "=")
		raw, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return cookie
		}
		return name + "=" + base64.StdEncoding.EncodeToString([]byte(tokens.ReplaceAllStringFunc(string(raw), other)))
	})
	text = signed.ReplaceAllStringFunc(text, func(cookie string) string { return "session.sig=" + other(cookie)[:27] })
	return tokens.ReplaceAllStringFunc(text, other)
}
