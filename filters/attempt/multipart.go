package attempt

import (
	"bytes"
	"mime"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxParts bounds the parts of a multipart body: PHP and others stop reading at 1,000,
// and smaller limits for files are common.
const maxParts = 1000

// Multipart parsers differ in almost everything: boundaries, folded headers, quoting,
// RFC 2231 continuations, NUL in names. A body that no source reads still has names
// that frameworks merge with the query's. So a body passes only in the one form that
// all of them read alike, the form that browsers and HTTP clients send (RFC 7578): no
// preamble, CRLF, one Content-Disposition per part with a quoted name.

// boundaryForm is what a boundary may look like; RFC 2046, section 5.1.1, allows more.
var boundaryForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,70}$`)

// dispositionForm is what a Content-Disposition may look like. Names and file names hold
// no quote, backslash, percent sign or control character, so no parser decodes them.
var dispositionForm = regexp.MustCompile(
	`^form-data; name="([^"\\%\x00-\x1f\x7f]*)"(?:; filename="[^"\\\x00-\x1f\x7f]*")?(?:; filename\*=(?:UTF|utf)-8''[A-Za-z0-9!#$&+.^_` + "`" + `|~%-]*)?$`)

// partHeaders are the other headers that a part may have: they do not affect its name.
var partHeaders = map[string]bool{"content-type": true, "content-length": true, "content-transfer-encoding": true}

// FormPart is a part of a multipart body.
type FormPart struct {
	Name    string
	Content []byte
	// File: it is a file, and no field.
	File bool
	// Plain: its content is what its bytes are. Servers decode the others, by a charset or an encoding that
	// the part names.
	Plain bool
}

// MultipartBody checks a whole multipart body, whose Content-Type is mediaType, and calls each for its parts
// in their order, which says why one is refused. what says why the body is refused, empty: it is not.
func MultipartBody(mediaType string, body []byte, each func(FormPart) string) (what string) {
	boundary, what := boundaryOf(mediaType)
	if what != "" {
		return what
	}
	delimiter := []byte("--" + boundary)
	rest, found := bytes.CutPrefix(body, delimiter)
	if !found {
		return "it does not begin with the boundary"
	}
	for parts := 0; ; parts++ {
		if end, last := bytes.CutPrefix(rest, []byte("--")); last {
			if len(end) > 0 && string(end) != "\r\n" {
				return "there is more after the last boundary"
			}
			return ""
		}
		if parts == maxParts {
			return "it has more than 1000 parts"
		}
		if rest, found = bytes.CutPrefix(rest, []byte("\r\n")); !found {
			return "a boundary stands inside a line"
		}
		head, content, found := bytes.Cut(rest, []byte("\r\n\r\n"))
		if !found {
			return "a part has no end of its headers"
		}
		part, what := readHead(string(head))
		if what != "" {
			return what
		}
		// The first delimiter ends the part. One that follows anything but CRLF would
		// end it for some parsers only.
		i := bytes.Index(content, delimiter)
		switch {
		case i < 0:
			return "the last boundary is missing"
		case i < 2 || string(content[i-2:i]) != "\r\n":
			return "a boundary stands inside a line"
		}
		part.Content = content[:i-2]
		if what = each(part); what != "" {
			return what
		}
		rest = content[i+len(delimiter):]
	}
}

// readMultipart reads the fields of a multipart form like an urlencoded one.
func (ps *params) readMultipart(mediaType string, body []byte) (f fault) {
	what := MultipartBody(mediaType, body, func(part FormPart) string {
		switch {
		case part.File:
			return "it has a file: an order is read of fields only"
		case !part.Plain:
			return "a field has an encoding of its own"
		case part.Name == "_charset_": // RFC 7578, section 4.6: some servers decode all fields by it
			return "it names a charset"
		}
		if f = ps.named(inForm, "", part.Name, ps.scratch.text(part.Content)); f.bad() {
			return f.what
		}
		return ""
	})
	switch {
	case f.bad():
		return f
	case what != "":
		return fault{"the body", what}
	}
	if slices.ContainsFunc(ps.scratch.keys, isLongNumber) {
		return fault{"the body", "a key is a number above 4294967294, which some servers round or lose: send it urlencoded"}
	}
	return ps.endRows()
}

// isLongNumber tells whether a key is a number that is no index of an array (ECMAScript, section 6.1.7).
// multer makes an array of keys that are numbers, and loses what is no element when a name follows.
func isLongNumber(key string) bool {
	n, err := strconv.ParseUint(key, 10, 32)
	return isDecimal(key) && (err != nil || n == 1<<32-1)
}

// boundaryOf reads the boundary: the one parameter of multipart/form-data.
func boundaryOf(mediaType string) (boundary, what string) {
	full, attrs, err := mime.ParseMediaType(mediaType)
	if err != nil || full != "multipart/form-data" || len(attrs) != 1 || !boundaryForm.MatchString(attrs["boundary"]) {
		return "", "multipart/form-data needs one parameter: a boundary of letters, digits, _, . and -"
	}
	return attrs["boundary"], ""
}

// readHead reads the headers of one part.
func readHead(head string) (part FormPart, what string) {
	const odd = "a part's headers are not those of a plain form field"
	part.Plain = true
	seen := make(map[string]bool, len(partHeaders)+1)
	for line := range strings.SplitSeq(head, "\r\n") {
		key, value, found := strings.Cut(line, ": ")
		key = strings.ToLower(key)
		switch {
		case !found || seen[key] || !plain(value):
			return part, odd
		case key == "content-disposition":
			match := dispositionForm.FindStringSubmatch(value)
			if match == nil || !plain(match[1]) {
				return part, odd
			}
			part.Name, part.File = match[1], strings.Contains(value[len(match[1]):], "; filename")
		case !partHeaders[key]:
			return part, odd
		case key == "content-type" && strings.HasPrefix(strings.ToLower(value), "multipart/"):
			return part, "a part is multipart itself"
		}
		seen[key] = true
		part.Plain = part.Plain && isPlainAs(key, value)
	}
	if !seen["content-disposition"] {
		return part, odd
	}
	return part, ""
}

// isPlainAs reports whether a header of a part leaves its content as it is.
func isPlainAs(key, value string) bool {
	switch key {
	case "content-transfer-encoding":
		return slices.Contains([]string{"7bit", "8bit", "binary"}, strings.ToLower(value))
	case "content-type":
		_, attrs, err := mime.ParseMediaType(value)
		charset, given := attrs["charset"]
		return err == nil && !strings.Contains(value, "*") && (!given || IsUTF8(charset))
	}
	return true
}
