package main

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/token"
)

// answer is what a shop says of a request that it got.
type answer struct {
	Method   string    `json:"method"`
	Path     string    `json:"path"`
	Token    string    `json:"token"`
	Readings []reading `json:"readings"`
}

// reading is what a program finds in one of the places where its framework puts
// parameters. A value is s: with a string, n: with a number, or x: with the name of
// another type; nil: it is not there.
type reading struct {
	How      string       `json:"how"`
	From     string       `json:"from"` // query, body, form, merged, cookie, header or path
	SKU      *string      `json:"sku"`
	Quantity *string      `json:"quantity"`
	User     *string      `json:"user"`
	Lines    [][2]*string `json:"lines"`
	Casts    []string     `json:"casts"` // what a program makes of the SKU as a number
}

// compare says where a shop has read another order than the token says; claims is nil if
// the request came without one. read: the shop found an order at all.
func compare(r *route, q *request, a *answer, claims *token.Claims) (wrong string, read bool) {
	if a.Method != q.method {
		return fmt.Sprintf("it routed the method %s", a.Method), true
	}
	if path, _, _ := strings.Cut(q.target, "?"); a.Path != path && unescape(a.Path) != unescape(path) {
		return fmt.Sprintf("it routed the path %q", a.Path), true
	}
	for i := range a.Readings {
		g := &a.Readings[i]
		if slices.Contains(r.order, g.From) {
			what, found := "", g.SKU != nil
			switch {
			case claims == nil && r.other:
				what = listed(g)
			case claims == nil && (g.SKU != nil || len(g.Lines) > 0):
				what = "it found an order, and no token"
			case claims == nil:
			case r.lines:
				what, found = differentLines(g, claims), len(g.Lines) > 0
			default:
				what = differentLine(r, g, claims)
			}
			if what != "" {
				return g.How + ": " + what, true
			}
			read = read || found
		}
		if claims != nil && slices.Contains(r.user, g.From) && g.User != nil && !sameUser(g, claims.Subject) {
			return fmt.Sprintf("%s: the buyer is %s", g.How, *g.User), true
		}
	}
	return "", read
}

// differentLine compares the one line of a reading with the token. A reading without a
// SKU sells nothing.
func differentLine(r *route, g *reading, claims *token.Claims) string {
	if g.SKU == nil {
		return ""
	}
	if len(claims.Lines) != 1 {
		return fmt.Sprintf("the token has %d lines", len(claims.Lines))
	}
	line := claims.Lines[0]
	if !sameText(g, *g.SKU, line.SKU) {
		return "the SKU is " + *g.SKU
	}
	if r.single {
		return ""
	}
	if n, ok := quantity(g.Quantity); !ok || n != line.Quantity {
		return "the quantity is " + shown(g.Quantity)
	}
	return ""
}

func differentLines(g *reading, claims *token.Claims) string {
	if len(g.Lines) == 0 {
		return ""
	}
	got, want := make(map[string]int64), make(map[string]int64)
	for _, l := range g.Lines {
		if isNone(l[1]) {
			continue
		}
		n, ok := quantity(l[1])
		if l[0] == nil || !ok {
			return fmt.Sprintf("a line is %s of %s", shown(l[1]), shown(l[0]))
		}
		got[plainText(*l[0])] += n
	}
	for _, l := range claims.Lines {
		want[l.SKU] += l.Quantity
	}
	if !maps.Equal(got, want) {
		return fmt.Sprintf("the lines are %v", got)
	}
	return ""
}

// isNone reports whether a line has the quantity 0 or an empty one, which is no line.
func isNone(quantity *string) bool {
	return quantity != nil && (plainText(*quantity) == "" || plainText(*quantity) == "0")
}

// listed says which listed item a program could find in a request that passed without a
// token.
func listed(g *reading) string {
	if g.SKU == nil {
		return ""
	}
	for _, sku := range skus {
		if strings.EqualFold(text(*g.SKU), sku) {
			return "the SKU is the listed " + sku
		}
	}
	for _, cast := range g.Casts {
		f, err := strconv.ParseFloat(cast, 64)
		for _, number := range numbers {
			if n, _ := strconv.ParseFloat(number, 64); err == nil && f == n {
				return "a cast of the SKU " + *g.SKU + " gives the listed " + number
			}
		}
	}
	return ""
}

// sameText compares a value with the token's. Servers hand on the bytes of a header as
// UTF-8 or as Latin-1, and a cookie encoded or decoded: one reading belongs to one text
// of the token either way, so these count as the same.
func sameText(g *reading, value, want string) bool {
	got := text(value)
	if got == want {
		return true
	}
	switch g.From {
	case "header":
		return latin1(got) == want
	case "cookie":
		got = latin1(got)
		return got == want || unescape(got) == want || strings.ReplaceAll(got, " ", "+") == want || unescape(strings.ReplaceAll(got, " ", "+")) == want
	}
	return strings.HasPrefix(value, "n:") && sameNumber(got, want)
}

func sameUser(g *reading, want string) bool { return sameText(g, *g.User, want) }

// sameNumber compares numbers as they are printed: 7, 7.0 and 9.007199254740991e+15.
func sameNumber(got, want string) bool {
	if strings.Trim(want, "0123456789") != "" || want == "" {
		return false
	}
	a, err := strconv.ParseFloat(got, 64)
	b, _ := strconv.ParseFloat(want, 64)
	return err == nil && a == b
}

// quantity is how many units a program sells: one where nothing is said.
func quantity(value *string) (int64, bool) {
	if value == nil {
		return 1, true
	}
	kind, digits := (*value)[0], text(*value)
	if kind == 'x' {
		return 0, false
	}
	if kind == 'n' {
		f, err := strconv.ParseFloat(digits, 64)
		return int64(f), err == nil && f == float64(int64(f))
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

// text is a value without its kind; a value that is no scalar is no text of any token.
func text(value string) string {
	if len(value) < 2 || value[0] == 'x' {
		return "\x00" + value
	}
	return value[2:]
}

// plainText is text with numbers in digits: 20002001 of 2.0002001e+07.
func plainText(value string) string {
	s := text(value)
	if f, err := strconv.ParseFloat(s, 64); err == nil && strings.HasPrefix(value, "n:") && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return s
}

func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// latin1 gives back the bytes of a header that was decoded as Latin-1.
func latin1(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return s
		}
		b = append(b, byte(r))
	}
	return string(b)
}

func shown(value *string) string {
	if value == nil {
		return "absent"
	}
	return *value
}
