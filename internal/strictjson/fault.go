package strictjson

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// fault is what is wrong with a text, and where.
type fault struct {
	cause error
	// whole: the cause is a sentence of its own, not one that the place begins.
	whole bool
	// nowhere: the text is no JSON, so it has no places.
	nowhere bool
	// place has the innermost step first.
	place []step
}

// step leads into a value: to the member of that name, or to an element, from 1.
type step struct {
	name   string
	number int
}

// Error is such as "lines number 2: qty must be a whole number".
func (f *fault) Error() string {
	var b strings.Builder
	for i, s := range slices.Backward(f.place) {
		outermost := i == len(f.place)-1
		switch {
		case s.number > 0 && !outermost:
			b.WriteByte(' ')
		case !outermost && f.place[i+1].number > 0:
			b.WriteString(": ")
		case !outermost:
			b.WriteByte('.')
		}
		if s.number > 0 {
			b.WriteString("number " + strconv.Itoa(s.number))
		} else {
			b.WriteString(label(s.name))
		}
	}
	switch {
	case len(f.place) > 0 && f.whole:
		b.WriteString(": ")
	case len(f.place) > 0:
		b.WriteByte(' ')
	case !f.whole:
		b.WriteString("it ")
	}
	return b.String() + f.cause.Error()
}

func (f *fault) Unwrap() error { return f.cause }

// predicate goes on where the name of the value ends.
func predicate(text string) error { return &fault{cause: errors.New(text)} }

func sentence(text string) error { return &fault{cause: errors.New(text), whole: true} }

func syntax(err error) error {
	return &fault{cause: fmt.Errorf("the JSON cannot be read: %w", err), whole: true, nowhere: true}
}

func unknown(name string, known []string) error {
	if len(known) == 0 {
		return sentence(fmt.Sprintf("there is no field %.40q; none is known", name))
	}
	slices.Sort(known)
	return sentence(fmt.Sprintf("there is no field %.40q; known are %s", name, strings.Join(known, ", ")))
}

// within adds the member, and at the element, in which an error was found.
func within(name string, err error) error { return outward(err, step{name: name}) }

func at(number int, err error) error { return outward(err, step{number: number}) }

func outward(err error, s step) error {
	if err == nil {
		return nil
	}
	f, ok := err.(*fault)
	if !ok {
		f = &fault{cause: err}
	}
	if !f.nowhere {
		f.place = append(f.place, s)
	}
	return f
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,40}$`)

// label is a name as it stands in an error: a text that a stranger wrote is short and quoted.
func label(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return fmt.Sprintf("%.40q", name)
}

func keys[T any](of map[string]T) []string { return slices.Collect(maps.Keys(of)) }
