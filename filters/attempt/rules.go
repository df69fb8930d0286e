package attempt

import (
	"strings"

	"github.com/stockgate/stockgate/internal/sale"
)

// fault is why a request is malformed: which input, and what is wrong with it.
// Both are our words or the configuration's, never the client's. The zero fault is
// none.
type fault struct {
	input string // "json.sku", "the body"
	what  string // "the name appears twice"
}

func (f fault) bad() bool { return f.what != "" }

// refusal is the answer that a fault leads to.
func (f fault) refusal() *sale.Refusal {
	return &sale.Refusal{Reason: sale.Malformed, Detail: f.input + ": " + f.what}
}

func malformed(input, what string) *sale.Refusal { return fault{input, what}.refusal() }

// MaxIdentity is how many bytes an identity may have. Addresses are long, and
// only their hash is ever stored.
const MaxIdentity = 512

// checkItemName checks a SKU or a region: up to 128 printable ASCII characters
// without space. It says what is wrong; empty: nothing.
func checkItemName(s string) string {
	if s == "" {
		return "it is missing"
	}
	if len(s) > sale.MaxName {
		return "it is longer than 128 characters"
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return "it is not printable ASCII without space"
		}
	}
	return ""
}

// checkBuyer checks a buyer, whom the shop must find unchanged in the token.
func checkBuyer(s string) string {
	switch {
	case s == "":
		return "it is missing"
	case len(s) > sale.MaxName:
		return "it is longer than 128 bytes"
	case !plain(s):
		return "it is not UTF-8 or holds a control character"
	case strings.TrimSpace(s) != s:
		return "there is space around it"
	}
	return ""
}

// emailWhat is what is wrong with an identity that is read as an e-mail address and is none: it must not
// count as a person of its own.
const emailWhat = "it is no e-mail address"

// checkIdentity checks an identity in its normal form.
func checkIdentity(s string) string {
	switch {
	case len(s) > MaxIdentity:
		return "it is longer than 512 bytes"
	case !plain(s):
		return "it is not UTF-8 or holds a control character"
	}
	return ""
}

// oneLine makes white space alike: an address may have several lines.
func oneLine(s string) string {
	if !strings.ContainsAny(s, " \t\r\n\v\f\u0085\u00a0\u3000") {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

// checkSale checks a sale's id: [a-z0-9][a-z0-9._-]{0,63}.
func checkSale(s string) string {
	const what = "a sale's id is up to 64 of a-z, 0-9, dot, hyphen and underscore, and begins with a letter or digit"
	if s == "" || len(s) > sale.MaxID {
		return what
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return what
		}
	}
	return ""
}

const quantityWhat = "it is not a whole number from 1 to 99999, in digits alone"

// checkQuantity checks a configured quantity.
func checkQuantity(s string) string {
	n, ok := parseQuantity(s)
	if !ok {
		return quantityWhat
	}
	if n > sale.MaxQuantity {
		return "it is above 10000"
	}
	return ""
}

// parseQuantity reads [1-9][0-9]{0,4} and nothing else: parsers disagree on what "+1",
// "01", "1.0", "1e1" and " 1" mean.
func parseQuantity(s string) (int64, bool) {
	if len(s) < 1 || len(s) > 5 || s[0] == '0' {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}
