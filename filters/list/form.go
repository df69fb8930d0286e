package list

import (
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// form is the shape of an entry: a kind of text, or a length of prefix. A lookup
// tries only the forms that occur in the list: an address is looked up once for each
// prefix length in the list, and not at all if there is none.
//
// 0 is no form.
type form uint8

const (
	formAny form = 1 + iota
	formBuyer
	formPhone
	formEmail
	formAddress
	formDevice
	formIPv4                       // a prefix of IPv4, plus its bits
	formIPv6 form = formIPv4 + 33  // a prefix of IPv6, plus its bits
	formEnd  form = formIPv6 + 129 // one after the last
	words         = formEnd/64 + 1 // of 64 forms
)

// textForm returns 0 for an unknown kind of text.
func textForm(kind string) form {
	switch kind { // a map would be hashed for each lookup
	case Any:
		return formAny
	case Buyer:
		return formBuyer
	case Phone:
		return formPhone
	case Email:
		return formEmail
	case Address:
		return formAddress
	case Device:
		return formDevice
	}
	return 0
}

func prefixForm(p netip.Prefix) form {
	if p.Addr().Is4() {
		return formIPv4 + form(p.Bits())
	}
	return formIPv6 + form(p.Bits())
}

func (e Entry) form() form {
	if e.Kind == IP {
		return prefixForm(e.Prefix)
	}
	return textForm(e.Kind)
}

// kind is the kind of a form of text.
func (f form) kind() string {
	switch f {
	case formAny:
		return Any
	case formBuyer:
		return Buyer
	case formPhone:
		return Phone
	case formEmail:
		return Email
	case formAddress:
		return Address
	case formDevice:
		return Device
	}
	return IP
}

// parseForm reads the name of a form: a kind of text, or ip4/24, ip6/64. It
// returns 0 for one that is not known here.
func parseForm(name string) form {
	family, length, isPrefix := strings.Cut(name, "/")
	if !isPrefix {
		return textForm(name)
	}
	n, err := strconv.ParseUint(length, 10, 8)
	switch {
	case err == nil && family == "ip4" && n <= 32:
		return formIPv4 + form(n)
	case err == nil && family == "ip6" && n <= 128:
		return formIPv6 + form(n)
	}
	return 0
}

// formSet is a set of forms.
type formSet [words]uint64

func (s *formSet) add(f form)      { s[f/64] |= 1 << (f % 64) }
func (s *formSet) has(f form) bool { return s[f/64]&(1<<(f%64)) != 0 }

// longest returns the longest prefix that contains an address, of those whose
// length is in the set and at most so many bits; false: there is none.
func (s *formSet) longest(a netip.Addr, most int) (netip.Prefix, bool) {
	first := formIPv6
	if a.Is4() {
		first = formIPv4
	}
	for f := int(first) + most; f >= int(first); {
		word := s[f/64] << (63 - f%64)
		if word == 0 {
			f -= f%64 + 1
			continue
		}
		f -= bits.LeadingZeros64(word)
		if f < int(first) {
			break
		}
		p, err := a.Prefix(f - int(first))
		return p, err == nil
	}
	return netip.Prefix{}, false
}
