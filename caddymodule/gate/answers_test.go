package gate_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// TestAnswersAsClientsReadThem: the shop compresses although nothing was asked for, begins with a byte order
// mark, or answers at length. The rules read what a client would, the buyer gets what the shop sent, and a doubt
// says what could not be read.
func TestAnswersAsClientsReadThem(t *testing.T) {
	const sold = `{"errors":[],"code":0.0}`
	long := `{"x":"` + strings.Repeat("x", 100<<10) + `","code":0}`
	answers := map[string]struct{ encoding, body, state, cause string }{
		"plain":    {"", sold, "confirmed", ""},
		"marked":   {"", "\ufeff" + sold, "confirmed", ""},
		"zipped":   {"gzip", zipped(sold), "confirmed", ""},
		"long":     {"", long, "confirmed", ""},
		"longzip":  {"gzip", zipped(long), "confirmed", ""},
		"html":     {"", "<html>", "in_doubt", "not_json"},
		"brotli":   {"br", sold, "in_doubt", "encoded"},
		"lacking":  {"", `{"status":"ok"}`, "in_doubt", "missing_code"},
		"other":    {"", `{"code":7}`, "in_doubt", "status_200"},
		"too-long": {"", strings.Replace(long, "xxx", strings.Repeat("x", 200<<10), 1), "in_doubt", "long_answer"},
		"bomb":     {"gzip", zipped(strings.Replace(long, "xxx", strings.Repeat("x", 200<<10), 1)), "in_doubt", "long_answer"},
	}
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		a := answers[r.Header.Get("X-User-Id")]
		if a.encoding != "" {
			w.Header().Set("Content-Encoding", a.encoding)
		}
		_, _ = io.WriteString(w, a.body)
	})
	s := sitetest.OpenCaddyfile(t, `stockgate_guard
	stockgate /api/order {
		buyer {header.X-User-Id}
		line  {json.sku}
		max_answer 200KiB
		@sold {
			json !errors
			json code 0
		}
		confirm @sold
	}
	reverse_proxy `+shop.Addr())
	for buyer, a := range answers {
		answer := s.Send(sitetest.NewOrder("X-User-Id", buyer, "Accept-Encoding", "identity"))
		if answer.Body != a.body {
			t.Errorf("%s: the buyer got %d bytes, %d were sent", buyer, len(answer.Body), len(a.body))
		}
		hold := s.Admin("GET", "/stockgate/reservations/"+answer.Header.Get("Stockgate-Reservation"), "").Body
		if !strings.Contains(hold, a.state) || !strings.Contains(hold, a.cause) {
			t.Errorf("%s: want %s %s: %s", buyer, a.state, a.cause, hold)
		}
	}
	for size, want := range map[string]string{"1B": "max_answer: an answer", "17MiB": "max_answer: an answer", "0": "not a size above 0", "1MiB": ""} {
		err := s.LoadCaddyfile("stockgate_guard\nstockgate /api/order {\nbuyer {header.X-User-Id}\nline {json.sku}\nmax_answer " + size + "\n}\nreverse_proxy " + shop.Addr())
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", size, err)
		}
	}
}

func zipped(text string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}
