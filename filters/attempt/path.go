package attempt

import (
	"errors"
	"strconv"
	"strings"
)

// segment is one step of a JSON path: into a member of an object, or into an
// element of an array.
type segment struct {
	name  string
	index int // -1: a member of an object
}

// parsePath reads a dotted path: names of members, decimal numbers as indexes
// of arrays, and \. for a dot inside a name.
func parsePath(p string) ([]segment, error) {
	var (
		segs []segment
		name strings.Builder
		bare = true // no escape in this segment, so digits are an index
	)
	end := func() error {
		s := segment{name: name.String(), index: -1}
		if s.name == "" {
			return errors.New("the path has an empty step")
		}
		if bare && s.name == "*" {
			return errors.New("a * reads nothing: for all elements of an array write `lines {json.items} sku quantity`")
		}
		if !plain(s.name) {
			return errors.New("a JSON name must be UTF-8 without control characters")
		}
		if bare && isDecimal(s.name) {
			i, err := strconv.Atoi(s.name)
			if err != nil || i > 999 || s.name != strconv.Itoa(i) {
				return errors.New("an array's index is a number from 0 to 999")
			}
			s.index = i
		}
		segs = append(segs, s)
		name.Reset()
		bare = true
		return nil
	}
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '\\':
			if i+1 == len(p) || p[i+1] != '.' && p[i+1] != '\\' {
				return nil, errors.New(`write \. for a dot in a name: a backslash stands only before a dot or a backslash`)
			}
			i++
			bare = false
			name.WriteByte(p[i])
		case p[i] == '.':
			if err := end(); err != nil {
				return nil, err
			}
		default:
			name.WriteByte(p[i])
		}
	}
	if err := end(); err != nil {
		return nil, err
	}
	if len(segs) > maxDepth {
		return nil, errors.New("the path is longer than a document may be deep: 32 levels")
	}
	return segs, nil
}

func isDecimal(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
