package selfcheck_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// hostile strings would be options, placeholders or commands where they were written as they are.
var hostile = []string{
	"x\n\treverse_proxy evil.test:80\n", "{env.HOME}", "{$HOME}", "{file./etc/passwd}", "`} reverse_proxy evil.test `", "\" } import /etc/passwd {\"", "a b", "#", "<<shop>>", "<<jwt>>",
	"$(touch /tmp/pwned)", "'; rm -rf /", "..%2f..%2fetc%2fpasswd", "\u202e\x00", strings.Repeat("A", 5000), "<script>", "import evil", "}",
}

// record writes a recording of an order, in which one string is hostile.
func record(t *testing.T, dir, evil string, where int) string {
	t.Helper()
	at := func(i int, or string) string {
		if i == where {
			return evil
		}
		return or
	}
	body, err := json.Marshal(map[string]any{at(0, "sku"): at(1, "SNK-1"), at(2, "quantity"): 1, at(3, "order_no"): at(4, "SO-5512")})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := json.Marshal(map[string]any{"order_id": at(4, "SO-5512"), at(5, "status"): at(6, "created")})
	if err != nil {
		t.Fatal(err)
	}
	pair := func(name, value string) map[string]string { return map[string]string{"name": name, "value": value} }
	entry := map[string]any{
		"request": map[string]any{
			"method": at(7, "POST"), "url": "https://" + at(8, "shop.example.com") + "/api/" + at(9, "v1") + "/orders" + at(10, ""),
			"headers":  []any{pair("Cookie", at(11, "sid")+"="+at(12, "c0ffee5e55104")), pair(at(13, "X-Order"), at(14, "1"))},
			"postData": map[string]any{"mimeType": at(15, "application/json"), "text": string(body)},
		},
		"response": map[string]any{"status": 201, "headers": []any{pair("Location", at(16, "/thanks"))}, "content": map[string]any{"mimeType": "application/json", "text": string(answer)}},
	}
	raw, err := json.Marshal(map[string]any{"log": map[string]any{"entries": []any{entry}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "buy.har")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// places of a hostile string in record.
const places = 17

// TestHostileRecordings writes hostile strings into every place of a recording: what is written has none of them,
// or nothing is written, and the error does not repeat them.
func TestHostileRecordings(t *testing.T) {
	good := learnedFrom(t, record(t, t.TempDir(), "", -1))
	if good.status != 0 {
		t.Fatal(good.said)
	}
	for where := range places {
		evil := hostile[(where*7+3)%len(hostile)]
		got := learnedFrom(t, record(t, t.TempDir(), evil, where))
		for _, text := range append(slices.Clone(got.files), got.said) {
			if len(evil) > 2 && strings.Contains(text, evil) || strings.Contains(text, "evil.test") || strings.Contains(text, "/etc/passwd") {
				t.Errorf("place %d: %.40q stands in\n%s", where, evil, text)
			}
		}
		if got.status == 0 && len(got.files) != 3 || got.status != 0 && len(got.files) > 1 {
			t.Errorf("place %d, %.40q: status %d with %d files: %s", where, evil, got.status, len(got.files), got.said)
		}
	}
	if _, err := os.Stat("/tmp/pwned"); err == nil {
		t.Error("a command of a recording was executed")
	}
}

// outcome is what the command did.
type outcome struct {
	status int
	said   string
	files  []string
}

func learnedFrom(t *testing.T, recordings ...string) outcome {
	t.Helper()
	dir := t.TempDir()
	ran := sitetest.Run(t, "", append([]string{"learn", "--dir", dir}, recordings...)...)
	out := outcome{status: ran.Status, said: ran.Out + ran.Errors}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out.files = append(out.files, string(raw))
	}
	return out
}
