package list

import "net/netip"

// key is an entry as a file's list keeps it: its form, for text the length in one
// or two bytes, its bytes. No key is the beginning of another one.
const maxKey = 1 + 2 + MaxValue

// appendText appends the key of a text to b.
func appendText(b []byte, f form, value string) []byte {
	b = append(b, byte(f))
	if n := len(value); n < 0x80 {
		b = append(b, byte(n))
	} else {
		b = append(b, 0x80|byte(n>>8), byte(n))
	}
	return append(b, value...)
}

// appendPrefix appends the key of a prefix to b.
func appendPrefix(b []byte, p netip.Prefix) []byte {
	b = append(b, byte(prefixForm(p)))
	if p.Addr().Is4() {
		a := p.Addr().As4()
		return append(b, a[:]...)
	}
	a := p.Addr().As16()
	return append(b, a[:]...)
}

func (e Entry) appendKey(b []byte) []byte {
	if e.Kind == IP {
		return appendPrefix(b, e.Prefix)
	}
	return appendText(b, textForm(e.Kind), e.Value)
}

// keyLen is the length of the key at the front of b; 0: there is none.
func keyLen(b []byte) int {
	switch f := form(b[0]); {
	case f == 0:
		return 0
	case f >= formIPv6:
		return 1 + 16
	case f >= formIPv4:
		return 1 + 4
	case b[1] < 0x80:
		return 2 + int(b[1])
	default:
		return 3 + int(b[1]&0x7f)<<8 + int(b[2])
	}
}
