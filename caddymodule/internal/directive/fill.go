package directive

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// An error of this file never repeats the value, which may be a secret. It names the placeholder.
var (
	errPlaceholder = errors.New(`has a placeholder that is not known here; use {env.NAME} or {file./path}, and \{ for a brace`)
	errEmpty       = errors.New("is empty")
)

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
	filled, err := Fill(value)
	if err == nil && strings.TrimSpace(filled) == "" {
		if err = unset(value); err == nil {
			err = errEmpty
		}
	}
	return filled, err
}

// FillAll is Fill of a value in which no placeholder may be empty: without its host, an address is another
// one.
func FillAll(value string) (string, error) {
	filled, err := Fill(value)
	if err == nil {
		err = unset(value)
	}
	return filled, err
}

var placeholder = regexp.MustCompile(`\{[^{}]+\}`)

// unset returns an error that names the first placeholder of a value that is empty; nil: there is none.
func unset(value string) error {
	for _, name := range placeholder.FindAllString(value, -1) {
		if text, err := Fill(name); err == nil && strings.TrimSpace(text) == "" {
			return fmt.Errorf("is empty, because %s is; is the variable or file that it names there?", name)
		}
	}
	return nil
}
