package bearer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Claim is a claim that a token must have.
type Claim struct {
	// Name is a dotted path, such as realm_access.roles, in which `\.` is a dot of a name. A name that
	// begins with http:// or https:// and has no backslash is one name with its dots.
	Name string
	// Values are what it may be: as a string, a boolean or a whole number, or as an element of
	// an array. The words of scope and scp are values too (RFC 8693, section 4.2).
	Values []string
}

// requirement is a Claim that is compiled.
type requirement struct {
	path   []string
	values []string
	words  bool
	lacks  Invalid
}

// maxExact bounds the whole numbers that a decoded claim has exactly.
const maxExact = 1 << 53

func newRequirements(claims []Claim) ([]requirement, error) {
	all := make([]requirement, 0, len(claims))
	for _, c := range claims {
		path, err := claimPath(c.Name)
		if err == nil && (len(c.Values) == 0 || slices.Contains(c.Values, "")) {
			err = errors.New("name one value or more, none of them empty")
		}
		if err != nil {
			return nil, fmt.Errorf("require %s: %w", c.Name, err)
		}
		all = append(all, requirement{path, c.Values, len(path) == 1 && (path[0] == "scope" || path[0] == "scp"), lacks(path)})
	}
	return all, nil
}

// claimPath reads the name of a claim.
func claimPath(name string) ([]string, error) {
	switch isURL := strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://"); {
	case strings.ContainsAny(name, "{}"):
		return nil, errors.New("write the name of the claim alone, without braces: require roles buyer")
	case isURL && !strings.Contains(name, `\`):
		return []string{name}, nil
	}
	steps := strings.Split(strings.NewReplacer(`\.`, "\x00").Replace(name), ".")
	for i, step := range steps {
		if steps[i] = strings.ReplaceAll(step, "\x00", "."); step == "" {
			return nil, errors.New("the path has an empty step")
		}
		if strings.Contains(step, `\`) {
			return nil, errors.New(`write \. for a dot in a name: a backslash stands only before a dot`)
		}
	}
	return steps, nil
}

// lacks says that a token does not have a claim. An error_description has neither quotes nor characters beyond ASCII
// (RFC 6750, section 3).
func lacks(path []string) Invalid {
	name := strings.Join(path, ".")
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		return "the bearer token does not have a claim with a value that is required"
	}
	return Invalid("the bearer token does not have the claim " + name + " with a value that is required")
}

// holds tells whether the claims have what is required.
func (r *requirement) holds(all map[string]any) bool {
	var at any = all
	for _, step := range r.path {
		object, _ := at.(map[string]any)
		at = object[step]
	}
	if list, ok := at.([]any); ok {
		return slices.ContainsFunc(list, r.is)
	}
	if text, ok := at.(string); ok && r.words {
		return slices.ContainsFunc(strings.Fields(text), func(word string) bool { return slices.Contains(r.values, word) })
	}
	return r.is(at)
}

// is tells whether one value is one of those that are required.
func (r *requirement) is(v any) bool {
	switch v := v.(type) {
	case string:
		return slices.Contains(r.values, v)
	case bool:
		return slices.Contains(r.values, strconv.FormatBool(v))
	case float64:
		return v > -maxExact && v < maxExact && slices.Contains(r.values, strconv.FormatFloat(v, 'f', -1, 64))
	}
	return false
}
