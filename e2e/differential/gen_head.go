package main

import (
	"fmt"
	"net/url"
	"strings"
)

// cookies puts the order into cookies, some of them repeated, renamed or quoted.
func (m *maker) cookies() {
	var pairs []string
	for _, c := range [][2]string{{"sku", m.sku}, {"user", m.user}} {
		pairs = append(pairs, c[0]+"="+m.cookieValue(c[1]))
	}
	for m.some() {
		name := pick(m, []string{"sku", "user"})
		at := m.IntN(len(name))
		add := pick(m, []string{
			name, strings.ToUpper(name), name[:at] + fmt.Sprintf("%%%02x", name[at]) + name[at+1:], name + "[]", name + "[0]", name + ".", " " + name, name + " ", "." + name, `"` + name + `"`, "a." + name, "a_" + name, name + "\x7f", name + "%00", "$" + name, "_" + name,
			"note", "note", "$Version", "$Path", "__Host-" + name, "__Secure-" + name, "a%3B" + name, "a=1, " + name, "a=\"1; " + name, "note=" + name, "", "=" + name,
		}) + pick(m, []string{"=9", "=tea", "", "=", `="9"`, `="a; sku=tea"`, "=a,sku=tea", `="`, `=a"; quantity=9`, "==9", "=%39", `="\"; sku=tea"`, "= 9", "=9 ", "=j:{}", "=s:9.x", "=9%00", "={\"a\":1}", "=a, b=c"})
		at = m.IntN(len(pairs) + 1)
		pairs = append(pairs[:at:at], append([]string{add}, pairs[at:]...)...)
	}
	m.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	separator := "; "
	if m.rare() {
		separator = pick(m, []string{";", ", ", ",", ";  ", " ; ", ";\t", ";;", "; ;", "&"})
	}
	if m.rare() { // two headers
		at := m.IntN(len(pairs) + 1)
		m.header("Cookie", strings.Join(pairs[:at], separator))
		pairs = pairs[at:]
	}
	all := strings.Join(pairs, separator)
	if m.rare() {
		all = pick(m, []string{all + ";", ";" + all, "$Version=1; " + all, `$Version="1"; ` + all + `; $Path="/"`, all + "; $Path=/; $Domain=x", " " + all, all + " ", `"` + all + `"`, "Cookie: " + all, all + "; =", all + "; a=\xff"})
	}
	m.header(pick(m, []string{"Cookie", "Cookie", "Cookie", "Cookie", "cookie", "COOKIE"}), all)
	if m.rare() {
		m.header("Cookie2", "$Version=1; user=other")
	}
}

func (m *maker) cookieValue(value string) string {
	plain := strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
	escaped := strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	if m.often() {
		return escaped
	}
	if m.half() && plain {
		return value
	}
	return pick(m, []string{
		value, `"` + value + `"`, `"` + escaped + `"`, url.QueryEscape(value), url.QueryEscape(escaped), escaped + "%00", escaped + "%20", escaped + "+", " " + escaped, escaped + " ", escaped + "%2B", escaped + "%ff", escaped + "\xff", escaped + "é", "'" + value + "'",
		escaped + "%", escaped + "%zz", strings.ToLower(escaped), escaped + "=", escaped + "=a", escaped + ",a", escaped + "%2Ca", escaped + "%22", escaped + "%5C", "s%3A" + escaped, "j%3A%7B%7D", "j:{\"a\":1}", "", escaped + "%3B", escaped + "%253B", escaped + "%25", escaped + "\\073", escaped + "\t",
		escaped + "!", escaped + "~*", escaped + "%2a", escaped + "(", escaped + "@", escaped + "|", escaped + ":", escaped + "<", escaped + "[a]",
	})
}

// orderHeaders puts the order into headers.
func (m *maker) orderHeaders() {
	values := [][2]string{{"X-Sku", m.sku}, {"X-Quantity", m.n}, {"X-User-Id", m.user}}
	for _, h := range values {
		if h[0] == "X-Quantity" && m.some() {
			continue
		}
		name, value := h[0], h[1]
		if m.rare() {
			value = pick(m, []string{value + " ", " " + value, value + ", tea", value + "\t", `"` + value + `"`, "", value + ",", value + "\xff", value + "\u00a0", value + ";q=1", value + "\x01", value + "\x7f", value + "\x00", value + "\r\n folded", "=?utf-8?q?a?=", value + "\x85", value + "\u0085"})
		}
		if m.rare() {
			name = pick(m, []string{strings.ToLower(name), strings.ToUpper(name)})
		}
		m.header(name, value)
	}
	for m.some() {
		h := pick(m, values)
		name := pick(m, []string{
			h[0], strings.ReplaceAll(h[0], "-", "_"), strings.ReplaceAll(h[0], "-", "."), strings.ToLower(h[0]), strings.ToUpper(strings.ReplaceAll(h[0], "-", "_")), h[0] + " ", " " + h[0], h[0] + "\t", "HTTP_" + strings.ToUpper(strings.ReplaceAll(h[0], "-", "_")), "HTTP-" + h[0],
			strings.ReplaceAll(h[0], "-", "~"), strings.ReplaceAll(h[0], "-", "!"), strings.ReplaceAll(h[0], "-", "'"), h[0] + "_", "X--" + h[0][2:], strings.ReplaceAll(h[0], "-", "+"), strings.ReplaceAll(h[0], "-", "|"), strings.ReplaceAll(h[0], "-", "#"),
		})
		m.header(name, pick(m, []string{"9", "tea", "", "other", h[1]}))
	}
	m.Shuffle(len(m.q.headers), func(i, j int) { m.q.headers[i], m.q.headers[j] = m.q.headers[j], m.q.headers[i] })
	if m.some() {
		m.q.target += "?" + m.oddPair()
	}
}

// segments puts the order into the path.
func (m *maker) segments() {
	sku, n := m.segment(m.sku), m.n
	if m.rare() {
		n = m.segment(pick(m, []string{"03", "+3", "3 ", "3;a=1", "1e1", "3.0", "３", "3,4", "0x3"}))
	}
	m.q.target = pick(m, []string{"/path/", "/path/", "/path/", "/path/", "/path/", "/path//", "/path/./", "/path/a/../"}) + sku + "/" + n + m.odd("", "/", "//", "/.", "/..", ";a=b", "/x", ".json", "%2f", "?", "#", "%00", "%20")
	if m.rare() {
		m.q.target += "?" + m.oddPair()
	}
}

func (m *maker) segment(s string) string {
	escaped := url.PathEscape(s)
	if m.often() {
		return escaped
	}
	at := m.IntN(len(s))
	return pick(m, []string{
		url.PathEscape(s[:at]) + fmt.Sprintf("%%%02x", s[at]) + url.PathEscape(s[at+1:]), url.PathEscape(escaped), escaped + ";a=b", escaped + "%3Ba=b", escaped + "%3b", escaped + "+", escaped + "%2B", escaped + "%20", escaped + "%00", escaped + "%2f", escaped + "%5c", escaped + "\\",
		escaped + ".", escaped + "..", escaped + "%2e%2e", escaped + "%ff", escaped + "\xff", escaped + "%C0%AF", escaped + "*", escaped + "$", escaped + "%", escaped + "%zz", escaped + "%u0041", escaped + ":", escaped + "@", escaped + "=", escaped + ",a", escaped + "%23", escaped + "%3F", escaped + "&", escaped + "!", escaped + "'", escaped + "(", escaped + "|", escaped + "%0a", escaped + "~", escaped + "%7e",
	})
}
