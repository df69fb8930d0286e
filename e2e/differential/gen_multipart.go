package main

import (
	"fmt"
	"strings"
)

// multipart makes a body of parts, each of which some parser finds a parameter in.
func (m *maker) multipart() {
	boundary := pick(m, []string{"b", "----WebKitFormBoundaryABC", "a.b_c-d", "b", "b", "b"})
	kind := "multipart/form-data; boundary=" + boundary
	if m.some() {
		kind = pick(m, []string{
			`multipart/form-data; boundary="` + boundary + `"`, kind + "; boundary=c", "multipart/form-data; boundary=c; boundary=" + boundary, "multipart/mixed; boundary=" + boundary,
			"Multipart/Form-Data; Boundary=" + boundary, kind + "; charset=utf-16", kind + "; charset=utf-8", `multipart/form-data; boundary="c\"; boundary=` + boundary, "multipart/form-data; boundary*=utf-8''" + boundary,
			"multipart/form-data; boundary*0=" + boundary, kind + " ", kind + ",c", "multipart/form-data;boundary=" + boundary, kind + ";", "multipart/related; boundary=" + boundary, "multipart/form-data", "multipart/form-data, multipart/form-data; boundary=" + boundary,
			"multipart/form-data; boundary='" + boundary + "'", "multipart/form-data; x=\"; boundary=c\"; boundary=" + boundary,
		})
	}
	m.header("Content-Type", kind)
	var b strings.Builder
	line := "\r\n"
	if m.rare() {
		line = pick(m, []string{"\n", "\r", "\n\r"})
	}
	if m.rare() {
		b.WriteString(pick(m, []string{"preamble", "--c", "--" + boundary + "x", ""}) + line)
	}
	for range 1 + m.IntN(3) {
		b.WriteString("--" + boundary + m.odd("", " ", "\t", "--", "x", "\r") + line)
		b.WriteString(m.partHead(line) + line)
		b.WriteString(pick(m, []string{"9", "tea", "x", "", "--" + boundary, "\r\n--" + boundary + "\r\n", "--" + boundary + "--", "\n--" + boundary + "\n" + m.disposition() + "\n\n9", "--c\r\n" + m.disposition() + "\r\n\r\n9"}) + line)
	}
	b.WriteString("--" + boundary + m.odd("--", "", "-", "-- ", "--x") + m.odd(line, "", line+"epilogue", line+"--"+boundary+line+m.disposition()+line+line+"9"+line+"--"+boundary+"--"))
	m.q.body = []byte(b.String())
}

// odd is the first, or rarely another.
func (m *maker) odd(usual string, others ...string) string {
	if m.rare() {
		return pick(m, others)
	}
	return usual
}

func (m *maker) partHead(line string) string {
	head := m.odd("", "X: y"+line, "Content-Length: 1"+line, " folded"+line, "Content-Type: text/plain; charset=utf-16"+line, "Content-Disposition: form-data; name=\"x\""+line) +
		m.disposition() + line
	if m.rare() {
		head += pick(m, []string{
			" ; name=\"sku\"" + line, "\t; name=sku" + line, "Content-Type: text/plain" + line, "Content-Type: application/json" + line, "Content-Type: multipart/mixed; boundary=c" + line,
			"Content-Transfer-Encoding: base64" + line, "Content-Transfer-Encoding: quoted-printable" + line, "Content-Type: text/plain; charset=utf-7" + line, "Content-Disposition: form-data; name=\"sku\"" + line,
			"content-disposition: form-data; name=sku" + line, "Content-Disposition : form-data; name=\"sku\"" + line, "Content-Type: application/x-www-form-urlencoded" + line,
		})
	}
	return head
}

// disposition names a part.
func (m *maker) disposition() string {
	name := pick(m, []string{"note", "note", "comment", "a", "sku", "quantity", "user"})
	at := m.IntN(len(name))
	if m.half() {
		return `Content-Disposition: form-data; name="` + name + `"`
	}
	target := pick(m, []string{"sku", "quantity"})
	return pick(m, []string{"Content-Disposition", "Content-Disposition", "content-disposition", "CONTENT-DISPOSITION", "Content-Disposition\t", "Content-disposition"}) + pick(m, []string{": ", ": ", ":", ":  ", ":\t"}) + pick(m, []string{
		`form-data; name="` + target, `form-data; name=` + target, `form-data; name='` + target + `'`, `form-data; name="` + target + "\x00\"", `form-data; name="` + target + `\"`, `form-data; name="a\"; name="` + target + `"`,
		`form-data; name*=utf-8''` + target, `form-data; name*0="` + target[:1] + `"; name*1="` + target[1:] + `"`, `form-data; name="x"; name*=UTF-8''` + target, `form-data; name*=utf-8''` + target + `; name="x"`, `form-data; name="x"; name="` + target + `"`,
		`form-data; name="` + name + `"; filename="f.txt"`, `form-data; name="` + name + `"; filename="\"; name=\"` + target + `"`, `form-data; name="` + name + `"; filename=""`, `form-data; NAME="` + target + `"`, `form-data;name="` + name + `"`,
		`form-data; x="; name=` + target + `; y="; name="` + name + `"`, `attachment; name="` + target + `"`, `form-data; name="` + target + `[]"`, `form-data; name="` + target + `[a]"`, `form-data; name=" ` + target + `"`, `form-data; name="` + target + ` "`,
		`form-data; name="` + strings.ToUpper(target) + `"`, `form-data; name="` + name[:at] + fmt.Sprintf("%%%02x", name[at]) + name[at+1:] + `"`, `form-data; name="=?utf-8?q?` + target + `?="`, `form-data; name="__proto__"`, `form-data; name="__proto__[quantity]"`, `form-data; name="constructor[prototype][sku]"`,
		`form-data; name="_method"`, `form-data; name="` + target + `\r"`, "form-data; name=\"" + target + "\r\"", "form-data; name=\"" + target + "\n\"", `form-data; name="` + strings.NewReplacer("s", "ſ", "k", "K").Replace(target) + `"`, `form-data; name="\` + target + `"`, `form-data; name="` + target + "\xff\"", `form-data; name ="` + target + `"`, `form-data; name= "` + target + `"`,
		`form-data; name="` + name + `"; filename*=UTF-8''f.txt`, `form-data; name="` + name + `"; filename="a"; filename*=UTF-8''%22b`, `form-data, name="` + target + `"`, `name="` + target + `"`, `form-data; name="` + name + `", name="` + target + `"`, `form-data; name="é"`, `form-data; name=""`, `form-data; name="[` + target + `]"`, `form-data; name="a.` + target + `"`,
	})
}
