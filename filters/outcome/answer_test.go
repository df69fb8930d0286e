package outcome

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"
)

// written returns a text as a compressor writes it.
func written(t *testing.T, text string, open func(io.Writer) io.WriteCloser) []byte {
	var b bytes.Buffer
	w := open(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An encoded body is read as clients read it, up to a bound that counts what comes out.
func TestEncodedAnswers(t *testing.T) {
	zip := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	z := func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
	raw := func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 6); return f }
	const sold = "\ufeff" + `{"code":0}`
	bomb := `{"code":0,"x":"` + strings.Repeat("x", DefaultMaxBody) + `"}`
	for name, c := range map[string]struct {
		encoding string
		body     []byte
		most     int
		want     Decision
		cause    string
	}{
		"gzip":            {"gzip", written(t, sold, zip), 0, Confirm, ""},
		"in capitals":     {"GZIP", written(t, sold, zip), 0, Confirm, ""},
		"deflate":         {"deflate", written(t, sold, z), 0, Confirm, ""},
		"raw deflate":     {"deflate", written(t, sold, raw), 0, Confirm, ""},
		"identity":        {"identity", []byte(sold), 0, Confirm, ""},
		"cut":             {"gzip", written(t, sold, zip)[:20], 0, InDoubt, "encoded"},
		"no gzip":         {"gzip", []byte(sold), 0, InDoubt, "encoded"},
		"brotli":          {"br", []byte(sold), 0, InDoubt, "encoded"},
		"a bomb":          {"gzip", written(t, bomb, zip), 0, Undecided, "too_long"},
		"a higher bound":  {"gzip", written(t, bomb, zip), 2 * DefaultMaxBody, Confirm, ""},
		"no JSON":         {"gzip", written(t, "<html>", zip), 0, InDoubt, "not_json"},
		"without a path":  {"", []byte(`{"status":"ok"}`), 0, InDoubt, "missing_code"},
		"another value":   {"", []byte(`{"code":7}`), 0, InDoubt, ""},
		"two documents":   {"", []byte(`{"code":0}{}`), 0, InDoubt, "not_json"},
		"an empty answer": {"", nil, 0, InDoubt, "not_json"},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := Compile([]Rule{{"confirm", []string{"@sold"}}, {"release", []string{"404"}}},
				map[string]AnswerMatcher{"sold": {JSON: []JSONTest{{Path: "code", Values: []string{"0"}}}}}, false)
			if err != nil {
				t.Fatal(err)
			}
			r := &ShopAnswer{Status: 200, Header: http.Header{"Content-Encoding": {c.encoding}}, Body: c.body, Whole: true, MaxBody: c.most}
			if got := rules.Decide(r); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if c.want == Confirm {
				return
			}
			if got := rules.Unmatched(r); got != c.cause {
				t.Errorf("the cause is %q, want %q", got, c.cause)
			}
		})
	}
}

func TestSameNumber(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"0.0", "0", true}, {"-0", "0", true}, {"0e7", "0", true}, {"200.00", "200", true}, {"2e2", "200", true}, {"2E+2", "200", true}, {"0.02e4", "200", true}, {"1.50", "1.5", true},
		{"12345678901234567890", "12345678901234567891", false}, {"1", "-1", false}, {"10", "1", false}, {"0.1", "1", false}, {"1e999999999999", "1", false}, {"1e999999999", "1e999999999", true},
		{"1", "1x", false}, {"", "0", false}, {"1", "0x1", false}, {"1", " 1", false}, {"1", "1.", false}, {"1", ".1e1", false},
	} {
		if got := sameNumber(c.a, c.b); got != c.same {
			t.Errorf("%s and %s: %t", c.a, c.b, got)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"/thanks", "/thanks", true}, {"/thanks", "/thanks/", false}, {"/thanks/*", "/thanks/7", true}, {"/thanks/*", "/thanks/", true}, {"/thanks/*", "/thanks", false},
		{"*", "", true}, {"*/ok", "/a/ok", true}, {"*/ok", "/ok/no", false}, {"a*b*c", "abc", true}, {"a*b*c", "a-b-b-c", true}, {"a*b*c", "acb", false}, {"a*a", "a", false}, {"", "", true},
	} {
		if got := matches(c.pattern, c.text); got != c.want {
			t.Errorf("%q for %q: %t", c.pattern, c.text, got)
		}
	}
}
