package learn

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// secrets are the values that must not be written: credentials and personal data.
type secrets map[string]bool

// shortestSession is the length from which the value of any cookie counts as a credential. A shorter one may be
// an item that was looked at.
const shortestSession = 12

// shortest value that is looked for in what is written: shorter ones are parts of words.
const shortestSecret = 4

// personal are parts of names of fields; the short ones are whole words of a name.
var (
	personal = []string{
		"password", "passwd", "secret", "token", "csrf", "xsrf", "nonce", "apikey", "session", "cookie", "email", "phone", "mobile", "firstname", "lastname", "fullname", "surname",
		"givenname", "familyname", "username", "nickname", "street", "address", "postal", "postcode", "birth", "company", "taxid", "signature", "recipient", "receiver", "contact", "login", "cardnumber",
	}
	personalWords = []string{"pwd", "pass", "auth", "otp", "pin", "cvc", "cvv", "card", "iban", "mail", "tel", "city", "zip", "dob", "vat", "ssn", "user", "name", "key"}
)

// isPersonal reports whether a field of this name may have a credential or what is about a person.
func isPersonal(name string) bool {
	words := wordsOf(name)
	if len(words) > 0 && slices.Contains(personalWords, words[len(words)-1]) || len(words) > 1 && slices.Contains(personalWords, words[0]) {
		return true
	}
	name = folded(name)
	for _, word := range personal {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// wordsOf splits a name: cardNumber and card_number have the words card and number.
func wordsOf(name string) (words []string) {
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return !unicode.IsLetter(r) }) {
		from := 0
		for i, r := range part {
			if i > from && unicode.IsUpper(r) && !unicode.IsUpper(rune(part[i-1])) {
				words, from = append(words, strings.ToLower(part[from:i])), i
			}
		}
		words = append(words, strings.ToLower(part[from:]))
	}
	return words
}

var (
	emailLike = regexp.MustCompile(`[^\s@/"'<>,;=:]+@[^\s@/"'<>,;=:]+\.[A-Za-z]{2,}`)
	phoneLike = regexp.MustCompile(`^\+?[0-9][0-9 ()./-]{7,}$`)
	wordLike  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	nameLike  = regexp.MustCompile(`^[A-Za-z_$@][A-Za-z0-9_$@-]{0,63}$`)
)

// secretsOf collects from recordings what must not be written.
func secretsOf(recordings []*Recording) secrets {
	s := make(secrets)
	for _, rec := range recordings {
		for _, x := range rec.Exchanges {
			s.addExchange(x)
		}
	}
	return s
}

func (s secrets) addExchange(x *Exchange) {
	for name, values := range x.Header {
		if n := folded(name); strings.Contains(n, "auth") || strings.Contains(n, "token") || strings.Contains(n, "key") || strings.Contains(n, "csrf") || strings.Contains(n, "session") {
			for _, v := range values {
				s.add(v)
				for part := range strings.FieldsSeq(v) {
					s.add(part)
				}
			}
		}
	}
	for name, value := range x.cookies() {
		if len(value) >= shortestSession || isPersonal(name) || namesSession(name) {
			s.add(value)
		}
	}
	if user := x.URL.User; user != nil {
		s.add(user.Username())
		password, _ := user.Password()
		s.add(password)
	}
	for name, values := range x.URL.Query() {
		s.addTree(map[string]any{name: values[0]})
	}
	if _, fields := x.body(); fields != nil {
		s.addTree(fields)
	}
	if v := x.answerTree(); v != nil {
		s.addTree(v)
	}
	for name, claim := range bearerClaims(x) {
		if text, ok := scalar(claim); ok && name != "iss" && name != "aud" {
			s.add(text)
		}
	}
	for _, found := range emailLike.FindAllString(string(x.Answer), 100) {
		s.add(found)
	}
}

// addTree adds the values of personal names, of what stands below such names, and those that look
// like addresses of persons.
func (s secrets) addTree(v any) {
	for _, l := range leavesOf(v) {
		hidden := emailLike.MatchString(l.text) || phoneLike.MatchString(l.text) && strings.HasPrefix(l.text, "+")
		for _, part := range l.path {
			hidden = hidden || isPersonal(part) && !l.namesProduct()
		}
		if hidden && !isPlain(l.text) {
			s.add(l.text)
		}
	}
}

// namesProduct reports whether a value is the name of a product, which may be its SKU too.
func (l leaf) namesProduct() bool {
	n := len(l.path)
	if n > 2 && isNumber(l.path[n-2]) {
		n--
	}
	return n > 1 && folded(l.name()) == "name" && slices.Contains([]string{"product", "products", "variant", "variants", "productvariant", "productvariants"}, folded(l.path[n-2]))
}

// isPlain reports whether a value is so common that it tells nothing: a truth value, a short number.
func isPlain(text string) bool {
	return len(text) < shortestSecret || text == "true" || text == "false" || text == "null"
}

func (s secrets) add(value string) {
	if value = strings.TrimSpace(value); len(value) >= shortestSecret && value != "Bearer" && value != "Basic" {
		s[value] = true
	}
}

// hides reports whether a value must not be written.
func (s secrets) hides(value string) bool {
	return s[value] || emailLike.MatchString(value) || phoneLike.MatchString(value) && strings.HasPrefix(value, "+")
}

// word returns a value that may be written, such as a code or a status: short, without spaces and not
// secret.
func (s secrets) word(value string) (string, bool) {
	return value, wordLike.MatchString(value) && !s.hides(value) && !looksRandom(value)
}

// name reports whether the name of a field may be written.
func (s secrets) name(name string) bool {
	return nameLike.MatchString(name) && !s[name] && !looksRandom(name)
}

// path reports whether each name of a dotted path may be written.
func (s secrets) path(path string) bool {
	for part := range strings.SplitSeq(path, ".") {
		if !s.name(part) && !isIndex(part) {
			return false
		}
	}
	return true
}

func isIndex(s string) bool {
	return len(s) > 0 && len(s) < 3 && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
}

// looksRandom reports whether a text looks like an id or a key: long, with digits among letters.
func looksRandom(text string) bool {
	digits := strings.Count(strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return '0'
		}
		return r
	}, text), "0")
	return len(text) >= 16 && digits >= 3 || len(text) > 40
}

// leaked returns a secret that a text has as a word of its own; empty: none.
func (s secrets) leaked(text string) string {
	for secret := range s {
		if len(secret) >= 6 && strings.Contains(text, secret) && !isVocabulary(secret) {
			return secret
		}
	}
	return ""
}

// isVocabulary reports whether a value is one word, which the text may have for another reason.
func isVocabulary(value string) bool {
	return strings.IndexFunc(value, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}
