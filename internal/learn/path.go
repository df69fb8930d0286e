package learn

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Name says where a request was recorded, without its values: buy.har entry 41: POST /api/orders/*.
func (x *Exchange) Name() string {
	shown := x.shown
	if shown == "" {
		shown = x.pattern(nil)
	}
	return fmt.Sprintf("%s entry %d: %s %s", x.File, x.Entry, methodName(x.Method), shown)
}

// pattern writes the path with a * for each segment that may differ.
func (x *Exchange) pattern(hidden secrets) string {
	return "/" + strings.Join(x.template(hidden), "/")
}

// template returns the segments of the path, with * for what names a thing or a person.
func (x *Exchange) template(hidden secrets) []string {
	segments := x.segments()
	for i, s := range segments {
		if x.hasID(s) || hidden.hides(s) {
			segments[i] = "*"
		}
	}
	return segments
}

var (
	version    = regexp.MustCompile(`^(v[0-9]{1,3}|[0-9]{4}-[0-9]{2})$`)
	plainWords = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.~-]{0,47}$`)
	capitals   = regexp.MustCompile(`[A-Z0-9]{16}`) // of base32: one id of 26 letters in two hundred has no digit
)

// isVariable reports whether a segment is a value: a number, an id, or anything but words.
func isVariable(segment string) bool {
	if segment == "" || version.MatchString(segment) {
		return false
	}
	if !plainWords.MatchString(segment) || capitals.MatchString(segment) {
		return true
	}
	digits, letters := 0, 0
	for _, r := range segment {
		if unicode.IsDigit(r) {
			digits++
		} else if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters == 0 || digits >= 2 && len(segment) >= 5 || digits >= 1 && strings.ContainsAny(segment, "-_") || strings.HasPrefix(segment, ".")
}

// methodName is a method that may be written.
func methodName(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE":
		return method
	}
	return "?"
}

// FileName is a file's name that may be written into comments.
func FileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r)) {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), 60)]
}
