package sale

import (
	"cmp"
	"net/netip"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/stockgate/stockgate/internal/ipaddr"
)

// NormaliseIdentity is Normalise of the rules that no configuration changes.
func NormaliseIdentity(kind, value string) string { return IdentityRules{}.Normalise(kind, value) }

// Normalise brings an identity into the form in which it is counted and listed,
// so that another spelling does not make another person. An empty result means that the
// attempt does not have this identity: nothing usable was given. Normalising twice
// changes nothing.
//
//   - phone: its digits. A '+' before the first digit, or 00 as the first two,
//     begins an international number and is kept as one '+'; zeros after it are
//     dropped, because no country's code begins with one, and so is the "(0)" that
//     some write between country and area. Digits of all scripts count alike. An
//     extension is dropped, letters of a vanity number are the digits of their keys, and
//     all other characters are dropped. Without a country of the rules none is guessed:
//     13800138000 and +86 138 0013 8000 are two phones, so let the shop send one form.
//   - email: in lower case, the domain in ASCII. Empty unless it is an address.
//   - address: compared as Unicode compares texts without regard to case and
//     compatibility (Unicode Standard, D146: full-width forms and ligatures are
//     what they stand for, ß is ss). Invisible characters are dropped. White space,
//     punctuation and symbols only separate words: a run of them is one space, none
//     at either end, and none beside a script that is written without spaces, such
//     as Chinese. Accents and abbreviations make a difference: Str. is not Straße.
//   - ip: an IPv4 address as it is, also where IPv6 carries it: mapped, or translated
//     by a NAT64; another IPv6 address as the first address of its /64, which is what
//     one customer gets. A zone and a port are dropped.
//   - buyer, and any, which is a list entry without a kind: byte for byte, unless the rules
//     say that buyers are e-mail addresses. Then a buyer with an @ is one, and an entry that
//     is none stays as it is.
//   - device and all else: byte for byte.
func (r IdentityRules) Normalise(kind, value string) string {
	switch kind {
	case "phone":
		return normalisePhone(value, r.home)
	case "email":
		return r.normaliseEmail(value)
	case "address":
		return normaliseAddress(value)
	case "ip":
		return normaliseIP(value)
	case "buyer":
		if r.IsEmail(value) {
			return r.normaliseEmail(value)
		}
	case "any":
		if r.IsEmail(value) {
			return cmp.Or(r.normaliseEmail(value), value)
		}
	}
	return value
}

var fold = cases.Fold() // without state: goroutines may share it

func normaliseAddress(value string) string {
	visible := strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(value, ""))
	folded := fold.String(norm.NFKC.String(fold.String(norm.NFD.String(visible))))

	spaced := separate(norm.NFKC.String(folded), func(_, next rune) bool { return !unicode.IsMark(next) })
	// a mark has come to its letter, and may have changed places with other marks: only now it is
	// known what stands beside a space
	return separate(norm.NFKC.String(spaced), func(last, next rune) bool { return !unspaced(last) && !unspaced(next) })
}

// separate drops invisible characters, and makes one space, or nothing, of each run of others
// between letters, marks and numbers.
func separate(text string, space func(last, next rune) bool) string {
	var b strings.Builder
	b.Grow(len(text))
	var last rune // written; 0: none
	apart := false
	for _, r := range text {
		switch {
		case invisible(r):
		case !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsNumber(r):
			apart = true
		default:
			if apart && last != 0 && space(last, r) {
				b.WriteByte(' ')
			}
			b.WriteRune(r)
			last, apart = r, false
		}
	}
	return b.String()
}

// invisible reports characters that a reader does not see: joiners, soft hyphens,
// directions, variation selectors, fillers.
func invisible(r rune) bool {
	return r > unicode.MaxASCII && unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// unspaced: a character of a script whose words are not separated by spaces.
func unspaced(r rune) bool {
	switch {
	case r < 0x0e00:
		return false
	case 0x2e80 <= r && r <= 0x312f: // CJK radicals to Bopomofo, with the marks between
		return true
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

func normaliseIP(value string) string {
	value = strings.TrimSpace(value)
	addr, err := netip.ParseAddr(value)
	if err != nil {
		withPort, err := netip.ParseAddrPort(value)
		if err != nil {
			return ""
		}
		addr = withPort.Addr()
	}
	if addr = ipaddr.Client(addr); addr.Is4() {
		return addr.String()
	}
	network, err := addr.Prefix(64)
	if err != nil {
		return ""
	}
	return network.Addr().String()
}
