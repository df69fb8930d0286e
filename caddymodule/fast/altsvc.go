package fast

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// altSvc returns the header field with which a server announces HTTP/3 in each answer (RFC 7838),
// as net/http writes it; nil: it announces nothing. It returns false if the announcement cannot
// be known: ports that the system chooses, and several, of which Caddy does not fix the order.
func altSvc(s *caddyhttp.Server) (field []byte, known bool) {
	if len(s.TLSConnPolicies) == 0 {
		return nil, true
	}
	var ports []uint
	for i, text := range s.Listen {
		protocols := s.Protocols
		if i < len(s.ListenProtocols) && s.ListenProtocols[i] != nil {
			protocols = s.ListenProtocols[i]
		}
		addr, err := caddy.ParseNetworkAddress(text)
		if err != nil {
			return nil, false
		}
		if !slices.Contains(protocols, "h3") || addr.IsUnixNetwork() {
			continue
		}
		for port := addr.StartPort; port <= addr.EndPort; port++ {
			ports = append(ports, port)
		}
	}
	switch {
	case len(ports) == 0:
		return nil, true
	case len(ports) > 1 || ports[0] == 0:
		return nil, false
	}
	return fmt.Appendf(nil, "Alt-Svc: h3=\":%d\"; ma=2592000\r\n", ports[0]), true
}

// announce inserts the announcement of HTTP/3 into an answer, whose status line is at from.
func (p *RoutePlan) announce(out []byte, from int) []byte {
	if len(p.altSvc) == 0 {
		return out
	}
	line := from + bytes.IndexByte(out[from:], '\n') + 1
	return slices.Insert(out, line, p.altSvc...)
}
