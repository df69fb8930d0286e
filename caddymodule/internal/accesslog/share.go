// Package accesslog writes lines in the format of Caddy's access log for a share of the requests
// that Caddy's HTTP server does not see.
package accesslog

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Share is which part of the requests is logged. The zero Share is none.
type Share struct {
	text  string
	below uint64 // of 1<<63
}

// ParseShare reads a percentage above 0 and up to 100, such as 1% or 0.05%.
func ParseShare(text string) (Share, error) {
	digits, ok := strings.CutSuffix(text, "%")
	percent, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || strings.Trim(digits, "0123456789.") != "" || !(percent > 0) || percent > 100 {
		return Share{}, fmt.Errorf("log %q: write the share of refusals to log as a percentage above 0 and up to 100, such as 1%% or 0.05%%", text)
	}
	below := uint64(percent / 100 * (1 << 63))
	if below == 0 {
		return Share{}, fmt.Errorf("log %q: the share is too small to log anything: write a larger percentage, such as 0.0001%%", text)
	}
	return Share{text, below}, nil
}

// String is the share as it was written.
func (s Share) String() string { return s.text }

// Draw decides at random whether a request is logged. Without a share it is never.
func (s Share) Draw() bool { return s.below > 0 && s.Takes(rand.Uint64()) }

// Takes decides by a number that is drawn uniformly from all.
func (s Share) Takes(drawn uint64) bool { return drawn>>1 < s.below }
