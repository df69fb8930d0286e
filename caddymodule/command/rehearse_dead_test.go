package command_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// A rehearsal in which no request is answered does not pass.
func TestARehearsalWithoutAnswersFails(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	order := s.File("order.http", "POST /api/order HTTP/1.1\nHost: 127.0.0.1:1\n\n{}\n")
	none := s.File("answers.jsonl", `{"status":0}`+"\n")
	for name, c := range map[string]struct {
		args []string
		says []string
		ends string
	}{
		"nothing listens": {
			[]string{"--host", "http://127.0.0.1:1", "--buyers", "5", "--require", "p99<300ms", order},
			[]string{"  no answer                    5  refused 5\n", "  answers                      0  ", "  NOT MET    p99<300ms: no answer was measured\n"},
			"not passed: no request was answered; p99<300ms is not met: no answer was measured\n",
		},
		"another load test had none": {
			[]string{"--judge-only", "--answers", none},
			[]string{"  no answer                    1  other 1\n"},
			"not passed: no request was answered\n",
		},
	} {
		r := s.Run(append([]string{"rehearse", "--sale", "double11"}, c.args...)...)
		if r.Status != 1 || !strings.HasSuffix(r.Errors, c.ends) {
			t.Errorf("%s: %+v", name, r)
		}
		for _, says := range append(c.says, "  unchecked  every yes is an order and a sold unit: no request was answered\n") {
			if !strings.Contains(r.Out, says) {
				t.Errorf("%s: it does not say %q:\n%s", name, says, r.Out)
			}
		}
	}
}
