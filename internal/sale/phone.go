package sale

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalisePhone is Normalise of a phone. home is where numbers without a country's code are of;
// nil: it is not known.
func normalisePhone(value string, home *country) string {
	digits, international := dial(withoutExtension(norm.NFKC.String(value)))
	national := strings.ReplaceAll(digits, trunkMark, "0")
	if home != nil {
		return home.number(national, international)
	}
	if !international && !strings.HasPrefix(national, "00") {
		return national
	}
	number := strings.TrimLeft(strings.ReplaceAll(digits, trunkMark, ""), "0")
	if number == "" {
		return ""
	}
	return "+" + number
}

// trunkMark is the 0 of a "(0)", among the digits of a number.
const trunkMark = "z"

// A number with at least vanityLetters letters behind its first digit, and fewer than wholeNumber
// digits, is a vanity number. Behind a whole number letters are a remark, such as "mobile".
const (
	vanityLetters = 3
	wholeNumber   = 8
)

// dial returns the digits of a number that are dialled, and whether a '+' stands before them.
func dial(text string) (digits string, international bool) {
	figures, letters := tally(text)
	vanity := letters >= vanityLetters && figures < wholeNumber
	out, bracket := make([]byte, 0, len(text)), -1
	for _, r := range text {
		switch digit := decimal(r); {
		case digit >= 0:
			out = append(out, '0'+byte(digit))
		case vanity && len(out) > 0 && isLetter(r):
			out = append(out, keypad[(r|0x20)-'a'])
		case r == '+' && len(out) == 0:
			international = true
		case r == '(':
			bracket = len(out)
		case r == ')' && bracket >= 0 && string(out[bracket:]) == "0":
			out[bracket] = trunkMark[0]
		}
	}
	return string(out), international
}

// keypad has the digits on whose keys the letters a to z are (ITU-T E.161).
const keypad = "22233344455566677778889999"

func isLetter(r rune) bool { return 'a' <= r|0x20 && r|0x20 <= 'z' }

// tally counts the digits of a text, and the letters behind the first of them.
func tally(text string) (digits, letters int) {
	for _, r := range text {
		switch {
		case decimal(r) >= 0:
			digits++
		case digits > 0 && isLetter(r):
			letters++
		}
	}
	return digits, letters
}

// Words before an extension, and signs, which are less sure: a longer number may stand behind them
// that is no extension.
var (
	extensionWords = []string{"extension", "extn", "ext", "xtn", "xx", "int", "anexo", "poste", "durchwahl", "доб"}
	extensionSigns = []string{"x", "#", "~", ",,"}
)

// The longest extension behind a word and behind a sign, and the shortest number that has one.
const (
	longExtension  = 20
	shortExtension = 9
	extended       = 6
)

// withoutExtension returns a number without what is dialled within a company: "x12", "ext. 12",
// "#12", or ";ext=12" (RFC 3966), with all other parameters of a tel: URI.
func withoutExtension(text string) string {
	text = withoutParameters(text)
	rest := strings.TrimRight(text, " #)].\t")
	head := strings.TrimRightFunc(rest, func(r rune) bool { return decimal(r) >= 0 })
	length := utf8.RuneCountInString(rest[len(head):])
	if length == 0 || length > longExtension {
		return text
	}
	number := beforeMarker(strings.TrimRight(head, " .:=\t"), length)
	if digits, letters := tally(number); digits+letters < extended {
		return text
	}
	return number
}

// withoutParameters cuts ";ext=12" off.
func withoutParameters(text string) string {
	at := strings.IndexByte(text, ';')
	if at < 0 {
		return text
	}
	if name, _, has := strings.Cut(strings.TrimSpace(text[at+1:]), "="); !has || name == "" || strings.ContainsFunc(name, notLetter) {
		return text
	}
	return text[:at]
}

func notLetter(r rune) bool { return !isLetter(r) && r != '-' }

// beforeMarker returns what stands before the marker of an extension of that length at the end of a text;
// empty: there is none.
func beforeMarker(text string, length int) string {
	for _, word := range extensionWords {
		if number, has := cutSuffixFold(text, word); has && !endsInLetter(number) {
			return number
		}
	}
	for _, sign := range extensionSigns {
		if number, has := cutSuffixFold(text, sign); has && length <= shortExtension && !endsInLetter(number) && !strings.Contains(number, sign) {
			return number
		}
	}
	return ""
}

func cutSuffixFold(text, suffix string) (before string, found bool) {
	at := len(text) - len(suffix)
	if at < 0 || !strings.EqualFold(text[at:], suffix) {
		return text, false
	}
	return text[:at], true
}

func endsInLetter(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return unicode.IsLetter(r)
}

// decimal is the value of a decimal digit of any script, else -1. Unicode keeps
// the ten digits of a script together, and table ranges begin with a zero.
func decimal(r rune) int {
	if r <= unicode.MaxASCII {
		if '0' <= r && r <= '9' {
			return int(r - '0')
		}
		return -1
	}
	for _, rng := range unicode.Nd.R16 {
		if rune(rng.Lo) <= r && r <= rune(rng.Hi) {
			return int(r-rune(rng.Lo)) % 10
		}
	}
	for _, rng := range unicode.Nd.R32 {
		if rune(rng.Lo) <= r && r <= rune(rng.Hi) {
			return int(r-rune(rng.Lo)) % 10
		}
	}
	return -1
}
