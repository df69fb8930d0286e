package sale_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// What a file says of unpaid holds is what counts; where it says nothing, the default
// counts for holds that the shop confirms later.
func TestUnpaid(t *testing.T) {
	hour := sale.Span(time.Hour)
	for text, want := range map[string]struct {
		response, backend *sale.Unpaid
		json              string
	}{
		"":                {nil, &sale.Unpaid{Per: "buyer", AtOnce: 1, Ended: 2, Within: hour}, ""},
		"unpaid: off\n":   {nil, nil, `"off"`},
		"unpaid: 'off'\n": {nil, nil, `"off"`},
		"unpaid: {}\n":    {&sale.Unpaid{Per: "buyer", AtOnce: 1, Ended: 2, Within: hour}, &sale.Unpaid{Per: "buyer", AtOnce: 1, Ended: 2, Within: hour}, `{"per":"buyer","at_once":1,"ended":2,"within":"1h"}`},
		"unpaid: {per: [ip, buyer], at_once: 3, ended: 4, within: 90s}\n": {
			&sale.Unpaid{Per: "buyer+ip", AtOnce: 3, Ended: 4, Within: sale.Span(90 * time.Second)},
			&sale.Unpaid{Per: "buyer+ip", AtOnce: 3, Ended: 4, Within: sale.Span(90 * time.Second)},
			`{"per":["buyer","ip"],"at_once":3,"ended":4,"within":"1m30s"}`},
		"unpaid: {per: phone, within: 168h}\n": {
			&sale.Unpaid{Per: "phone", AtOnce: 1, Ended: 2, Within: 168 * hour}, &sale.Unpaid{Per: "phone", AtOnce: 1, Ended: 2, Within: 168 * hour},
			`{"per":"phone","at_once":1,"ended":2,"within":"168h"}`},
	} {
		t.Run(text, func(t *testing.T) {
			s := mustParse(t, head+oneItem+text)
			data, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			again, err := sale.Decode(data)
			if err != nil || !again.Equal(s) {
				t.Fatalf("decoded to another sale: %v\n%s", err, data)
			}
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(data, &fields); err != nil || string(fields["unpaid"]) != want.json {
				t.Errorf("its JSON is %s, want %s (%v)", fields["unpaid"], want.json, err)
			}
			for _, s := range []*sale.Sale{s, again} {
				for later, want := range map[bool]*sale.Unpaid{false: want.response, true: want.backend} {
					got := s.UnpaidOf(later)
					if (got == nil) != (want == nil) || got != nil && *got != *want {
						t.Errorf("confirmed later %v: %v, want %v", later, got, want)
					}
				}
			}
		})
	}
	literal := sale.Sale{Unpaid: &sale.Unpaid{Ended: 7}} // a zero is the default
	if got := literal.UnpaidOf(false); *got != (sale.Unpaid{Per: "buyer", AtOnce: 1, Ended: 7, Within: hour}) {
		t.Errorf("a literal counts %v", got)
	}
}
