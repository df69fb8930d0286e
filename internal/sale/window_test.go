package sale_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stockgate/stockgate/internal/sale"
)

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.999Z07:00", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestWindow(t *testing.T) {
	for _, test := range []struct {
		name, zone, every, now string
		from, to               string // in UTC
	}{
		{"a day", "Asia/Shanghai", "day", "2026-11-11T00:00:00+08:00", "2026-11-10T16:00:00Z", "2026-11-11T16:00:00Z"},
		{"its last moment", "Asia/Shanghai", "day", "2026-11-11T23:59:59.999+08:00", "2026-11-10T16:00:00Z", "2026-11-11T16:00:00Z"},
		{"the next day", "Asia/Shanghai", "day", "2026-11-12T00:00:00+08:00", "2026-11-11T16:00:00Z", "2026-11-12T16:00:00Z"},
		{"a day in UTC", "UTC", "day", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z"},
		{"a day before 1970", "Asia/Tokyo", "day", "1969-12-31T12:00:00Z", "1969-12-30T15:00:00Z", "1969-12-31T15:00:00Z"},

		// weeks begin on Monday
		{"Monday", "Asia/Shanghai", "week", "2026-11-09T00:00:00+08:00", "2026-11-08T16:00:00Z", "2026-11-15T16:00:00Z"},
		{"Wednesday", "Asia/Shanghai", "week", "2026-11-11T12:00:00+08:00", "2026-11-08T16:00:00Z", "2026-11-15T16:00:00Z"},
		{"Sunday night", "Asia/Shanghai", "week", "2026-11-15T23:59:59.999+08:00", "2026-11-08T16:00:00Z", "2026-11-15T16:00:00Z"},
		{"a week over the year's end", "UTC", "week", "2027-01-01T00:00:00Z", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"},
		{"a week over a leap day", "UTC", "week", "2028-02-29T00:00:00Z", "2028-02-28T00:00:00Z", "2028-03-06T00:00:00Z"},
		{"a week of 167 hours", "Europe/Berlin", "week", "2026-03-25T00:00:00Z", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"a week of 169 hours", "Europe/Berlin", "week", "2026-10-25T22:59:59Z", "2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"},

		// months
		{"31 days", "Asia/Shanghai", "month", "2026-01-31T23:59:59+08:00", "2025-12-31T16:00:00Z", "2026-01-31T16:00:00Z"},
		{"28 days", "Asia/Shanghai", "month", "2026-02-28T23:59:59+08:00", "2026-01-31T16:00:00Z", "2026-02-28T16:00:00Z"},
		{"29 days", "Asia/Shanghai", "month", "2028-02-29T12:00:00+08:00", "2028-01-31T16:00:00Z", "2028-02-29T16:00:00Z"},
		{"2000 was a leap year", "UTC", "month", "2000-02-29T12:00:00Z", "2000-02-01T00:00:00Z", "2000-03-01T00:00:00Z"},
		{"December", "America/New_York", "month", "2026-12-31T23:59:59-05:00", "2026-12-01T05:00:00Z", "2027-01-01T05:00:00Z"},
		{"January", "America/New_York", "month", "2027-01-01T00:00:00-05:00", "2027-01-01T05:00:00Z", "2027-02-01T05:00:00Z"},
		{"a month with a change of the clock", "America/New_York", "month", "2026-03-20T00:00:00Z", "2026-03-01T05:00:00Z", "2026-04-01T04:00:00Z"},
		{"the leap day itself", "America/New_York", "day", "2028-02-29T12:00:00-05:00", "2028-02-29T05:00:00Z", "2028-03-01T05:00:00Z"},

		// nights in which the clock changes
		{"23 hours", "Europe/Berlin", "day", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"25 hours", "Europe/Berlin", "day", "2026-10-25T00:30:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"the day before no midnight", "America/Sao_Paulo", "day", "2018-11-04T02:59:59Z", "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z"},
		{"no midnight", "America/Sao_Paulo", "day", "2018-11-04T03:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"midnight put back", "America/Sao_Paulo", "day", "2018-02-18T02:30:00Z", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z"},
		{"no midnight in Cairo", "Africa/Cairo", "day", "2023-04-28T12:00:00Z", "2023-04-27T22:00:00Z", "2023-04-28T21:00:00Z"},
		{"25 hours in Cairo", "Africa/Cairo", "day", "2023-10-26T21:30:00Z", "2023-10-25T21:00:00Z", "2023-10-26T22:00:00Z"},
		{"no midnight in Beirut", "Asia/Beirut", "day", "2022-03-27T00:00:00Z", "2022-03-26T22:00:00Z", "2022-03-27T21:00:00Z"},
		{"a month without its midnight", "America/Asuncion", "month", "2017-10-01T04:00:00Z", "2017-10-01T04:00:00Z", "2017-11-01T03:00:00Z"},
		{"the month before it", "America/Asuncion", "month", "2017-10-01T03:59:59Z", "2017-09-01T04:00:00Z", "2017-10-01T04:00:00Z"},
		{"a date that is begun twice", "America/St_Johns", "day", "2006-10-29T02:30:30Z", "2006-10-29T02:30:00Z", "2006-10-30T03:30:00Z"},
		{"the end of the date before again", "America/St_Johns", "day", "2006-10-29T03:00:00Z", "2006-10-29T02:30:00Z", "2006-10-30T03:30:00Z"},
		{"before a date that is skipped", "Pacific/Apia", "day", "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"after it", "Pacific/Apia", "day", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"its week", "Pacific/Apia", "week", "2011-12-30T10:00:00Z", "2011-12-26T10:00:00Z", "2012-01-01T10:00:00Z"},

		// hours
		{"an hour", "UTC", "hour", "2026-11-11T10:59:59.999Z", "2026-11-11T10:00:00Z", "2026-11-11T11:00:00Z"},
		{"half an hour off", "Asia/Kolkata", "hour", "2026-11-11T10:00:00Z", "2026-11-11T09:30:00Z", "2026-11-11T10:30:00Z"},
		{"three quarters off", "Asia/Kathmandu", "hour", "2026-01-01T00:00:00Z", "2025-12-31T23:15:00Z", "2026-01-01T00:15:00Z"},
		{"before 1970, off", "Asia/Kolkata", "hour", "1969-12-31T00:00:00Z", "1969-12-30T23:30:00Z", "1969-12-31T00:30:00Z"},
		{"an hour the first time", "Europe/Berlin", "hour", "2026-10-25T00:30:00Z", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},
		{"an hour the second time", "Europe/Berlin", "hour", "2026-10-25T01:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"},
		{"before the hour that is skipped", "Europe/Berlin", "hour", "2026-03-29T00:59:59Z", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"},
		{"after it", "Europe/Berlin", "hour", "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"},
		{"half an hour skipped", "Australia/Lord_Howe", "hour", "2026-10-03T15:40:00Z", "2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z"},
		{"before half an hour repeated", "Australia/Lord_Howe", "hour", "2026-04-04T14:40:00Z", "2026-04-04T14:00:00Z", "2026-04-04T15:00:00Z"},
		{"half an hour repeated", "Australia/Lord_Howe", "hour", "2026-04-04T15:10:00Z", "2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z"},
		{"an hour of a minute", "America/St_Johns", "hour", "2006-10-29T02:30:30Z", "2006-10-29T02:30:00Z", "2006-10-29T02:31:00Z"},
		{"the 59 minutes after it", "America/St_Johns", "hour", "2006-10-29T02:31:00Z", "2006-10-29T02:31:00Z", "2006-10-29T03:30:00Z"},

		// beyond the tables of the zones, on the last day of a leap year
		{"the last day of a leap year", "America/New_York", "day", "2096-12-31T12:00:00-05:00", "2096-12-31T05:00:00Z", "2097-01-01T05:00:00Z"},
		{"its last hour", "America/New_York", "hour", "2096-12-31T23:30:00-05:00", "2097-01-01T04:00:00Z", "2097-01-01T05:00:00Z"},
		{"its month", "Australia/Sydney", "month", "2096-12-31T12:00:00+11:00", "2096-11-30T13:00:00Z", "2096-12-31T13:00:00Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			limit := sale.Limit{Per: "buyer", Every: test.every, Count: "units", Max: 1}
			id, from, to := limit.Window(instant(t, test.now), zone(t, test.zone))
			if !from.Equal(instant(t, test.from)) || !to.Equal(instant(t, test.to)) {
				t.Errorf("got  [%s, %s)\nwant [%s, %s)", from.UTC().Format(time.RFC3339Nano), to.UTC().Format(time.RFC3339Nano), test.from, test.to)
			}
			if want := strconv.FormatInt(instant(t, test.to).UnixMilli(), 10); id != want {
				t.Errorf("its id is %s, want %s", id, want)
			}
		})
	}
}

func TestWindowOfTheWholeSale(t *testing.T) {
	for _, every := range []string{"sale", "order"} {
		id, from, to := sale.Limit{Every: every}.Window(instant(t, "2026-11-11T00:00:00Z"), time.UTC)
		if id != "-" || !from.IsZero() || !to.IsZero() {
			t.Errorf("%s: %s, %v to %v", every, id, from, to)
		}
	}
}

// Every kind of offset, change and law that the time zone database knows.
var zones = []string{
	"UTC", "Asia/Shanghai", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tehran", "Asia/Gaza", "Asia/Amman", "Asia/Beirut", "Asia/Pyongyang",
	"Asia/Manila", "Asia/Colombo", "Asia/Singapore", "Africa/Cairo", "Africa/Casablanca", "Africa/Monrovia", "Africa/El_Aaiun", "America/New_York",
	"America/St_Johns", "America/Sao_Paulo", "America/Asuncion", "America/Santiago", "America/Havana", "America/Caracas", "America/Nuuk",
	"America/Scoresbysund", "America/Guyana", "America/Juneau", "Antarctica/Troll", "Antarctica/Casey", "Atlantic/Azores", "Australia/Lord_Howe",
	"Australia/Eucla", "Australia/Sydney", "Europe/Berlin", "Europe/Dublin", "Europe/Istanbul", "Europe/Volgograd", "Pacific/Apia",
	"Pacific/Chatham", "Pacific/Kiritimati", "Pacific/Kwajalein", "Pacific/Fakaofo", "Pacific/Fiji", "Pacific/Norfolk", "Pacific/Marquesas",
}

// The windows of every zone follow each other without gap or overlap, and they are
// those of the zone's calendar and clock.
func TestWindowsCoverAllTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		loc := zone(t, rapid.SampledFrom(zones).Draw(rt, "zone"))
		now := time.UnixMilli(rapid.Int64Range(0, 4_102_444_800_000).Draw(rt, "now"))
		if rapid.Bool().Draw(rt, "near a change") {
			if _, change := now.In(loc).ZoneBounds(); !change.IsZero() {
				now = change.Add(time.Duration(rapid.Int64Range(-26*3600_000, 26*3600_000).Draw(rt, "away")) * time.Millisecond)
			}
		}
		every := rapid.SampledFrom([]string{"hour", "day", "week", "month"}).Draw(rt, "every")
		limit := sale.Limit{Per: "buyer", Every: every, Count: "units", Max: 1}
		id, from, to := limit.Window(now, loc)
		if from.After(now) || !to.After(now) {
			rt.Fatalf("[%s, %s) does not hold %s", from, to, now.In(loc))
		}
		for what, at := range map[string]time.Time{"its start": from, "its end": to.Add(-1)} {
			if other, f, u := limit.Window(at, loc); other != id || !f.Equal(from) || !u.Equal(to) {
				rt.Errorf("at %s the window is [%s, %s), not [%s, %s)", what, f, u, from, to)
			}
		}
		if after, f, _ := limit.Window(to, loc); after == id || !f.Equal(to) {
			rt.Errorf("the next window begins at %s, not %s", f, to)
		}
		if before, _, u := limit.Window(from.Add(-1), loc); before == id || !u.Equal(from) {
			rt.Errorf("the window before ends at %s, not %s", u, from)
		}
		if every == "hour" {
			checkHour(rt, from.In(loc), to.In(loc))
		} else {
			checkCalendar(rt, every, from.In(loc), to.In(loc))
		}
	})
}

