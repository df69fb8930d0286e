package recovery_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/store/record"
)

// To whom a key, a ref and a purchase without a key belong follows from the
// reservations, whatever the order in which they come.
func TestImageBindings(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	of := func(s record.State, since int64, edit ...func(*record.Record)) *record.Record {
		r := &record.Record{State: s, Created: at(1), Changed: at(since), Mode: record.ModeResponse, Guard: "k|x", KeyTTL: 10 * time.Millisecond, Ref: "o"}
		for _, e := range edit {
			e(r)
		}
		return r
	}
	single := func(r *record.Record) { r.Guard = "d|x" }
	backend := func(r *record.Record) { r.Mode = record.ModeBackend }
	tests := map[string]struct {
		ends int64
		r    []*record.Record
		want map[string]int // field → which of them has it
	}{
		"a hold":                         {500, []*record.Record{of("held", 5)}, map[string]int{"k|x": 0, "b||o": 0}},
		"what has ended":                 {500, []*record.Record{of("released", 5), of("expired", 5)}, nil},
		"without a key":                  {500, []*record.Record{of("in_doubt", 5, single)}, map[string]int{"d|x": 0, "b||o": 0}},
		"answered, the shop decides":     {500, []*record.Record{of("held", 5, single, backend)}, map[string]int{"b||o": 0}},
		"sold without a key":             {500, []*record.Record{of("confirmed", 5, single)}, map[string]int{"b||o": 0}},
		"sold after a hold was made":     {500, []*record.Record{of("held", 5), of("confirmed", 9)}, map[string]int{"k|x": 1, "b||o": 1}},
		"sold twice, the first":          {500, []*record.Record{of("confirmed", 9), of("confirmed", 5), of("released", 1)}, map[string]int{"k|x": 1, "b||o": 1}},
		"sold without stock":             {500, []*record.Record{of("unbacked", 5), of("held", 9)}, map[string]int{"k|x": 1, "b||o": 1}},
		"without stock, no other":        {500, []*record.Record{of("released", 9), of("unbacked", 5)}, map[string]int{"k|x": 1, "b||o": 1}},
		"the key's time is over":         {50, []*record.Record{of("confirmed", 5), of("confirmed", 95)}, map[string]int{"k|x": 1, "b||o": 0}},
		"of both":                        {50, []*record.Record{of("confirmed", 9), of("confirmed", 5)}, map[string]int{"k|x": 0, "b||o": 1}},
		"not before the sale ends":       {500, []*record.Record{of("confirmed", 5), of("confirmed", 95)}, map[string]int{"k|x": 0, "b||o": 0}},
		"the time of a hold is not over": {50, []*record.Record{of("held", 5), of("confirmed", 4)}, map[string]int{"k|x": 0, "b||o": 1}},
	}
	for name, test := range tests {
		for _, backwards := range []bool{false, true} {
			m := recovery.NewImage(at(100), at(test.ends))
			order := []int{0, 1, 2}[:len(test.r)]
			if backwards {
				slices.Reverse(order)
			}
			bound := map[string]int{}
			for _, i := range order {
				for _, field := range m.Add(string(rune('a'+i)), test.r[i]) {
					bound[field] = i
				}
			}
			for _, field := range []string{"k|x", "d|x", "b||o"} {
				want, ok := test.want[field]
				if got, has := bound[field]; got != want || has != ok || m.Wanted(field) != ok {
					t.Errorf("%s, backwards %t: %s belongs to %d (%t), want %d (%t)", name, backwards, field, got, has, want, ok)
				}
				for i, r := range test.r {
					if names := r.Guard == field || field == "b||o"; names && m.Owns(string(rune('a'+i)), r, field) != (ok && i == want) {
						t.Errorf("%s: it is not said of %d that %s belongs to %d", name, i, field, want)
					}
				}
			}
		}
	}
}

// Counters of windows that are over are left out: they may have been dropped.
func TestImageLimits(t *testing.T) {
	m := recovery.NewImage(time.UnixMilli(100), time.UnixMilli(500))
	charges := "buyer:day:units|100|x 3 buyer:day:units|101|x 2 buyer:sale:units|-|x 5"
	for i, s := range []record.State{"held", "in_doubt", "confirmed", "released", "expired", "unbacked"} {
		m.Add(string(rune('a'+i)), &record.Record{State: s, Charges: charges})
	}
	got := map[string]record.Count{}
	for field, c := range m.Limits {
		got[field] = c
	}
	want := map[string]record.Count{"buyer:day:units|101|x": {Charged: 6, Pending: 4}, "buyer:sale:units|-|x": {Charged: 15, Pending: 10}}
	if len(got) != 2 || got["buyer:day:units|101|x"] != want["buyer:day:units|101|x"] || got["buyer:sale:units|-|x"] != want["buyer:sale:units|-|x"] {
		t.Errorf("the limits are %v, want %v", got, want)
	}
}
