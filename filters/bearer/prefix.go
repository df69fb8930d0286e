package bearer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// prefixes are what stands before the values of claims, so that equal values of two issuers differ.
type prefixes []prefix

type prefix struct {
	path []string
	text string
}

func newPrefixes(by map[string]string) (prefixes, error) {
	var all prefixes
	for _, name := range slices.Sorted(maps.Keys(by)) {
		path, err := claimPath(name)
		switch {
		case err != nil:
		case by[name] == "":
			err = errors.New("the text is empty")
		case name == "iss":
			err = errors.New("it tells the issuers apart: put the prefix before another claim, such as sub")
		}
		if err != nil {
			return nil, fmt.Errorf("prefix %s: %w", name, err)
		}
		all = append(all, prefix{path, by[name]})
	}
	return all, nil
}

// apply returns claims with the prefixes. Claims that are not there, or are neither strings nor whole numbers, stay
// as they are.
func (ps prefixes) apply(claims []byte) ([]byte, error) {
	claims = bytes.TrimSpace(claims)
	for _, p := range ps {
		changed, err := p.apply(claims, p.path)
		if err != nil {
			return nil, err
		}
		claims = changed
	}
	return claims, nil
}

func (p *prefix) apply(value json.RawMessage, path []string) (json.RawMessage, error) {
	if len(path) == 0 {
		return p.before(value)
	}
	if value[0] != '{' {
		return value, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(value, &object); err != nil {
		return nil, err
	}
	member, there := object[path[0]]
	if !there {
		return value, nil
	}
	var err error
	if object[path[0]], err = p.apply(member, path[1:]); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// before puts the prefix before a string or a whole number. An empty string is no value, and stays empty.
func (p *prefix) before(value json.RawMessage) (json.RawMessage, error) {
	var text string
	switch c := value[0]; {
	case c == '"':
		if err := json.Unmarshal(value, &text); err != nil || text == "" {
			return value, err
		}
	case c >= '0' && c <= '9':
		// One number has one spelling: a gate refuses all others.
		n, err := strconv.ParseUint(string(value), 10, 64)
		if err != nil || n >= maxExact {
			return value, nil
		}
		text = string(value)
	default:
		return value, nil
	}
	return json.Marshal(p.text + text)
}
