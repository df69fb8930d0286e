package directive

import (
	"regexp"
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// aboutOption is the beginning of an error about an option: its name, and which one it is where it may be given
// more than once: "rate, number 2: …", "jwt: number 2 of 2: …" or "identity phone: …".
var aboutOption = regexp.MustCompile(`^([a-z_]+)(?:[,:] number (\d+)| ([^\s:]+))?`)

// WrapOption adds a file and a line to an error about options that were read: where the option is with whose name the error
// begins, or else where the directive is. at is at the directive's name.
func WrapOption(at caddyfile.Dispenser, err error) error {
	if err == nil {
		return nil
	}
	about := aboutOption.FindStringSubmatch(err.Error())
	if about == nil {
		return at.WrapErr(err)
	}
	found, number := at, 0
	for d, depth, line := at, 0, at.Line(); d.Next(); line = d.Line() {
		switch {
		case d.Val() == "{":
			depth++
		case d.Val() == "}":
			depth--
		case depth == 1 && d.Val() == about[1] && d.Line() != line:
			number++
			argument := d
			named := about[3] != "" && argument.NextArg() && argument.Val() == about[3]
			if number == 1 || named || strconv.Itoa(number) == about[2] {
				found = d
			}
			if named {
				return found.WrapErr(err)
			}
		}
	}
	return found.WrapErr(err)
}
