package learn

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"
)

// The kinds of bodies that a gate reads.
const (
	kindNone    = ""
	kindJSON    = "json"
	kindForm    = "form"
	kindGraphQL = "graphql"
)

// body returns what kind of body a request has, and its fields.
func (x *Exchange) body() (kind string, fields any) {
	if len(x.Body) == 0 {
		return kindNone, nil
	}
	switch media := mediaType(x.Header); {
	case isJSONType(media):
		v := decodeJSON(x.Body)
		if v == nil {
			return kindNone, nil
		}
		return kindJSON, v
	case media == "application/x-www-form-urlencoded":
		values, err := url.ParseQuery(string(x.Body))
		if err != nil {
			return kindNone, nil
		}
		return kindForm, treeOf(values)
	case media == "multipart/form-data":
		if values := x.multipart(); values != nil {
			return kindForm, treeOf(values)
		}
	}
	return kindNone, nil
}

// treeOf makes a flat object of a form: names with brackets stay as they are.
func treeOf(values url.Values) map[string]any {
	tree := make(map[string]any, len(values))
	for name, all := range values {
		tree[name] = all[0]
		if len(all) > 1 {
			list := make([]any, len(all))
			for i, v := range all {
				list[i] = v
			}
			tree[name] = list
		}
	}
	return tree
}

// multipart reads the fields of a multipart form without files; nil: it is none.
func (x *Exchange) multipart() url.Values {
	_, params, err := mime.ParseMediaType(x.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return nil
	}
	values := make(url.Values)
	r := multipart.NewReader(bytes.NewReader(x.Body), params["boundary"])
	for {
		part, err := r.NextPart()
		if err == io.EOF {
			return values
		}
		if err != nil || part.FileName() != "" {
			return nil
		}
		text, err := io.ReadAll(part)
		if err != nil {
			return nil
		}
		values.Add(part.FormName(), string(text))
	}
}

// changes reports whether a request may change something.
func (x *Exchange) changes() bool {
	switch x.Method {
	case "POST", "PUT", "PATCH", "DELETE":
		return true
	}
	return false
}

// answerTree returns the answer's JSON; nil: it is none.
func (x *Exchange) answerTree() any {
	if len(x.Answer) == 0 || !isJSONType(mediaType(x.AnswerHeader)) {
		return nil
	}
	return decodeJSON(x.Answer)
}

// segments returns the segments of the path.
func (x *Exchange) segments() []string {
	return strings.Split(strings.Trim(x.URL.EscapedPath(), "/"), "/")
}

// location returns where the answer redirects to; nil: nowhere.
func (x *Exchange) location() *url.URL {
	to := x.AnswerHeader.Get("Location")
	if to == "" {
		return nil
	}
	u, err := x.URL.Parse(to)
	if err != nil {
		return nil
	}
	return u
}
