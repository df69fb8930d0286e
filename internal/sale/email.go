package sale

import (
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// The bounds of an e-mail address and of its part before the @ (RFC 5321, 4.5.3.1).
const (
	maxEmail     = 254
	maxEmailUser = 64
)

// IsEmail reports whether a buyer is an e-mail address by the rules, or was meant as one.
func (r IdentityRules) IsEmail(buyer string) bool {
	return r.buyerEmail && strings.ContainsAny(buyer, "@＠﹫")
}

// normaliseEmail returns the address in lower case, with its domain in ASCII (RFC 5891); empty: it is none.
// Providers of mail read the part before the @ without regard to case, though RFC 5321 lets them do otherwise.
// Forms that hardly any shop accepts are no addresses here: with quotes around more than a plain name, with
// a comment, with a display name, or with an IP in the place of the domain.
func (r IdentityRules) normaliseEmail(value string) string {
	text := norm.NFKC.String(strings.TrimSpace(value))
	if lower := strings.ToLower(text); lower != text {
		text = norm.NFKC.String(lower)
	}
	at := strings.LastIndexByte(text, '@')
	if at < 1 {
		return ""
	}
	user, domain := unquote(text[:at]), asciiDomain(text[at+1:])
	if plus := strings.IndexByte(user, '+'); plus > 0 && r.ignoreTags {
		user = user[:plus]
	}
	if domain == "" || !isEmailUser(user) || len(user)+1+len(domain) > maxEmail {
		return ""
	}
	if user == text[:at] && domain == text[at+1:] {
		return text
	}
	return user + "@" + domain
}

// unquote takes quotes off that change nothing.
func unquote(user string) string {
	if len(user) > 2 && user[0] == '"' && user[len(user)-1] == '"' {
		return user[1 : len(user)-1]
	}
	return user
}

func isEmailUser(user string) bool {
	return user != "" && len(user) <= maxEmailUser && !strings.ContainsFunc(user, func(r rune) bool {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return false
		case r <= unicode.MaxASCII:
			return !strings.ContainsRune("!#$%&'*+-/=?^_`{|}~.", r)
		}
		return r == unicode.ReplacementChar || invisible(r) || !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.S)
	})
}

// asciiDomain returns a domain as DNS has it; empty: it is none.
func asciiDomain(domain string) string {
	if !isASCII(domain) || strings.Contains(domain, "xn--") {
		var err error
		if domain, err = idna.Lookup.ToASCII(domain); err != nil {
			return ""
		}
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.ContainsFunc(label, notInLabel) {
			return ""
		}
	}
	return domain
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}

func notInLabel(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
}
