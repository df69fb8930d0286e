package attempt

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/stockgate/stockgate/internal/ipaddr"
	"github.com/stockgate/stockgate/internal/sale"
)

// rateKey is where the key of one rate is found.
type rateKey struct {
	in []input
	// as are the identities that read the same as each of in: the key is their normal form. Empty:
	// there is none.
	as         []string
	ipv6Prefix int
}

// newRateKey finds the identities that read the same as alternatives of a key. {client_ip} keeps
// the rate's own network.
func newRateKey(in []input, identities []identity, ipv6Prefix int) rateKey {
	r := rateKey{in, make([]string, len(in)), ipv6Prefix}
	for i := range in {
		for _, id := range identities {
			if in[i].kind != ClientIP && r.as[i] == "" && chosen(id.in, in[:i], &in[i]) {
				r.as[i] = id.name
			}
		}
	}
	return r
}

// chosen says that an identity is what an input has, where all inputs before it are empty.
func chosen(identity, before []input, in *input) bool {
	for i := range identity {
		if identity[i].reads(in) {
			return true
		}
		if !slices.ContainsFunc(before, func(b input) bool { return b.reads(&identity[i]) }) {
			return false
		}
	}
	return false
}

// reads says that two inputs have the same value in every request.
func (in *input) reads(other *input) bool {
	return in.kind == other.kind && in.text == other.text && in.slot == other.slot
}

// persons are the identities, and the buyer where it has other spellings.
func (rd *Reader) persons() []identity {
	if !rd.rules.BuyerEmail() {
		return rd.identities
	}
	return append([]identity{{"buyer", rd.buyer}}, rd.identities...)
}

func personOf(a *sale.Attempt, kind string) string {
	if kind == "buyer" {
		return a.Buyer
	}
	return a.Identities[kind]
}

// count adds the keys of the rates. The attempt has its identities.
func (rd *Reader) count(a *sale.Attempt, got []found, env *Env) *sale.Refusal {
	if len(rd.rates) == 0 {
		return nil
	}
	a.RateKeys = slices.Grow(a.RateKeys[:0], len(rd.rates))[:len(rd.rates)]
	for i := range rd.rates {
		key, refusal := rd.rates[i].find(a, got, env)
		if refusal != nil {
			return refusal
		}
		a.RateKeys[i] = key
	}
	return nil
}

// find returns the request's key. The alternatives are kept apart: a client that puts
// another client's address into a field of its own must not be counted as that client.
func (r *rateKey) find(a *sale.Attempt, got []found, env *Env) (string, *sale.Refusal) {
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
		if r.as[i] != "" {
			if text = personOf(a, r.as[i]); text == "" {
				continue // nothing usable was given
			}
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

// Network is the IPv6 network that an address is in, and an IPv4 address itself, also where
// IPv6 carries it.
func Network(addr string, bits int) string {
	ip, err := netip.ParseAddr(addr)
	if err != nil || ip.Is4() {
		return addr
	}
	if ip = ipaddr.Client(ip); ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return addr
	}
	return prefix.String()
}
