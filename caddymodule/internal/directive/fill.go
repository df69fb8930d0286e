package directive

import (
	"errors"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// errPlaceholder says that a value has a placeholder that Caddy does not know when a configuration
// loads. Errors of this file are what is said of a value, without the value.
var errPlaceholder = errors.New(`has a placeholder that is not known here; use {env.NAME} or {file./path}, and \{ for a brace`)

var errEmpty = errors.New("is empty; is the variable or file that it names there?")

// Fill fills in the placeholders of a value. One that Caddy does not know would stay as it is, and be
// taken for a secret that anyone can guess, or for a host.
func Fill(value string) (string, error) {
	value, err := caddy.NewReplacer().ReplaceOrErr(value, false, true)
	if err != nil {
		return "", errPlaceholder
	}
	return value, nil
}

// FillSecret is Fill of a value that may not be empty: a secret, or a name that is required.
func FillSecret(value string) (string, error) {
	value, err := Fill(value)
	if err == nil && strings.TrimSpace(value) == "" {
		return "", errEmpty
	}
	return value, err
}
