package capacity

import (
	"fmt"
	"math"
)

// Cost is what something costs.
type Cost struct {
	Flag   string  `json:"flag"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Source string  `json:"source"`
}

// The rates, by their flags.
const (
	refusal          = "refusal-us"
	order            = "order-us"
	fullHandshake    = "full-handshake-us"
	resumedHandshake = "resumed-handshake-us"
	connectionMemory = "connection-kib"
	kernelMemory     = "kernel-kib"
	edgeMemory       = "edge-mib"
	redisOrders      = "redis-orders"
	redisBytes       = "redis-bytes"
	requestBytes     = "request-bytes"
	answerBytes      = "answer-bytes"
	handshakeIn      = "handshake-in-bytes"
	handshakeOut     = "handshake-out-bytes"
)

// Where the values of the table come from.
const (
	ofMachine = "measured on two shared cores of an AMD EPYC"
	ofBench   = ofMachine + ", case "
	assumed   = "assumed"
)

// measured is one row of the table: what something costs for each way in which buyers reach the
// edges; 0 where it does not occur.
type measured struct {
	flag, unit, usage string
	// plain, h1 and h2 are without TLS, HTTP/1.1 over TLS and HTTP/2 over TLS.
	plain, h1, h2 float64
	source        [3]string
}

func same(source string) [3]string { return [3]string{source, source, source} }

// table has the medians of bench/results/2026-11-23-capacity.json, and of 2026-11-23-idle.json
// beside it for the memory of connections.
var table = []measured{
	{refusal, "µs of a core", "What a fast refusal costs an edge", 11.6, 16.5, 21.2, [3]string{ofBench + "sold-out-post", ofBench + "tls-h1", ofBench + "tls-h2"}},
	{order, "µs of a core", "What an order costs an edge: reserve, sign, forward, confirm", 194, 194, 194, same(ofBench + "accepted-post, without TLS")},
	{fullHandshake, "µs of a core", "What a connection with a full TLS handshake costs an edge beside its refusal", 0, 475, 546, [3]string{"", ofBench + "new-h1 less tls-h1", ofBench + "new-h2 less tls-h2"}},
	{resumedHandshake, "µs of a core", "The same with a resumed TLS session", 0, 392, 410, [3]string{"", ofBench + "again-h1 less tls-h1", ofBench + "again-h2 less tls-h2"}},
	{connectionMemory, "KiB", "What an idle connection adds to the resident memory of an edge", 0, 39.5, 58.8, [3]string{"", ofBench + "idle-h1", ofBench + "idle-h2"}},
	{kernelMemory, "KiB", "What the kernel keeps for a connection", 0, 4, 4, [3]string{"", ofMachine + ", growth of Slab", ofMachine + ", growth of Slab"}},
	{edgeMemory, "MiB", "What an edge takes without connections", 512, 512, 512, same(assumed + ", with its items and the garbage of a rush")},
	{redisOrders, "orders a second of a core", "How many reservations and their confirms a core of Redis does in a second", 27200, 27200, 27200, same(ofBench + "reserve, 64 at once, and confirm")},
	{redisBytes, "bytes", "What Redis receives and sends for an order", 866, 866, 866, same(ofBench + "reserve, 64 at once, and confirm")},
	{requestBytes, "bytes", "Size of an attempt on the wire, with TLS and TCP", 900, 900, 400, same(assumed + " for a browser")},
	{answerBytes, "bytes", "Size of a refusal on the wire, with TLS and TCP", 450, 500, 450, same(assumed)},
	{handshakeIn, "bytes", "What an edge receives to open and close a connection", 0, 2500, 2700, same(assumed + " for a browser")},
	{handshakeOut, "bytes", "What an edge sends to open and close a connection", 0, 5000, 5200, same(assumed + " with a certificate and its chain of 2.5 KB")},
}

// ratesFor returns the rates for a protocol. given replaces those of the table; a rate that the
// plan has no use for is an error.
func ratesFor(p protocol, given map[string]float64) (rates []Cost, err error) {
	left := len(given)
	for _, m := range table {
		r := Cost{m.flag, [...]float64{m.plain, m.h1, m.h2}[p], m.unit, m.source[p]}
		value, ok := given[m.flag]
		if ok {
			left--
			if math.IsNaN(value) || math.IsInf(value, 0) || value <= 0 {
				return nil, fmt.Errorf("--%s %v: it is a number above 0, in %s", m.flag, value, m.unit)
			}
			if r.Value == 0 {
				return nil, fmt.Errorf("--%s without --tls: only connections over TLS end at the edges, so give --tls too", m.flag)
			}
			r.Value, r.Source = value, "given"
		}
		if r.Value != 0 {
			rates = append(rates, r)
		}
	}
	if left > 0 {
		return nil, fmt.Errorf("there are rates that are not known: %v", given)
	}
	return rates, nil
}
