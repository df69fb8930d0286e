// Package adminapi defines the requests and answers of Stockgate's admin API, as JSON.
// The handlers and the `caddy stockgate` commands share them. The paths are listed at
// operator.AdminAPI.
package adminapi

import (
	"strings"
	"time"
)

// ByHeader is the request header that names the caller in the log and the journal. The
// API does not verify it.
const ByHeader = "Stockgate-By"

// ServedHeader is in every answer of the API, with the value 1. A command tells by it whether
// Stockgate or another server has answered.
const ServedHeader = "Stockgate-Admin"

// OperatorCause begins the cause of what operators settle. Behind a colon follows who it was: a user whom a
// page has authenticated, or name@address as the caller of the admin API says.
const OperatorCause = "operator"

// PlainText returns the part of a text that a name in a journal entry or a log line may have:
// its printable ASCII characters without space, at most most bytes.
func PlainText(text string, most int) string {
	text = strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return -1
		}
		return c
	}, text)
	return text[:min(len(text), most)]
}

// clockTime is how operators read times: with the offset of the zone.
const clockTime = "2006-01-02 15:04:05 -0700"

// LocalTime formats a time for operators that is not one of a sale, in the time zone of this process.
func LocalTime(t time.Time) string { return t.Local().Format(clockTime) }

// SaleTime formats a time of a sale in the sale's time zone; without one, in UTC.
func SaleTime(t time.Time, zone string) string { return t.In(SaleZone(zone)).Format(clockTime) }

// SaleZone returns a sale's time zone by its name; "" and what this machine does not know: UTC.
func SaleZone(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}
