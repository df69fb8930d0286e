package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// member is one of an object, as it is written.
type member struct{ name, value string }

// jsonTypes are what clients and frameworks call JSON.
var jsonTypes = []string{
	"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON", "application/json;",
	"application/json; charset=\"utf-8\"", "application/json; charset=utf-16", "application/json; charset=latin1", "application/json; charset=utf-7",
	"application/vnd.api+json", "application/problem+json", "text/json", "text/plain", "text/plain; charset=utf-8", "application/x-json",
	"application/json, text/plain", "application/json; boundary=x", "application/jsonp", "application/json5", "application/x-ndjson",
	"application/json ; charset=utf-8", "application/json;charset=utf-8;charset=utf-16", "text/x-json", "json", "application/csp-report",
	"application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "application/json; charset=utf8", " application/json", "application/json\t",
}

// jsonBody makes the order as JSON, and changes some of it.
func (m *maker) jsonBody() {
	if m.q.route.name == "lines" {
		m.q.body = []byte(m.object(m.lineMembers()))
	} else {
		members := []member{{`"user"`, m.scalar(m.user)}, {`"sku"`, m.scalar(m.sku)}, {`"quantity"`, m.quantity()}}
		if m.q.route.other {
			members = members[1:]
		}
		m.q.body = []byte(m.object(m.oddMembers(members)))
	}
	m.document()
	kind := jsonTypes[0]
	if m.some() {
		kind = pick(m, jsonTypes)
	}
	if !m.rare() {
		m.header("Content-Type", kind)
	}
	if m.seldom() {
		m.header("Content-Type", pick(m, jsonTypes))
	}
	if m.rare() {
		m.q.target += "?" + m.oddPair()
	}
	if m.seldom() {
		m.header("Content-Encoding", pick(m, []string{"gzip", "deflate", "identity", "br", "x-gzip"}))
	}
}

func (m *maker) lineMembers() []member {
	var lines []string
	for range 1 + m.IntN(3) {
		line := []member{{`"sku"`, m.scalar(skus[m.IntN(len(skus))])}}
		if m.often() {
			line = append(line, member{`"count"`, m.quantity()})
		}
		lines = append(lines, m.object(m.oddMembers(line)))
	}
	if m.rare() {
		lines = append(lines, pick(m, []string{"null", "[]", "{}", "1", `"sku"`, "[{}]", "false"}))
	}
	items := "[" + strings.Join(lines, ",") + "]"
	if m.rare() {
		items = pick(m, []string{"null", "{}", `{"0":` + lines[0] + "}", lines[0], `"` + m.sku + `"`, "[" + items + "]", "[]"})
	}
	order := m.object(m.oddMembers([]member{{`"items"`, items}}))
	if m.rare() {
		order = "[" + order + "]"
	}
	return m.oddMembers([]member{{`"user"`, m.scalar(m.user)}, {`"order"`, order}})
}

func (m *maker) object(members []member) string {
	var b strings.Builder
	b.WriteString(m.space() + "{")
	for i, one := range members {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(m.space() + one.name + m.space() + ":" + m.space() + one.value + m.space())
	}
	if m.seldom() {
		b.WriteString(",")
	}
	return b.String() + "}"
}

func (m *maker) space() string {
	if !m.rare() {
		return ""
	}
	return pick(m, []string{" ", "\n", "\t", "\r\n", " \n", "  "}) + pick(m, []string{"", "", "", "", "", "\f", "\v", "\u00a0", "/* , */", "// x\n", "#\n", "\x00", "\u2028", "\ufeff"})
}

// oddMembers repeats, renames and adds members.
func (m *maker) oddMembers(members []member) []member {
	for m.some() {
		victim := members[m.IntN(len(members))]
		plain := strings.Trim(victim.name, `"`)
		add := member{m.oddName(plain), pick(m, []string{`"tea"`, "9", "[9]", "null", `{"quantity":9}`, `"` + m.sku + `"`, "true", "1e1"})}
		switch m.IntN(6) {
		case 0:
			add.name = victim.name
		case 1:
			add = member{m.oddName(pick(m, []string{"__proto__", "constructor", "prototype", "_method", "toJSON", "hasOwnProperty", "$ref", "", "__class__"})),
				pick(m, []string{`{"quantity":9}`, `{"sku":"tea"}`, `{"prototype":{"quantity":9}}`, `"DELETE"`, `[{"quantity":9}]`, "null", `{"items":[{"sku":"tea"}]}`})}
		case 2:
			members = append(members[:0:0], members...)
			for i := range members {
				if members[i] == victim {
					members[i].name = m.oddName(plain)
				}
			}
			continue
		}
		at := m.IntN(len(members) + 1)
		members = append(members[:at:at], append([]member{add}, members[at:]...)...)
	}
	return members
}

