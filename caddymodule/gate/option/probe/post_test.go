package probe

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Shops that answer GraphQL, or a search by POST, are asked in a body. The name of the order stays inside of its
// string there.
func TestProbeByPost(t *testing.T) {
	var asked string
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = r.Method + " " + r.Header.Get("Content-Type") + " " + r.URL.RawQuery + " " + string(body)
		found := "[]"
		if strings.Contains(string(body), `"c":"A-1`) {
			found = `[{"state":"paid"}]`
		}
		_, _ = io.WriteString(w, `{"data":{"orders":{"items":`+found+`}}}`)
	}))
	t.Cleanup(shop.Close)
	t.Setenv("STOCKGATE_TEST_CHANNEL", "shoes")
	in := func() *InDoubt {
		return &InDoubt{
			Probe: shop.URL, Method: "POST", Body: `{"query":"query($c:String!){orders{items{state}}}","variables":{"c":"{ref}","channel":"{env.STOCKGATE_TEST_CHANNEL}"}}`,
			Rules: []outcome.Rule{{Outcome: "confirm", When: []string{"@there"}}, {Outcome: "release", When: []string{"@gone"}}},
		}
	}
	answers := map[string]outcome.AnswerMatcher{
		"there": {JSON: []outcome.JSONTest{{Path: "data.orders.items.0.state"}}},
		"gone":  {JSON: []outcome.JSONTest{{Path: "data.orders.items", Absent: true}}},
	}
	ask := func(in *InDoubt, ref string) reservation.ProbeAnswer {
		t.Helper()
		asked = ""
		found, _, err := compileProbe(t, in, answers).ask(t.Context(), reservation.ProbeDue{ID: someID, Ref: ref})
		if err != nil && ref != "" {
			t.Error(err)
		}
		return found
	}
	body := strings.Replace(strings.Replace(in().Body, "{env.STOCKGATE_TEST_CHANNEL}", "shoes", 1), "{ref}", "A-1", 1)
	if found := ask(in(), "A-1"); found != reservation.ProbePresent || asked != "POST application/json  "+body {
		t.Errorf("%s: %s", found, asked)
	}
	if found := ask(in(), `A-2","c":"A-1`); found != reservation.ProbeAbsent || !strings.Contains(asked, `"c":"A-2\",\"c\":\"A-1"`) {
		t.Errorf("a ref leaves its string: %s: %s", found, asked)
	}
	if found := ask(in(), ""); found != reservation.ProbeUnknown || asked != "" {
		t.Errorf("an order without a ref: %s: %s", found, asked)
	}
	bare := in()
	bare.Probe, bare.Body, bare.Header = shop.URL+"?id={id}", "", map[string]string{"Content-Type": "text/plain"}
	if ask(bare, "A-1"); asked != "POST text/plain id="+someID+" " {
		t.Errorf("a POST without a body: %s", asked)
	}
	for says, change := range map[string]func(*InDoubt){
		"in_doubt: a GET has no body":                            func(in *InDoubt) { in.Method = "" },
		`in_doubt: the method "PUT": there are GET and POST`:     func(in *InDoubt) { in.Method = "PUT" },
		"in_doubt: a probe by POST needs confirm and release":    func(in *InDoubt) { in.Rules = in.Rules[:1] },
		"in_doubt: no URL to ask":                                func(in *InDoubt) { *in = InDoubt{Method: "POST"} },
		"the body of the probe is no JSON":                       func(in *InDoubt) { in.Body = "{ref}" },
		"the document of the probe has a placeholder":            func(in *InDoubt) { in.Body = `{"query":"{order(id:\"{ref}\")}"}` },
		"the probe names no order":                               func(in *InDoubt) { in.Body = `{"query":"{orders}"}` },
		"the body of the probe has one of Caddy's own":           func(in *InDoubt) { in.Body = `{"id":"{http.request.uri}"}` },
		"in_doubt: the probe has {ref}, and the gate has no ref": nil,
	} {
		d, gate := in(), &Gate{HoldFor: 30 * time.Second, Answers: answers, Log: zap.NewNop()}
		if change != nil {
			change(d)
			gate.ByRef = true
		}
		if _, err := d.Compile(gate); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, it should say %q", err, says)
		}
	}
}
