package webhook

import (
	"errors"
	"net/http"
	"strings"
)

// maxSignatures bounds the signatures in one header that are compared.
const maxSignatures = 16

// HeaderFields divide one header into named fields, such as "t=1790000000,v1=…,v1=…".
type HeaderFields struct {
	// Header is the name of the header.
	Header string `json:"header"`
	// Between stands between two fields, such as a comma.
	Between string `json:"between"`
	// After stands between the name of a field and its value. Default: =
	After string `json:"after,omitempty"`
}

func (f *HeaderFields) check() error {
	switch {
	case f.Between == "":
		return errors.New("fields: what stands between two fields is missing, such as `fields X-Signature ,`")
	case f.After == f.Between:
		return errors.New("fields: the same stands between two fields and behind the name of one")
	}
	return checkHeader(f.Header)
}

// in returns the values of the fields, by their names. Those behind the bound are left out.
func (f *HeaderFields) in(h http.Header) (map[string][]string, error) {
	text, err := header(h, f.Header)
	if err != nil {
		return nil, err
	}
	after := f.After
	if after == "" {
		after = "="
	}
	found := make(map[string][]string)
	for one := range strings.SplitSeq(text, f.Between) {
		name, value, _ := strings.Cut(strings.TrimSpace(one), after)
		if len(found[name]) < maxSignatures {
			found[name] = append(found[name], value)
		}
	}
	return found, nil
}
