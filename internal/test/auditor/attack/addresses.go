package main

import (
	"fmt"
	"strings"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

var chosenAddresses = scenario{
	name: "chosen-addresses", short: true,
	about: "A client sends addresses of its choice in X-Forwarded-For and other headers, to an edge that trusts no proxy and through a proxy that appends: a rate and a purchase limit of its address hold, and others keep theirs; where the configuration lets it choose, log and doctor say so",
	run: func(a *attack) {
		site := rig.Site{Gate: "identity ip {client_ip}\n\t\trate {client_ip} 3 1h"}
		a.stage(1, site)
		strict, lax := a.site, a.site
		strict.Server = "trusted_proxies static 127.0.0.0/8\n\t\ttrusted_proxies_strict"
		lax.Server = "trusted_proxies static 127.0.0.0/8"
		a.startEdge(strict)
		a.startEdge(lax)
		a.sell("addresses", one(100), "limits:\n  - {per: ip, every: sale, max: 1, count: orders}\n")

		const own = "203.0.113.7" // what the proxy appends; an edge without one sees the address of the connection
		a.pretends(0, "no proxy", func(chosen string) []string {
			return []string{"X-Forwarded-For: " + chosen, "X-Real-IP: " + chosen, "Forwarded: for=" + chosen, "CF-Connecting-IP: " + chosen}
		})
		a.pretends(1, "a proxy that appends", func(chosen string) []string { return []string{"X-Forwarded-For: " + chosen + ", " + own} })
		a.pretends(1, "a proxy that adds a header", func(chosen string) []string {
			return []string{"X-Forwarded-For: " + chosen, "X-Forwarded-For: ::ffff:" + own}
		})
		for i, address := range []string{"203.0.113.8", "198.51.100.3"} { // a stranger, and one of those whose address was taken
			r := a.crowd.Buy(a.doors[1], crowd.Wish{Buyer: fmt.Sprint("honest", i), Lines: crowd.Units("7", 1), Header: []string{"X-Forwarded-For: " + address}})
			if r.Status >= 300 {
				a.violated(auditor.ByAddress, "the first order from %s was answered %d %s", address, r.Status, r.Reason)
			}
		}
		out, _, err := a.edges[2].CLI("", "doctor")
		a.must(err)
		for place, text := range map[string]string{"the doctor": out, "the log": a.edges[2].Log.String()} {
			if !strings.Contains(text, "trusted_proxies_strict") {
				a.violated(auditor.ByAddress, "%s does not say that a client can choose its address", place)
			}
		}
		a.settle()
	},
}

// pretends has one client order twelve times at an edge, each time with another address in the headers.
func (a *attack) pretends(edge int, what string, header func(chosen string) []string) {
	sold, passed := 0, 0
	for i := range 12 {
		r := a.crowd.Buy(a.doors[edge], crowd.Wish{Buyer: fmt.Sprintf("client%d", a.counts["addresses tried"]), Lines: crowd.Units("7", 1), Header: header(fmt.Sprintf("198.51.100.%d", i))})
		if r.Status < 300 {
			sold++
		}
		if r.Reason != "rate_limited" {
			passed++
		}
		a.count("addresses tried", 1)
	}
	if sold > 1 || passed > 3 {
		a.violated(auditor.ByAddress, "%s: of 12 orders of one client %d were sold and %d passed the rate; its address may buy once, and the rate is 3", what, sold, passed)
	}
}
