package attempt

import (
	"mime"
	"net/http"
	"strings"
)

// media is what a request's Content-Type says of its body.
type media uint8

const (
	mediaNone      media = iota // no Content-Type
	mediaJSON                   // application/json or +json, UTF-8
	mediaJSONLike               // another type that some framework reads as JSON
	mediaForm                   // application/x-www-form-urlencoded, UTF-8
	mediaMultipart              // multipart/*
	mediaOther
)

const contentType = "Content-Type"

// mediaOf reads the Content-Type. There must be at most one, and for JSON and
// forms no charset but utf-8: decoders that honour another charset would read other
// names and values from the same bytes.
func mediaOf(h http.Header) (media, fault) {
	values := h[contentType]
	if len(values) == 0 {
		return mediaNone, fault{}
	}
	if len(values) > 1 {
		return mediaNone, fault{contentType, "the header appears twice"}
	}
	switch values[0] { // the common cases
	case "application/json", "application/json; charset=utf-8", "application/json;charset=utf-8":
		return mediaJSON, fault{}
	case "application/x-www-form-urlencoded":
		return mediaForm, fault{}
	}
	if strings.Contains(values[0], "*") {
		return mediaNone, fault{contentType, "not every server understands extended parameters"}
	}
	full, attrs, err := mime.ParseMediaType(values[0])
	if err != nil || !strings.Contains(full, "/") {
		return mediaNone, fault{contentType, "it is not a media type"}
	}
	m := classify(full)
	if m == mediaJSON || m == mediaJSONLike || m == mediaForm {
		if cs, ok := attrs["charset"]; ok && !IsUTF8(cs) {
			return mediaNone, fault{contentType, "the charset is not utf-8"}
		}
	}
	return m, fault{}
}

// IsUTF8 reports whether a charset is UTF-8, by one of the labels that browsers and servers know (WHATWG
// Encoding, section 4.2).
func IsUTF8(charset string) bool {
	return strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// classify sorts a media type, which is in lower case.
func classify(full string) media {
	switch {
	case full == "application/json" || strings.HasSuffix(full, "+json"):
		return mediaJSON
	case full == "application/x-www-form-urlencoded":
		return mediaForm
	case strings.HasPrefix(full, "multipart/"):
		return mediaMultipart
	case strings.Contains(full, "json"):
		return mediaJSONLike
	}
	return mediaOther
}