// oddName writes a name in JSON, in a way that some parser takes for another one.
func (m *maker) oddName(name string) string {
	if name == "" {
		return `""`
	}
	at := m.IntN(len(name))
	switch m.IntN(14) {
	case 0:
		return `"` + strings.ToUpper(name) + `"`
	case 1:
		return `"` + strings.ToUpper(name[:1]) + name[1:] + `"`
	case 2:
		return `"` + name[:at] + fmt.Sprintf(`\u%04x`, name[at]) + name[at+1:] + `"`
	case 3:
		return `"` + name + pick(m, []string{`\u0000`, " ", `\n`, `\u200b`, "[]", ".", `\ud800`, "\x00", "\xff", "\u0301"}) + `"`
	case 4:
		return `"` + pick(m, []string{" ", `\t`, `\ufeff`, "$", ".", "[", "_", "@"}) + name + `"`
	case 5:
		return `"` + strings.NewReplacer("s", "ſ", "k", "K").Replace(name) + `"`
	case 6:
		return "'" + name + "'"
	case 7:
		return name
	case 8:
		return `"` + name[:at] + `\` + name[at:] + `"`
	case 9:
		return `"` + name[:at] + fmt.Sprintf(`\U%08x`, name[at]) + name[at+1:] + `"`
	case 10:
		return `"` + name[:at] + string(rune(name[at])+0xfee0) + name[at+1:] + `"`
	}
	return `"` + name + `"`
}

// scalar writes a text, mostly as a plain string.
func (m *maker) scalar(s string) string {
	quoted, _ := json.Marshal(s)
	plain := string(quoted)
	if m.often() {
		return plain
	}
	if _, number := quantity(say(s)); number && m.half() {
		return pick(m, []string{s, s, s, s + ".0", s + "e0", "-" + s, "0" + s, "+" + s, s + "E0", s + "0e-1", s + "00000000000000000"})
	}
	at := 0
	if len(s) > 0 {
		at = m.IntN(len(s))
	}
	escaped := plain
	if len(s) > 0 && s[at] < 0x80 {
		head, _ := json.Marshal(s[:at])
		rest, _ := json.Marshal(s[at+1:])
		escaped = string(head[:len(head)-1]) + fmt.Sprintf(`\u%04X`, s[at]) + string(rest[1:])
	}
	return pick(m, []string{
		escaped, escaped, escaped, escaped, plain[:len(plain)-1] + `\u0000"`, plain[:len(plain)-1] + "\xff\"", plain[:len(plain)-1] + `\ud83d"`, plain[:len(plain)-1] + ` "`,
		plain[:len(plain)-1] + "\t\"", plain[:len(plain)-1] + `\/"`, "[" + plain + "]", `{"a":` + plain + "}", `{"toString":` + plain + "}", "null", "true", `""`, "'" + s + "'", "NaN", "[]", plain[:len(plain)-1] + `\ud83d\ude00"`, plain + plain, `"\x41"`,
	})
}

func (m *maker) quantity() string {
	if m.often() {
		if m.half() {
			return `"` + m.n + `"`
		}
		return m.n
	}
	return pick(m, []string{
		"1.0", "1e0", "1E1", "10e-1", `"1e1"`, `"01"`, `" 3"`, `"3 "`, `"+3"`, "-1", "0", "-0", `"0x3"`, "null", "true", "[3]", `["3"]`, "{}", `""`, "99999", "10000", "10001",
		"18446744073709551617", "4294967297", `"4294967297"`, "0.9999999999999999999", "1.9", `"1.9"`, `"٣"`, `"３"`, `"3\u0000"`, `"3abc"`, "03", "+3", "0x3", "Infinity", "3.0000000000000000000001", `"3"`, `"\u0033"`, "5", "12",
	})
}

// document changes the whole of a body.
func (m *maker) document() {
	if !m.rare() {
		return
	}
	b := string(m.q.body)
	m.q.body = []byte(pick(m, []string{
		"\ufeff" + b, b + b, b + "\n{}", "[" + b + "]", b + "//", "/**/" + b, ")]}',\n" + b, b + "\x00", " " + b + " \n", "\x1e" + b, `"` + b + `"`, "json=" + b, "", "null", "\v" + b, b + `,{"sku":"tea"}`, utf16(b), "\xfe\xff" + utf16(b),
	}))
}

func utf16(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteByte(byte(r >> 8))
		b.WriteByte(byte(r))
	}
	return b.String()
}
