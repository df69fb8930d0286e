package learn

import (
	"bytes"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// headerOf makes a header of recorded fields, without the pseudo fields of HTTP/2.
func headerOf(pairs []harPair) http.Header {
	h := make(http.Header, len(pairs))
	for _, p := range pairs {
		if p.Name != "" && p.Name[0] != ':' {
			h.Add(p.Name, p.Value)
		}
	}
	return h
}

// addCookies adds the recorded cookies where the header lacks them.
func addCookies(h http.Header, cookies []harPair) {
	if h.Get("Cookie") != "" || len(cookies) == 0 {
		return
	}
	var all []string
	for _, c := range cookies {
		all = append(all, c.Name+"="+c.Value)
	}
	h.Set("Cookie", strings.Join(all, "; "))
}

// formOf writes the fields of a form, whose text was not recorded, as its media type says.
func formOf(h http.Header, mimeType string, fields []harPair) string {
	if kind, _, _ := mime.ParseMediaType(mimeType); kind != "multipart/form-data" {
		values := make(url.Values)
		for _, f := range fields {
			values.Add(unescaped(f.Name), unescaped(f.Value))
		}
		return values.Encode()
	}
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, f := range fields {
		if w.WriteField(f.Name, f.Value) != nil {
			return ""
		}
	}
	w.Close()
	h.Set("Content-Type", w.FormDataContentType())
	return body.String()
}

// unescaped undoes the encoding that some browsers leave in the fields that they record.
func unescaped(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// cookies returns the cookies of a request by name.
func (x *Exchange) cookies() map[string]string {
	all := make(map[string]string)
	for _, c := range (&http.Request{Header: x.Header}).Cookies() {
		all[c.Name] = c.Value
	}
	return all
}

// hasCredentials reports whether a request carries a cookie or an Authorization.
func (x *Exchange) hasCredentials() bool {
	return x.Header.Get("Cookie") != "" || x.Header.Get("Authorization") != ""
}

// mediaType returns the media type of a header, in lower case.
func mediaType(h http.Header) string {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return kind
}

func isJSONType(kind string) bool {
	return kind == "application/json" || strings.HasSuffix(kind, "+json") || kind == "text/json"
}
