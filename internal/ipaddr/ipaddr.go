// Package ipaddr tells which client an address is, so that rates, lists, identities and the
// challenge agree on it.
package ipaddr

import (
	"net/netip"
	"slices"
)

// Prefixes whose addresses have an IPv4 address as their last 32 bits: RFC 6052, section 2.1,
// and RFC 2765, section 2.1 (IPv4-translated).
var (
	wellKnown  = netip.MustParsePrefix("64:ff9b::/96")
	translated = netip.MustParsePrefix("::ffff:0:0:0/96")
)

// localUse is the prefix of RFC 8215: a network chooses how long its prefix within it is.
var localUse = netip.MustParsePrefix("64:ff9b:1::/48")

// localForms are where the bytes of the IPv4 address are with a prefix of 48, 56 and 64 bits
// (RFC 6052, section 2.2). Byte 8 and all bytes after the address are zero there.
var localForms = [][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}}

// Client returns the address that stands for a client: without a zone, and IPv4 where IPv6
// carries it, mapped or translated by a NAT64. Otherwise all clients behind a NAT64 would
// share one /64.
func Client(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	if a.Is4() {
		return a
	}
	b := a.As16()
	switch {
	case wellKnown.Contains(a), translated.Contains(a):
		return last(b)
	case localUse.Contains(a):
		return local(b)
	}
	return a
}

func last(b [16]byte) netip.Addr { return netip.AddrFrom4([4]byte(b[12:])) }

// local reads an address of localUse. The length of the network's prefix is not known: the
// first form that fits counts, and an address without zeros at its end has the last one, 96 bits.
func local(b [16]byte) netip.Addr {
	for _, at := range localForms {
		if rest := b[at[3]+1:]; b[8] == 0 && !slices.ContainsFunc(rest, func(c byte) bool { return c != 0 }) {
			return netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]})
		}
	}
	return last(b)
}

// Clients returns the prefix that Client gives the addresses of p. A prefix that has more than
// the IPv4 addresses of one NAT64, or all of them, stays as it is: its addresses are found as they
// are written.
func Clients(p netip.Prefix) netip.Prefix {
	a := p.Addr()
	if a.Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	four := Client(a)
	switch {
	case a.Is4() || !four.Is4() || p.Bits() <= 96:
		return p
	case p.IsSingleIP():
		return netip.PrefixFrom(four, 32)
	case four == last(a.As16()):
		return netip.PrefixFrom(four, p.Bits()-96)
	}
	return p
}
