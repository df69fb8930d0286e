// Package capacity says what a sale needs: edges, cores, memory, Redis and bandwidth, from rates that
// were measured, with its arithmetic.
package capacity

import (
	"errors"
	"fmt"
	"math"
)

// Sale is what is planned for.
type Sale struct {
	Buyers   int64   `json:"buyers"`
	Seconds  float64 `json:"seconds"`            // in which they come, evenly
	Attempts float64 `json:"attempts_per_buyer"` // on one connection
	Units    int64   `json:"units"`              // that are sold meanwhile, one an order
	TLS      bool    `json:"tls"`                // the edges have the buyers' connections; else a balancer has
	HTTP2    bool    `json:"http2"`
	// Connected is the share of the buyers whose connection is there before they try; Resumed is
	// the share of the other connections that resume a TLS session.
	Connected float64 `json:"connected"`
	Resumed   float64 `json:"resumed"`

	Cores int     `json:"cores_per_edge"`
	Busy  float64 `json:"busy"`  // share of a core that may be used
	Spare int     `json:"spare"` // edges that may fail
}

// check returns an error for a sale that cannot be planned.
func (s *Sale) check() error {
	finite := func(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
	switch {
	case s.Buyers < 1 || s.Buyers > maxBuyers:
		return fmt.Errorf("--buyers %d: say how many buyers come, from 1 to %d", s.Buyers, int64(maxBuyers))
	case !finite(s.Seconds) || s.Seconds < minSeconds || s.Seconds > maxSeconds:
		return fmt.Errorf("--seconds %v: say in how many seconds they come, from %v to %d", s.Seconds, minSeconds, maxSeconds)
	case !finite(s.Attempts) || s.Attempts < 1 || s.Attempts > maxAttempts:
		return fmt.Errorf("--attempts-per-buyer %v: it is from 1 to %d", s.Attempts, maxAttempts)
	case s.Units < 0 || float64(s.Units) > float64(s.Buyers)*s.Attempts:
		return fmt.Errorf("--units %d: it is from 0 to the number of attempts, %.0f", s.Units, float64(s.Buyers)*s.Attempts)
	case s.HTTP2 && !s.TLS:
		return errors.New("--http2 without --tls: browsers speak HTTP/2 over TLS only, so give --tls too")
	case !finite(s.Resumed) || s.Resumed < 0 || s.Resumed > 1:
		return fmt.Errorf("--resumed %v: it is a share from 0 to 1", s.Resumed)
	case s.Resumed > 0 && !s.TLS:
		return errors.New("--resumed without --tls: only TLS has sessions to resume, so give --tls too")
	case !finite(s.Connected) || s.Connected < 0 || s.Connected > 1:
		return fmt.Errorf("--connected %v: it is a share from 0 to 1", s.Connected)
	case s.Connected > 0 && !s.TLS:
		return errors.New("--connected without --tls: a balancer has the buyers' connections then, so give --tls or leave it out")
	case s.Cores < 1 || s.Cores > maxCores:
		return fmt.Errorf("--cores-per-edge %d: it is from 1 to %d", s.Cores, maxCores)
	case !finite(s.Busy) || s.Busy <= 0 || s.Busy > 1:
		return fmt.Errorf("--busy %v: it is a share above 0 and up to 1", s.Busy)
	case s.Spare < 0 || s.Spare > maxCores:
		return fmt.Errorf("--spare %d: it is from 0 to %d", s.Spare, maxCores)
	}
	return nil
}

const (
	maxBuyers   = 10_000_000_000
	minSeconds  = 0.001
	maxSeconds  = 86_400
	maxAttempts = 1_000_000
	maxCores    = 4096
)

// protocol is how buyers reach the edges.
type protocol int

const (
	plain protocol = iota
	tlsHTTP1
	tlsHTTP2
)

func (s *Sale) protocol() protocol {
	switch {
	case s.HTTP2:
		return tlsHTTP2
	case s.TLS:
		return tlsHTTP1
	}
	return plain
}

func (p protocol) String() string {
	return [...]string{"HTTP/1.1 without TLS", "HTTP/1.1 over TLS", "HTTP/2 over TLS"}[p]
}
