package attempt

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/stockgate/stockgate/sale"
)

// rateKey is where the key of one rate is found.
type rateKey struct {
	in         []input
	ipv6Prefix int
}

// count adds the keys of the rates.
func (rd *Reader) count(a *sale.Attempt, got []found, env *Env) *sale.Refusal {
	if len(rd.rates) == 0 {
		return nil
	}
	a.RateKeys = slices.Grow(a.RateKeys[:0], len(rd.rates))[:len(rd.rates)]
	for i := range rd.rates {
		key, refusal := rd.rates[i].find(got, env)
		if refusal != nil {
			return refusal
		}
		a.RateKeys[i] = key
	}
	return nil
}

// find returns the request's key. The alternatives are kept apart: a client that puts
// another client's address into a field of its own must not be counted as that client.
func (r *rateKey) find(got []found, env *Env) (string, *sale.Refusal) {
	for i := range r.in {
		in := &r.in[i]
		text := in.find(got, env).text
		if text == "" {
			continue
		}
		if what := checkIdentity(text); what != "" {
			return "", malformed(in.label, what)
		}
		if in.kind == ClientIP && r.ipv6Prefix > 0 {
			text = Network(text, r.ipv6Prefix)
		}
		if i > 0 {
			text = strconv.Itoa(i) + "\x00" + text // no checked text has this character
		}
		return text, nil
	}
	return "", nil
}

// DefaultIPv6Prefix is how many bits of an IPv6 address count as one client, where nothing
// else is configured: what one customer is usually given.
const DefaultIPv6Prefix = 64

// Network is the IPv6 network that an address is in, and an IPv4 address itself.
func Network(addr string, bits int) string {
	ip, err := netip.ParseAddr(addr)
	switch {
	case err != nil || ip.Is4():
		return addr
	case ip.Is4In6():
		return ip.Unmap().String()
	}
	prefix, err := ip.WithZone("").Prefix(bits)
	if err != nil {
		return addr
	}
	return prefix.String()
}
