package main

import (
	"fmt"
	"net/url"
	"strings"
)

// arrayBody makes an order of several lines in arrays of a form, and changes some of it.
func (m *maker) arrayBody() {
	pairs := [][2]string{{"user", m.user}}
	for i := range 1 + m.IntN(3) {
		pairs = append(pairs, m.arrayLine(i)...)
	}
	for m.some() {
		at := m.IntN(len(pairs) + 1)
		pairs = append(pairs[:at:at], append([][2]string{{m.arrayName(), pick(m, []string{"9", "tea", "", "TEA-2", m.sku})}}, pairs[at:]...)...)
	}
	if m.half() {
		m.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	}
	if m.rare() {
		pairs = pairs[1:]
	}
	if m.some() {
		m.multipartOf(pairs)
		return
	}
	encode := m.half()
	var b strings.Builder
	for i, pair := range pairs {
		if i > 0 {
			b.WriteByte('&')
		}
		name := pair[0]
		if encode {
			name = url.QueryEscape(name)
		}
		b.WriteString(name + "=" + url.QueryEscape(pair[1]))
	}
	m.q.body = []byte(b.String())
	kind := formTypes[0]
	if m.rare() {
		kind = pick(m, formTypes)
	}
	m.header("Content-Type", kind)
	if m.rare() {
		m.q.target += "?" + url.QueryEscape(m.arrayName()) + "=tea"
	}
}

// arrayLine is line i of an order.
func (m *maker) arrayLine(i int) [][2]string {
	sku, n := skus[m.IntN(len(skus))], m.n
	if m.often() {
		sku = pick(m, []string{"tea", "TEA-2", "cafe_01", "20002001", "1234567890123", "a.b"})
	}
	if m.rare() {
		n = m.number()
	}
	switch m.q.route.name {
	case "keys":
		return [][2]string{{"qty[" + sku + "]", n}}
	case "lists":
		return [][2]string{{"skus[]", sku}, {"counts[]", n}}
	}
	index := fmt.Sprint(i)
	if m.rare() {
		index = pick(m, []string{"", "00", "-1", "+1", "a", " ", "1.0", "1e0", "0x1", "20", "21", "49", "99", "100", "1001", "4294967296", "length", "٣", "null"})
	}
	line := [][2]string{{"items[" + index + "][sku]", sku}}
	if m.often() {
		line = append(line, [2]string{"items[" + index + "][count]", n})
	}
	if m.rare() {
		line = append(line, [2]string{"items[" + index + "][" + pick(m, []string{"note", "SKU", "Count", "options][sku", "tags][", "sku][", "count][0", "__proto__][count", "constructor][sku"}) + "]", "9"})
	}
	return line
}

// arrayName writes the name of a value in the array so that some framework takes it for one of the order's.
func (m *maker) arrayName() string {
	array, steps := "items", []string{"0", pick(m, []string{"sku", "count"})}
	switch m.q.route.name {
	case "keys":
		array, steps = "qty", []string{pick(m, []string{"tea", "TEA-2", "7"})}
	case "lists":
		array, steps = pick(m, []string{"skus", "counts"}), []string{""}
	}
	inside := strings.Join(steps, "][")
	first, rest, _ := strings.Cut(inside, "][")
	below := "[" + inside + "]"
	return pick(m, []string{
		array, array + below, array + "[]", array + "[0]", array + "[a]", array + below + "[]", array + below + "[0]", array + below + "x", array + "x" + below, array + "[]" + below, array + below + below,
		strings.ToUpper(array) + below, array + strings.ToUpper(below), strings.ToUpper(array[:1]) + array[1:] + below, array + "." + strings.Join(steps, "."), array + "[" + first + "]." + rest, array + "[" + first + "]" + rest, array + "[" + first + "]" + rest + "]",
		array + "[" + first + "[" + rest + "]", array + "[" + inside, array + inside + "]", array + " " + below, " " + array + below, array + "[ " + inside + "]", array + "[" + inside + " ]", array + "[" + first + " ][" + rest + "]", array + "_" + below,
		array + "\x00" + below, array + below + "\x00", array + "[" + first + "]\x00[" + rest + "]", array + "[" + inside + "\x00]", "[" + array + "]" + below, "]" + array + below, "a[" + array + "]" + below, array + "[__proto__]" + below, "__proto__[" + array + "]" + below, array + "[constructor][prototype]" + below,
		array + "[length]", array + "[-1][" + rest + "]", array + "[+0][" + rest + "]", array + "[00][" + rest + "]", array + "[1e0][" + rest + "]", array + "%5B" + first + "%5D", array + "[%30][" + rest + "]", array + "[" + inside + "][__proto__]", array + "ſ" + below, array + below + "\xff", array + "=1&" + array + below,
	})
}

// multipartOf makes a multipart form of pairs.
func (m *maker) multipartOf(pairs [][2]string) {
	const line = "\r\n"
	boundary := pick(m, []string{"b", "----WebKitFormBoundaryABC"})
	var b strings.Builder
	for _, pair := range pairs {
		b.WriteString("--" + boundary + line + `Content-Disposition: form-data; name="` + pair[0] + `"`)
		if m.seldom() {
			b.WriteString(pick(m, []string{`; filename="f"`, `; filename=""`, line + "Content-Type: text/plain", line + "Content-Type: text/plain; charset=utf-16", line + "Content-Transfer-Encoding: base64"}))
		}
		b.WriteString(line + line + pair[1] + line)
	}
	b.WriteString("--" + boundary + "--" + line)
	m.q.body = []byte(b.String())
	m.header("Content-Type", "multipart/form-data; boundary="+boundary)
}
