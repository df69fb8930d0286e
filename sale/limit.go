package sale

import (
	"slices"
	"strings"
)

// ID names the kind of a limit: per, every, count and the SKU if it has one, as
// in "buyer:sale:units:20002001" or "address+phone:day:orders". Two limits of one
// kind count the same thing, so the counters of a limit stay with it whatever its
// place in the file, the order of its identities or its Max. The name is ASCII
// without space and '|', and no two kinds share one.
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

// escape writes all but letters, digits and .-_ as %XX, so that neither the
// separator nor a script's own one ever comes from a SKU.
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
