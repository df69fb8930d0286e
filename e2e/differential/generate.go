package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// maker makes one request.
type maker struct {
	*rand.Rand
	q    *request
	user string
	sku  string
	n    string // the quantity
}

// generate makes request i of a seed: a valid order of one route, in which some things
// are changed. The same seed and number give the same request.
func generate(seed, i uint64) (*request, *rand.Rand) {
	rng := rand.New(rand.NewPCG(seed, i))
	m := &maker{Rand: rng, q: &request{route: &routes[rng.IntN(len(routes))], method: "POST"}}
	r := m.q.route
	m.user, m.sku, m.n = m.userName(i), skus[m.IntN(len(skus))], strconv.Itoa(1+m.IntN(9))
	if m.often() {
		m.sku = skus[m.IntN(6)] // the plain ones go everywhere
	}
	if r.other && m.IntN(8) > 0 {
		m.sku = m.number()
	}
	m.q.target = r.path
	switch r.name {
	case "json", "other", "lines":
		m.jsonBody()
	case "form", "otherform":
		m.formBody()
	case "items", "keys", "lists":
		m.arrayBody()
	case "query", "ignored":
		m.query()
		m.strangeBody()
	case "param":
		if m.half() {
			m.query()
			m.strangeBody()
		} else {
			m.formBody()
		}
	case "cookie":
		m.cookies()
	case "header":
		m.orderHeaders()
	case "path":
		m.segments()
	}
	if r.other || r.name == "path" {
		m.header("X-User-Id", m.user)
	}
	m.around()
	return m.q, rng
}

// userName is a buyer that no other request has, mostly: two attempts of one buyer at a
// time are refused.
func (m *maker) userName(i uint64) string {
	user := fmt.Sprintf("u%d", i)
	if m.rare() {
		user += pick(m, []string{"é", "漢", "ı", " x", "+", "%41", "%2541", "=", ";", ",", `"`, "\\", "@x.example", "'", "\u00a0", "\u2028", "\ufeff", "👤", "/", "&a=b", "#"})
	}
	return user
}

// around changes what belongs to no source.
func (m *maker) around() {
	q := m.q
	if m.rare() {
		q.method = pick(m, []string{"PUT", "PATCH", "GET", "DELETE"})
	}
	if m.rare() {
		q.frame = frame(m.IntN(int(frames)))
	}
	if m.rare() {
		m.header(pick(m, []string{"X-HTTP-Method-Override", "X-Http-Method", "X_HTTP_METHOD_OVERRIDE", "X-Method-Override", "X-HTTP-Method-Override"}), pick(m, []string{"DELETE", "PUT", "GET"}))
	}
	if m.rare() {
		m.header(pick(m, []string{"X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Prefix", "X-Accel-Redirect", "Stockgate-Token", "Stockgate_Token", "stockgate.token"}), pick(m, []string{"/json", "forged"}))
	}
	if m.rare() {
		m.header(pick(m, []string{"Accept-Charset", "Content-Language", "Content-Location", "Range", "Expect", "Connection", "Keep-Alive", "TE"}),
			pick(m, []string{"utf-16", "bytes=0-1", "100-continue", "keep-alive", "Stockgate-Token", "trailers"}))
	}
	if m.seldom() { // any byte of the body
		if n := len(q.body); n > 0 {
			q.body[m.IntN(n)] = byte(m.IntN(256))
		}
	}
	if m.seldom() {
		if n := len(q.body); n > 0 {
			q.body = q.body[:m.IntN(n)]
		}
	}
}

func (m *maker) header(name, value string) { m.q.headers = append(m.q.headers, [2]string{name, value}) }

func (m *maker) half() bool  { return m.IntN(2) == 0 }
func (m *maker) often() bool { return m.IntN(3) > 0 }
func (m *maker) some() bool  { return m.IntN(4) == 0 }
func (m *maker) rare() bool  { return m.IntN(16) == 0 }

// seldom is rarely rare.
func (m *maker) seldom() bool {
	if !m.rare() {
		return false
	}
	return m.rare()
}

func pick[T any](m *maker, from []T) T { return from[m.IntN(len(from))] }

// number writes a number as some language reads it.
func (m *maker) number() string {
	n, _ := strconv.ParseUint(pick(m, numbers), 10, 64)
	if m.rare() {
		n += uint64(m.IntN(3)) - 1
	}
	s := strconv.FormatUint(n, 10)
	switch m.IntN(14) {
	case 0:
		s = strings.Repeat("0", 1+m.IntN(3)) + s
	case 1:
		s = fmt.Sprintf("0x%x", n)
	case 2:
		s = fmt.Sprintf("0o%o", n)
	case 3:
		s = fmt.Sprintf("0b%b", n)
	case 4:
		s = fmt.Sprintf("0%o", n)
	case 5:
		s = scientific(s, m.IntN(len(s)+1))
	case 6:
		s = "." + s + "e" + strconv.Itoa(len(s))
	case 7:
		s += "." + strings.Repeat(pick(m, []string{"0", "9", "4", "5"}), m.IntN(20))
	case 8:
		s = strconv.FormatUint(n+uint64(m.IntN(5))<<32, 10)
	case 9:
		s = fmt.Sprintf("%x", n)
	case 10:
		if at := 1 + m.IntN(len(s)); at < len(s) {
			s = s[:at] + pick(m, []string{"_", ",", ".", "'", "e", "E0", "x", "-"}) + s[at:]
		}
	case 11:
		s = s + strings.Repeat("0", 1+m.IntN(4)) + fmt.Sprintf("e-%d", 1+m.IntN(4))
	case 12:
		s = strconv.FormatUint(m.Uint64N(1<<53), 10)
	}
	if m.some() {
		s = pick(m, []string{"+", "-", "--", "+-", "$", "#", "'", "(", "=", "\"", "~", "!", ".", "e", "_", "0x", "0X", "&H"}) + s
	}
	if m.some() {
		s += pick(m, []string{"abc", "e", "e0", "E+0", "e-0", "x", "L", "l", "n", "f", "d", "D", ".", "..", ".0", "_", "__0", "%", "zz", "e0e0", "p0", ";", "'--", "i", "r", "ul"})
	}
	if m.rare() {
		s = strings.ToUpper(s)
	}
	if len(s) > 120 {
		s = s[:120]
	}
	return s
}

func scientific(digits string, at int) string {
	exponent := len(digits) - at
	mantissa := digits[:at]
	if at < len(digits) {
		mantissa += "." + digits[at:]
	}
	return mantissa + "e" + strconv.Itoa(exponent)
}
