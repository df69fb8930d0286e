package language

import (
	"bytes"
	"strings"
)

const (
	// mostHeader bounds the bytes of an Accept-Language that is read. A client that sends more
	// gets the default.
	mostHeader = 500
	// mostTag bounds a language tag, as RFC 5646, section 4.4.1 suggests.
	mostTag = 35
	// mostWeight is q=1: weights count in thousandths.
	mostWeight = 1000
)

// Choose returns the number of the language that a client prefers, by the values of its
// Accept-Language. It skips ranges that it cannot read; if none is left, the default is chosen. It
// allocates nothing.
func (o *Offered) Choose(fields []string) int {
	length := 0
	for _, field := range fields {
		length += len(field)
	}
	if len(o.tags) < 2 || length > mostHeader {
		return 0
	}
	best, weight, others := 0, 0, 0
	named := uint64(0)
	for _, field := range fields {
		for more := true; more; {
			var item string
			item, field, more = strings.Cut(field, ",")
			tag, w, ok := readItem(item)
			if !ok {
				continue
			}
			if tag == "*" {
				others = max(others, w)
				continue
			}
			i, ok := o.lookup(tag)
			switch {
			case !ok:
			case w == mostWeight:
				return i // what follows is not preferred to it
			default:
				named |= 1 << i
				if w > weight {
					best, weight = i, w
				}
			}
		}
	}
	if others > weight {
		for i := range o.tags {
			if named&(1<<i) == 0 {
				return i
			}
		}
	}
	return best
}

// readItem reads a language range with its weight.
func readItem(item string) (tag string, weight int, ok bool) {
	tag, parameter, weighted := strings.Cut(item, ";")
	tag = strings.Trim(tag, " \t")
	if !weighted {
		return tag, mostWeight, tag != ""
	}
	weight, ok = readWeight(strings.Trim(parameter, " \t"))
	return tag, weight, ok && tag != ""
}

// readWeight reads a weight such as q=0.5 (RFC 9110, section 12.4.2).
func readWeight(text string) (weight int, ok bool) {
	if len(text) < 3 || text[0]|0x20 != 'q' || text[1] != '=' || text[2] != '0' && text[2] != '1' {
		return 0, false
	}
	weight = int(text[2]-'0') * mostWeight
	text = text[3:]
	if text == "" {
		return weight, true
	}
	if text[0] != '.' || len(text) > 4 {
		return 0, false
	}
	for i, unit := 1, mostWeight/10; i < len(text); i, unit = i+1, unit/10 {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		weight += int(text[i]-'0') * unit
	}
	return weight, weight <= mostWeight
}

// lookup finds the language to which a range leads, which it shortens from its end until there
// is one.
func (o *Offered) lookup(tag string) (i int, ok bool) {
	var room [mostTag]byte
	if len(tag) > mostTag {
		return 0, false
	}
	for i := range len(tag) {
		c := tag[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-':
		default:
			return 0, false
		}
		room[i] = c
	}
	for text := room[:len(tag)]; ; {
		if i, ok := o.by[string(text)]; ok {
			return i, true
		}
		cut := bytes.LastIndexByte(text, '-')
		if cut < 0 {
			return 0, false
		}
		if cut >= 2 && text[cut-2] == '-' { // a single letter begins what follows it
			cut -= 2
		}
		text = text[:cut]
	}
}
