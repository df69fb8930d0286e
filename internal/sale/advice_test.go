package sale_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// A time whose offset is not the one that the sale's time zone has then is probably meant an hour earlier
// or later. UTC says what it means.
func TestAdviceAboutOffsets(t *testing.T) {
	const berlin = "timezone: Europe/Berlin\n"
	for name, test := range map[string]struct {
		starts, ends, zone string
		want               []string
	}{
		"summer, in winter's time": {"2030-07-01T12:00:00+01:00", "2030-07-01T14:00:00+02:00", berlin,
			[]string{"starts_at is written with the offset +01:00, and Europe/Berlin has +02:00 at that time, when clocks there show 2030-07-01 13:00; if you mean their time, write 2030-07-01T12:00:00+02:00"}},
		"winter, in summer's time": {"2030-12-01T12:00:00+02:00", "2030-12-02T12:00:00+02:00", berlin,
			[]string{"starts_at is written with the offset +02:00", "ends_at is written with the offset +02:00"}},
		"right, over the change":  {"2030-10-26T12:00:00+02:00", "2030-10-28T12:00:00+01:00", berlin, nil},
		"UTC":                     {"2030-07-01T10:00:00Z", "2030-07-01T12:00:00+00:00", berlin, nil},
		"an offset and no zone":   {"2030-07-01T12:00:00+02:00", "2030-07-01T14:00:00+02:00", "", []string{"the sale has no timezone"}},
		"an offset that is a day": {"2030-07-01T12:00:00+08:00", "2030-07-01T14:00:00+08:00", "timezone: Asia/Shanghai\n", nil},
	} {
		s, err := sale.Parse([]byte("id: s\nstarts_at: " + test.starts + "\nends_at: " + test.ends + "\n" + test.zone + "items: [{sku: a, stock: 1}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		got := s.Advice(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
		if !slices.EqualFunc(got, test.want, strings.Contains) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
