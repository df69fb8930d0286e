package shopdb

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// Fill fills in the placeholders of an address. Its errors begin with name and say which placeholder is empty; they
// repeat nothing else.
func Fill(name, address string) (string, error) {
	known := caddy.NewReplacer()
	var missing error
	filled, err := known.ReplaceFunc(address, func(placeholder string, value any) (any, error) {
		if value == nil || value == "" {
			missing = fmt.Errorf("%s: {%s} is empty: set the variable, or write the file, before the command runs", name, placeholder)
			if !strings.HasPrefix(placeholder, "env.") && !strings.HasPrefix(placeholder, "file.") {
				missing = errors.New(name + ": it has a placeholder that is not known: there are {env.NAME} and {file./path}; write a brace that is none as \\{ or %7B")
			}
			return nil, missing
		}
		return value, nil
	})
	if missing != nil {
		return "", missing
	}
	return filled, err
}

// passwords are the places of a password in the addresses of databases: in a URL, in keywords, in a parameter, and in
// the form of the driver for MySQL.
var passwords = regexp.MustCompile(`^[^/?]*://[^/@]*?:([^@]+)@|\bpassword\s*=\s*'?([^\s'&]+)|^[^:/@]+:(.+)@(?:tcp|unix)\(`)

// ShowsPassword reports whether an address has a password of its own, and not in a placeholder.
func ShowsPassword(address string) bool {
	for _, found := range passwords.FindAllStringSubmatch(address, -1) {
		if password := strings.Join(found[1:], ""); !strings.HasPrefix(password, "{env.") && !strings.HasPrefix(password, "{file.") {
			return true
		}
	}
	return false
}
