package refuse

import (
	"encoding/json"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
)

// The appended document has the same bytes as that of encoding/json, whatever it contains.
func TestProblemIsWhatJSONWouldWrite(t *testing.T) {
	f, err := New(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	limits := []*sale.Limit{
		nil,
		{Per: "buyer", Every: "sale", Max: 2, Count: "units"},
		{Per: sale.Union("phone", "buyer", "ip"), Every: "day", Max: 1_000_000, Count: "orders", SKU: `a"<b>&\`},
	}
	for _, kind := range sale.Kinds {
		a := &f.answers[kind.Reason].wordings[0]
		for _, sku := range []string{"", "20002001", `"\<>&`, "Straße", "\x7f\x01\n", "\u2028\xff"} {
			for _, detail := range []string{"", "the order has no lines", `a "quote"`} {
				for _, limit := range limits {
					for wait, id := range map[int64]string{0: "", 1: "01981b", 5000: ""} {
						no := &sale.Refusal{Reason: kind.Reason, SKU: sku, Detail: detail, Limit: limit, Reservation: id, Challenge: id}
						want, err := json.Marshal(ProblemDocument{
							Type: problemType + string(kind.Reason), Title: kind.Title, Status: kind.Status, Detail: detail,
							Reason: kind.Reason, RetryAfter: wait, SKU: sku, Limit: limit, Reservation: id, Challenge: id,
						})
						if err != nil {
							t.Fatal(err)
						}
						if got := string(a.appendBody(nil, no, wait)); got != string(want)+"\n" {
							t.Fatalf("got  %swant %s", got, want)
						}
					}
				}
			}
		}
	}
}

func TestBodyPieces(t *testing.T) {
	kind, _ := sale.KindOf(sale.AllHeld)
	no := &sale.Refusal{Reason: sale.AllHeld, SKU: `{title}"<`, Reservation: "01981b", Challenge: "1.2"}
	for body, want := range map[string]string{
		"":                             "",
		"no":                           "no",
		"{sku}":                        `{title}"<`,
		"{reason}{status}":             "all_held409",
		"of {reservation}":             "of 01981b",
		"solve {challenge}":            "solve 1.2",
		"{{sku}} {unknown} {":          `{{title}"<} {unknown} {`,
		"again in {retry_after}s. {st": "again in 7s. {st",
	} {
		a := &wording{pieces: bodyPieces(body, "text/plain", kind.Reason, kind.Title, "en", 409, "")}
		if got := string(a.appendBody(nil, no, 7)); got != want {
			t.Errorf("%q becomes %q, want %q", body, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "1", 4095: "4095", 4096: "4096", 86400: "86400"} {
		got := number(n)
		if len(got) != 1 || got[0] != want || cap(got) != 1 {
			t.Errorf("%d is %q", n, got)
		}
	}
}
