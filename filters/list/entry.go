package list

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stockgate/stockgate/internal/ipaddr"
)

// The kinds of entries. Entries of one kind are never found under another; otherwise a
// client that may choose its own phone number could pose as a listed buyer. An entry
// without a kind is Any: see [List.Denies] and [List.Admits] for what it matches.
const (
	Any     = "any"
	Buyer   = "buyer"
	Phone   = "phone"
	Email   = "email"
	Address = "address" // of a house
	Device  = "device"
	IP      = "ip"
)

const (
	// MaxEntries is how many entries a list may have.
	MaxEntries = 10_000_000
	// MaxValue is how many bytes an entry may have, without its kind.
	MaxValue = 512
)

// Entry is one entry of a list in its canonical form, the same for all spellings of it.
type Entry struct {
	// Kind is one of the kinds above.
	Kind string
	// Value is empty for an IP.
	Value string
	// Prefix is valid for an IP only: masked, and IPv4 where IPv6 carries it.
	Prefix netip.Prefix
}

// String writes an entry so that Parse reads the same one.
func (e Entry) String() string {
	if e.Kind == IP {
		return IP + ":" + e.Prefix.String()
	}
	return e.Kind + ":" + e.Value
}

// Normal brings the value of a kind into the form that attempts carry, such as
// "8613800138000" for "+86 138-0013-8000". It is not called for IP.
type Normal func(kind, value string) string

// Parse reads one entry:
//
//	192.0.2.7               an address
//	192.0.2.0/24            a prefix, whatever its host bits; 2001:db8::/32
//	phone:+86 138 0013 8000 a value of a kind: any, buyer, phone, email, address, device, ip
//	alice                   a value of Any, unless it reads as an address
//
// Space around the entry and after the colon is not part of it; everything else is
// compared byte by byte after normal has been applied. A value that begins with a kind
// and a colon, or that reads as an address and is not one, needs its kind in front:
// any:phone:1. Text that is nearly an address is an error, not a name; so is an address that
// more text follows, and a kind in another spelling, such as Phone:1.
func Parse(text string, normal Normal) (Entry, error) {
	e := Entry{Kind: Any, Value: strings.TrimSpace(text)}
	word, rest, qualified := strings.Cut(e.Value, ":")
	if qualified = qualified && known(word); qualified {
		e.Kind, e.Value = word, strings.TrimSpace(rest)
	}
	if err := check(e.Value); err != nil {
		return Entry{}, err
	}
	if !qualified {
		if err := checkName(e.Value); err != nil {
			return Entry{}, err
		}
	}
	if e.Kind == IP || !qualified && readsAsAddress(e.Value) {
		p, err := parsePrefix(e.Value)
		if err != nil {
			return Entry{}, err
		}
		return Entry{Kind: IP, Prefix: p}, nil
	}
	if normal != nil {
		value := e.Value
		e.Value = strings.TrimSpace(normal(e.Kind, value))
		if err := check(e.Value); err != nil {
			return Entry{}, nothingLeft(e.Kind, value)
		}
	}
	return e, nil
}

// nothingLeft is the error for a value whose normal form is empty.
func nothingLeft(kind, value string) error {
	if kind == Email || kind == Buyer {
		return fmt.Errorf("%s %q is no e-mail address", kind, value)
	}
	return fmt.Errorf("nothing is left of %s %q that could be compared", kind, value)
}

func known(kind string) bool { return kind == IP || textForm(kind) != 0 }

var (
	errEmpty   = errors.New("the entry is empty")
	errLong    = fmt.Errorf("the entry is longer than %d bytes", MaxValue)
	errNoText  = errors.New("the entry is not UTF-8, or holds a control character: is this a text file?")
	errZone    = errors.New("an address with a zone (%…) means another machine on each host: list it without")
	errAddress = errors.New("is not an address or prefix; write any:… or device:… in front if it is not meant to be one")
)

func check(value string) error {
	switch {
	case value == "":
		return errEmpty
	case len(value) > MaxValue:
		return errLong
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		return errNoText
	}
	return nil
}

// checkName returns what is wrong with a value without a kind that was probably meant as an
// address or a value of a kind: as a name it would match no attempt.
func checkName(s string) error {
	if at := strings.IndexAny(s, ":："); at > 0 {
		if kind := strings.ToLower(strings.TrimSpace(s[:at])); known(kind) {
			return fmt.Errorf("%q: a kind is in lower case and straight before its colon: write %s:…, or any:… in front of all of it if it is a name", s, kind)
		}
	}
	word := s
	if begin := strings.IndexFunc(word, inWord); begin > 0 {
		word = word[begin:]
	}
	if end := strings.IndexFunc(word, func(r rune) bool { return !inWord(r) }); end >= 0 {
		word = word[:end]
	}
	if len(word) < len(s) && readsAsAddress(word) {
		return fmt.Errorf("%q is not one address or prefix alone: a comment is a line of its own; write any:… in front if it is a name", s)
	}
	return nil
}

// inWord reports whether a character may be in an address, a number or a name without space.
func inWord(r rune) bool {
	return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' ||
		strings.ContainsRune(".:/-_%@+", r) || r >= 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// readsAsAddress reports whether a text was probably meant as an address.
func readsAsAddress(s string) bool {
	s, _, _ = strings.Cut(s, "%")
	dots, colons, slashes := 0, 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.':
			dots++
		case c == ':':
			colons++
		case c == '/':
			slashes++
		case c == '-', '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
		default:
			return false
		}
	}
	return dots >= 3 || colons >= 2 || slashes > 0 && dots+colons > 0
}

func parsePrefix(s string) (netip.Prefix, error) {
	if strings.Contains(s, "%") {
		return netip.Prefix{}, errZone
	}
	var p netip.Prefix
	if strings.Contains(s, "/") {
		var err error
		if p, err = netip.ParsePrefix(s); err != nil {
			return netip.Prefix{}, fmt.Errorf("%q %w", s, errAddress)
		}
	} else {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return netip.Prefix{}, fmt.Errorf("%q %w", s, errAddress)
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	return ipaddr.Clients(p).Masked(), nil
}
