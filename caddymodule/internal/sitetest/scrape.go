package sitetest

import (
	"fmt"
	"strings"
)

// Scrape returns Stockgate's series, by name and labels.
func (s *Site) Scrape() map[string]string {
	s.T.Helper()
	a := s.Admin("GET", "/metrics", "")
	if a.Status != 200 {
		s.T.Fatalf("%d %s", a.Status, a.Body)
	}
	series := map[string]string{}
	for line := range strings.Lines(a.Body) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(name, "stockgate_") {
			series[name] = value
		}
	}
	return series
}

// Expect fails unless the series have these values.
func (s *Site) Expect(series map[string]string, want map[string]string) {
	s.T.Helper()
	for name, value := range want {
		if got, ok := series[name]; !ok || got != value {
			s.T.Errorf("%s is %q, not %s", name, got, value)
		}
	}
}

// UntilScraped waits until the series have these values. What Redis does not answer in time is
// in a later scrape.
func (s *Site) UntilScraped(want map[string]string) map[string]string {
	s.T.Helper()
	var series map[string]string
	s.Eventually("known", func() (string, bool) {
		series = s.Scrape()
		for name, value := range want {
			if series[name] != value {
				return fmt.Sprintf("%s %q, want %s", name, series[name], value), false
			}
		}
		return "", true
	})
	return series
}
