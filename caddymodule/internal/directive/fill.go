package directive

import (
	"errors"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// ErrPlaceholder says that a value has a placeholder that Caddy does not know when a configuration
// loads. Errors of this file are what is said of a value, without the value.
var ErrPlaceholder = errors.New("has a placeholder that is not known here; use {env.NAME} or {file./path}")

var errEmpty = errors.New("is empty; is the variable or file that it names there?")

// Fill fills in the placeholders of a value. Caddy leaves one that it does not know as it is: a value
// that is one still would be taken for a secret that anyone can guess, or for a host.
func Fill(value string) (string, error) {
	value = caddy.NewReplacer().ReplaceKnown(value, "")
	if text := strings.TrimSpace(value); strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") {
		return "", ErrPlaceholder
	}
	return value, nil
}

// FillSecret is Fill of a value that may not be empty.
func FillSecret(value string) (string, error) {
	value, err := Fill(value)
	if err == nil && strings.TrimSpace(value) == "" {
		return "", errEmpty
	}
	return value, err
}
