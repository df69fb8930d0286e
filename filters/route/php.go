package route

import "strings"

// PHPName appends what PHP makes of a parameter's name: leading spaces are
// dropped; space, dot and an opening bracket that nothing closes become an
// underscore; NUL ends the name. Space at the end is dropped too: some others trim it.
func PHPName(dst []byte, name string) []byte {
	name, _, _ = strings.Cut(name, "\x00")
	name = strings.Trim(name, " \t\r\n")
	for i := range len(name) {
		switch c := name[i]; c {
		case ' ', '.', '[':
			dst = append(dst, '_')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
