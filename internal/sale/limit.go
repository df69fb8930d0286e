package sale

import (
	"slices"
	"strings"
)

// ID names the kind of a limit: per, every, count and the SKU if it has one, as
// in "buyer:sale:units:20002001" or "address+phone:day:orders". Two limits of one kind
// count the same thing, so a limit keeps its counters when its position in the file,
// the order of its identities or its Max changes. The name is ASCII without space and
// '|', and is unique to its kind.
func (l Limit) ID() string {
	var b strings.Builder
	b.Grow(len(l.Per) + len(l.Every) + len(l.Count) + len(l.SKU) + 3)
	for i, kind := range slices.Sorted(l.Per.All) {
		if i > 0 {
			b.WriteByte('+')
		}
		escape(&b, kind)
	}
	b.WriteByte(':')
	escape(&b, l.Every)
	b.WriteByte(':')
	escape(&b, l.Count)
	if l.SKU != "" {
		b.WriteByte(':')
		escape(&b, l.SKU)
	}
	return b.String()
}

// inShadow tells of a limit in shadow, for a note.
func (l Limit) inShadow() string {
	if l.Shadow {
		return ", in shadow"
	}
	return ""
}

// escape writes everything but letters, digits and .-_ as %XX, so that a SKU never
// contains this separator or a script's.
func escape(b *strings.Builder, s string) {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
}
