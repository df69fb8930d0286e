package suite

import (
	"math"

	"github.com/stockgate/stockgate/bench/measure"
)

// rate, micros and others pick what is compared.
func rate(r measure.Row) float64    { return r.Rate.Median }
func micros(r measure.Row) float64  { return r.Micros.Median }
func perCore(r measure.Row) float64 { return r.PerCore.Median }
func calls(r measure.Row) float64   { return r.Calls.Median }
func cpu(r measure.Row) float64     { return r.CPU["all"].Median }

// aim is one goal: what of a peer in a case, divided by the same of another; without
// another, what it is.
type aim struct {
	name, peer string
	than       string // another peer of the case
	of         func(measure.Row) float64
	within     string
	want       float64
	most       bool
}

var aims = []aim{
	{name: "sold-out-post", peer: "gate-fast", than: "nginx-dict", of: rate, want: 1.3},
	{name: "sold-out-get", peer: "gate-fast", than: "nginx-dict", of: rate, want: 1.3},
	{name: "tls-h1", peer: "gate-fast", than: "nginx-dict", of: rate, want: 1.2},
	{name: "tls-h2", peer: "gate-fast", than: "nginx-dict", of: rate, want: 1.2},
	{name: "tls-h2-one", peer: "gate-fast", than: "nginx-dict", of: rate, want: 1.5},
	{name: "sold-out-post", peer: "gate", than: "caddy-respond", of: rate, want: 1},
	{name: "sold-out-get", peer: "gate", than: "caddy-respond", of: rate, want: 1},
	{name: "accepted-post", peer: "gate", than: "caddy-proxy", of: rate, want: 0.7},
	{name: "accepted-post", peer: "gate-hs256", than: "caddy-proxy", of: rate, want: 0.85},
	{name: "accepted-get", peer: "gate", than: "caddy-proxy", of: rate, want: 0.7},
	{name: "accepted-get", peer: "gate-hs256", than: "caddy-proxy", of: rate, want: 0.85},
	{name: "accepted-key", peer: "gate-key", than: "caddy-proxy", of: rate, want: 0.7},
	{name: "accepted-key", peer: "gate-key-hs256", than: "caddy-proxy", of: rate, want: 0.85},
	{name: "known", peer: "gate-1m", than: "gate-1", of: micros, within: "cpu of an answer", want: 1.15, most: true},
	{name: "known", peer: "gate-fast-1m", than: "gate-fast-1", of: micros, within: "cpu of an answer", want: 1.15, most: true},
	{name: "whole-sale", peer: "gate-fast", than: "nginx-dict", of: cpu, within: "cpu of all processes", want: 1, most: true},
	{name: "reserve", peer: edgeRow, than: plainRow, of: perCore, within: "per redis core", want: 1.5},
	{name: "reserve", peer: edgeRow, than: plainRow, of: perCore, within: "per redis core, the aim", want: 2.5},
	{name: "reserve", peer: edgeRow, than: singleRow, of: perCore, within: "per redis core", want: 4},
	{name: "reserve", peer: confirmRow, of: calls, within: "script calls of a reservation", want: 0.25, most: true},
}

// judge compares what was measured with the goals. A goal whose peers did not both run
// is left out.
func judge(cases []measure.Case) []measure.Judged {
	find := func(name, peer string) (measure.Row, bool) {
		for i := range cases {
			if cases[i].Name == name {
				return cases[i].Find(peer)
			}
		}
		return measure.Row{}, false
	}
	var judged []measure.Judged
	for _, a := range aims {
		row, ok := find(a.name, a.peer)
		if !ok {
			continue
		}
		got, what, byCPU, busy := a.of(row), a.peer, 0.0, 0.0
		if a.than != "" {
			what += " to " + a.than
			other, ok := find(a.name, a.than)
			if !ok {
				continue
			}
			got = measure.Ratio(got, a.of(other))
			if a.within == "" && row.Micros.Median > 0 {
				byCPU = other.Micros.Median / row.Micros.Median
				busy = min(row.Busy.Median, other.Busy.Median)
			}
		} else if got == 0 {
			got = math.NaN()
		}
		if a.within != "" {
			what += ", " + a.within
		}
		if j, ok := (measure.Goal{What: what, Want: a.want, Most: a.most}).Judge(a.name, got); ok {
			j.ByCPU, j.Busy = byCPU, busy
			judged = append(judged, j)
		}
	}
	return judged
}
