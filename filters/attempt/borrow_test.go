package attempt_test

import (
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/internal/sale"
)

// TestBorrowReadsTheSame reads requests one after the other in the same room, and
// compares each with what Read makes of it.
func TestBorrowReadsTheSame(t *testing.T) {
	rd := mustReader(t, attempt.Spec{
		Buyer:      values(t, "{header.X-User-Id}"),
		Region:     values(t, "{json.region}"),
		Identities: map[string]attempt.Values{"phone": values(t, "{json.phone}"), "device": values(t, "{header.X-Device}")},
		Lines:      &attempt.Lines{Array: values(t, "{json.items}")[0], SKU: "sku", Quantity: "n"},
		Key:        values(t, "{header.Idempotency-Key}"),
		Rates:      []attempt.RateKey{{Key: values(t, "{json.phone}")}, {Key: values(t, "{header.X-Device}")}},
	})
	var room sale.Attempt
	for _, body := range []string{
		`{"items":[{"sku":"a","n":1},{"sku":"b"},{"sku":"a","n":2}],"phone":"+1 555","region":"north"}`,
		`{"items":[{"sku":"c"}]}`,
		`{"items":[]}`,
		`{"items":[{"sku":"d","n":20000}],"phone":"2"}`,
		`{`,
		`{"items":[{"sku":"\u0065","n":"3"}],"phone":"3"}`,
	} {
		for _, user := range []string{"u1", ""} {
			r := httptest.NewRequest("POST", "/order", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-Device", "d")
			if user != "" {
				r.Header.Set("X-User-Id", user)
				r.Header.Set("Idempotency-Key", "key")
			}
			want, wantNo := rd.Read(r, []byte(body), attempt.Env{})
			no := rd.Borrow(&room, r, []byte(body), attempt.Env{})
			got := room
			if got.Print != "" || (want.Print == "") != (want.Key == "") {
				t.Errorf("%s: print %q, read %q", body, got.Print, want.Print)
			}
			want.Print = ""
			if len(got.Identities) == 0 {
				got.Identities = nil
			}
			if len(got.Lines) == 0 && len(want.Lines) == 0 {
				got.Lines, want.Lines = nil, nil
			}
			if len(got.RateKeys) == 0 {
				got.RateKeys = nil
			}
			if !reflect.DeepEqual(no, wantNo) || !reflect.DeepEqual(got, want) {
				t.Errorf("%s of %q: %+v, %+v; want %+v, %+v", body, user, got, no, want, wantNo)
			}
		}
	}
}
