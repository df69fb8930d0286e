package gate

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// prints are what orders of a gate that wait are known by. Gates with the same print can send each
// other's orders: they have the same name, the same hosts and the same option sale, whatever else was
// changed by a reload or is different at another edge. config is the print of all that the gate's
// configuration says.
type prints struct {
	once   sync.Once
	order  string
	config string
}

// orderPrint is the print under which the gate's orders wait. Its hosts are known when all routes are
// provisioned.
func (g *Gate) orderPrint() string {
	g.prints.once.Do(func() {
		var hosts []string
		if g.server != nil {
			hosts, _ = hostsOf(g.server.Routes, g)
		}
		slices.Sort(hosts)
		g.prints.order = printOf("gate", strings.Join(slices.Compact(hosts), " "), g.Name, strings.Join(g.Sale, " "))
	})
	return g.prints.order
}

// configPrint is the print of a configuration. Edges of an older version know orders
// by it.
func configPrint(g *Gate) (string, error) {
	text, err := json.Marshal(g)
	return printOf(string(text)), err
}

func printOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// hostsOf returns the hosts whose requests come to a gate; false: it is not in these routes.
func hostsOf(routes caddyhttp.RouteList, g *Gate) (hosts []string, found bool) {
	for i := range routes {
		for _, h := range routes[i].Handlers {
			switch h := h.(type) {
			case *Gate:
				found = h == g
			case *caddyhttp.Subroute:
				hosts, found = hostsOf(h.Routes, g)
			}
			if !found {
				continue
			}
			for _, set := range routes[i].MatcherSets {
				for _, m := range set {
					if host, ok := m.(*caddyhttp.MatchHost); ok {
						hosts = append(hosts, *host...)
					}
				}
			}
			return hosts, true
		}
	}
	return nil, false
}
