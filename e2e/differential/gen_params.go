package main

import (
	"fmt"
	"net/url"
	"strings"
)

var formTypes = []string{
	"application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=utf-8", "application/x-www-form-urlencoded;charset=UTF-8",
	"Application/X-WWW-Form-Urlencoded", "application/x-www-form-urlencoded; charset=iso-8859-1", "application/x-www-form-urlencoded; charset=utf-16le",
	"application/x-www-form-urlencoded;", "application/x-www-form-urlencoded, text/plain", "x-www-form-urlencoded", "application/x-www-form-urlencoded; boundary=b",
	"text/plain", "application/json", "multipart/form-data; boundary=b", "application/x-www-form-urlencoded; charset=\"utf-8\"", "application/x-www-form-urlencoded; charset=ibm037",
	"multipart/x-www-form-urlencoded", "application/x-url-encoded", " application/x-www-form-urlencoded",
}

func (m *maker) formBody() {
	m.q.body = []byte(m.pairs())
	kind := formTypes[0]
	if m.some() {
		kind = pick(m, formTypes)
	}
	if !m.rare() {
		m.header("Content-Type", kind)
	}
	if m.rare() {
		m.q.target += "?" + m.oddPair()
	}
}

func (m *maker) query() {
	m.q.target += "?" + strings.NewReplacer(" ", "+", "\r", "", "\n", "").Replace(m.pairs())
}

// pairs are the order as parameters, some of them repeated, renamed or joined oddly.
func (m *maker) pairs() string {
	pairs := []string{m.pair("sku", m.sku), m.pair("quantity", m.n), m.pair("user", m.user)}
	if m.q.route.other {
		pairs = pairs[:2]
	}
	if m.some() {
		pairs = append(pairs[:1], pairs[2:]...) // the quantity is 1
	}
	for m.some() {
		at := m.IntN(len(pairs) + 1)
		pairs = append(pairs[:at:at], append([]string{m.oddPair()}, pairs[at:]...)...)
	}
	m.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	separator := "&"
	if m.rare() {
		separator = pick(m, []string{";", "&&", "&amp;", ",", "&;", "%26", "\n", "|", "&&&"})
	}
	s := strings.Join(pairs, separator)
	if m.rare() {
		s = pick(m, []string{"&" + s, s + "&", "?" + s, s + "=", "=" + s, s + "&=", s + "&%", s + "%00", "\ufeff" + s, s + "#&sku=tea", s + "&a=%zz", s + "&a=%E", "[" + s, s + "&a=%u0041", " " + s, s + "\r\n", s + "&_charset_=utf-16", s + "&utf8=%E2%9C%93"})
	}
	if m.seldom() && m.rare() {
		s = strings.Repeat("a=1&", 990+m.IntN(20)) + s
	}
	return s
}

func (m *maker) pair(name, value string) string {
	escaped := url.QueryEscape(value)
	if m.rare() {
		at := m.IntN(len(name))
		name = name[:at] + fmt.Sprintf("%%%02x", name[at]) + name[at+1:]
	}
	if m.some() && value != "" {
		at := m.IntN(len(value))
		escaped = url.QueryEscape(value[:at]) + fmt.Sprintf("%%%02x", value[at]) + url.QueryEscape(value[at+1:])
	}
	if m.rare() {
		escaped = pick(m, []string{
			strings.ReplaceAll(url.PathEscape(value), "&", "%26"), escaped + "%00", escaped + "%ff", escaped + "%C0%80", "+" + escaped, escaped + "+", "%20" + escaped, escaped + "%0A", escaped + "%0d%0a", "",
			escaped + "=", escaped + "%", escaped + "%2", escaped + "%u0041", escaped + "%zz", escaped + "[]", escaped + "%EF%BB%BF", url.QueryEscape(escaped), "%5B%22" + escaped + "%22%5D", value, escaped + "\xff", escaped + ",tea", escaped + "%ED%A0%80",
		})
	}
	return name + "=" + escaped
}

// oddPair is one that some parser takes for one of the order's.
func (m *maker) oddPair() string {
	name := pick(m, []string{"sku", "quantity", "user"})
	return m.paramName(name) + pick(m, []string{"=9", "=tea", "=", "", "=TEA-2", "=" + url.QueryEscape(m.sku), "[]=9", "=9&", "==9"})
}

// paramName writes a name so that some framework takes it for the plain one.
func (m *maker) paramName(name string) string {
	at := m.IntN(len(name))
	odd := []string{
		name, strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], name[:at] + fmt.Sprintf("%%%02X", name[at]) + name[at+1:], name[:at] + fmt.Sprintf("%%25%02X", name[at]) + name[at+1:],
		name + "[]", name + "[0]", name + "[a]", name + "[", name + "]", "[" + name + "]", "[" + name, name + "%5B%5D", name + "%5b0%5d", name + "[][a]", "a[" + name + "]", "a." + name, name + ".a", name + ".", "." + name,
		"+" + name, "%20" + name, name + "+", name + "%20", name + "%09", "%0A" + name, name + "%0D%0A", name + "%00", name + "%00a", "%00" + name, name + "%00[]", name + "\xff", name + "%FF", name + "%C0%80",
		strings.NewReplacer("s", "%C5%BF", "k", "%E2%84%AA").Replace(name), "%EF%BB%BF" + name, name + "%E2%80%8B", name + "%CC%81", name[:at] + "%u00" + fmt.Sprintf("%02x", name[at]) + name[at+1:],
		"__proto__[" + name + "]", "__proto__." + name, "constructor[prototype][" + name + "]", "constructor.prototype." + name, "a[__proto__][" + name + "]", "__proto__%5B" + name + "%5D", "prototype[" + name + "]",
		"_method", "_METHOD", "%5Fmethod", "_method[]", ".method", "+method", "a;" + name, "a=1;" + name, "a%26" + name, "a%3D1%26" + name, "a&amp;" + name, "amp;" + name, "?" + name, "#" + name, "a#&" + name, name + "=1;" + name,
		"a=" + name, name + "&" + name, "a=%0D%0A" + name, "a\n" + name, "[]" + name, "[0]" + name, "_" + name, "$" + name, name + "_", "a[]" + name, name + "[a", name + "[a]b", name + "]a[",
	}
	return odd[m.IntN(len(odd))]
}

// strangeBody puts a body behind a query, in which some framework finds parameters too.
func (m *maker) strangeBody() {
	switch m.IntN(8) {
	case 0, 1, 2:
		return
	case 3:
		m.q.body, m.q.headers = []byte(m.oddPair()+"&"+m.oddPair()), append(m.q.headers, [2]string{"Content-Type", pick(m, formTypes)})
	case 4:
		m.q.body = []byte(m.object(m.oddMembers([]member{{`"note"`, `"x"`}, {m.oddName(pick(m, []string{"sku", "quantity", "note"})), "9"}})))
		m.header("Content-Type", pick(m, jsonTypes))
	case 5:
		m.q.body = []byte(pick(m, []string{m.oddPair(), `{"sku":"tea","quantity":9}`, "<sku>tea</sku>", "sku: tea", "sku=tea\r\nquantity=9\r\n", "\x00", "{", "tea"}))
		if m.often() {
			m.header("Content-Type", pick(m, []string{"text/plain", "text/xml", "application/xml", "application/octet-stream", "text/plain;charset=UTF-8", "*/*", "", "text/html", "application/x-yaml", "application/graphql", "message/rfc822", "application", "text/plain, application/json"}))
		}
	default:
		m.multipart()
	}
}