// checkHour: within a window the clock shows one hour and is not changed; at both
// ends it shows a full hour or has just been changed.
func checkHour(t *rapid.T, from, to time.Time) {
	_, offset := from.Zone()
	for at := from; at.Before(to); at = at.Add(30 * time.Second) {
		if _, other := at.Zone(); other != offset || at.Hour() != from.Hour() {
			t.Fatalf("[%s, %s) is not one hour: %s is in it", from, to, at)
		}
	}
	for _, end := range []time.Time{from, to} {
		_, before := end.Add(-time.Second).Zone()
		_, after := end.Zone()
		if full := end.Minute() == 0 && end.Second() == 0; !full && before == after {
			t.Errorf("[%s, %s): nothing happens at %s", from, to, end)
		}
	}
}

// checkCalendar: before a window no clock has shown its dates, within it none has
// shown those of the next.
func checkCalendar(t *rapid.T, every string, from, to time.Time) {
	number := func(at time.Time) string { // grows with time
		switch every {
		case "week":
			y, w := at.ISOWeek()
			return fmt.Sprintf("%d-%02d", y, w)
		case "month":
			return at.Format("2006-01")
		}
		return at.Format(time.DateOnly)
	}
	this := number(from)
	if next := number(to); next <= this {
		t.Errorf("[%s, %s) ends within %s", from, to, this)
	}
	for at := from.Add(-30 * time.Hour); at.Before(from); at = at.Add(5 * time.Minute) {
		if number(at) >= this {
			t.Fatalf("[%s, %s) begins late: %s is before it", from, to, at)
		}
	}
	if at := from.Add(-time.Second); number(at) >= this {
		t.Errorf("[%s, %s) begins late: %s is before it", from, to, at)
	}
	step := 5 * time.Minute
	if every != "day" {
		step = 3 * time.Hour
	}
	for at := from; at.Before(to); at = at.Add(step) {
		if number(at) > this {
			t.Fatalf("[%s, %s) ends late: %s is in it", from, to, at)
		}
	}
	if at := to.Add(-time.Second); number(at) > this {
		t.Errorf("[%s, %s) ends late: %s is in it", from, to, at)
	}
}
