// Package request reads requests to the admin API and to the shop's API, strictly.
package request

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/strictjson"
)

// By returns the caller, for the log and the journal: name@address. The name is that of the
// client certificate if there is one.
func By(r *http.Request) string {
	name := r.Header.Get(adminapi.ByHeader)
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		name = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	if name = adminapi.PlainText(name, 64); name == "" {
		name = "admin"
	}
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = "unix" // a socket has no address
	}
	return name + "@" + adminapi.PlainText(address, 64)
}

// SaleID returns the sale that the path names; it may be part of a key.
func SaleID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !sale.IsID(id) {
		return "", Bad("%.80q is no id of a sale: 1 to 64 of a-z, 0-9, dot, underscore and hyphen, beginning with a letter or digit", id)
	}
	return id, nil
}

// Word checks a name that becomes a field in Redis.
func Word(what, word string) (string, error) {
	if !sale.IsName(word) {
		return "", Bad("%s must be 1 to %d printable ASCII characters without space", what, sale.MaxName)
	}
	return word, nil
}

// Body reads a whole body of at most the given number of bytes.
func Body(r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
	var tooLarge *http.MaxBytesError
	if err != nil && !errors.As(err, &tooLarge) {
		return nil, Bad("the body ended early: %w", err)
	}
	return body, err
}

// JSON reads a body that may have only the fields of into, as strictly as the shop's API.
// No body is no field.
func JSON(r *http.Request, most int64, into any) error {
	body, err := Body(r, most)
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	if err := strictjson.Unmarshal(body, into); err != nil {
		return Bad("the body: %w", err)
	}
	return nil
}

// Array reads a body that is an array of texts. of says which, for the error.
func Array(r *http.Request, most int64, of string) (texts []string, err error) {
	body, err := Body(r, most)
	if err != nil {
		return nil, err
	}
	if err := strictjson.Unmarshal(body, &texts); err != nil || texts == nil {
		return nil, Bad("the body must be a JSON array %s", of)
	}
	return texts, nil
}

// Query returns the parameters of a request. An unknown or repeated parameter is an error:
// a misspelt dry_run must not become a change.
func Query(r *http.Request, names ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, Bad("the query cannot be read: %w", err)
	}
	for name, values := range query {
		if !slices.Contains(names, name) {
			return nil, Bad("there is no parameter %q; known are %q", name, names)
		}
		if len(values) > 1 {
			return nil, Bad("the parameter %s is given twice", name)
		}
	}
	return query, nil
}

// Flag reads a parameter that is 1 or 0 (or true or false); absent is false.
func Flag(query url.Values, name string) (bool, error) {
	switch query.Get(name) {
	case "1", "true":
		return true, nil
	case "0", "false", "":
		return false, nil
	}
	return false, Bad("%s must be 1 or 0", name)
}
