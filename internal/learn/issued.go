package learn

import (
	"regexp"
	"slices"
	"strings"
)

// issued are ids that answers in JSON give to things, and that do not look like words. An id may have letters only,
// and a pattern with it would fit one cart alone.
type issued map[string]bool

func issuedIn(recordings []*Recording) issued {
	ids := make(issued)
	for _, rec := range recordings {
		for _, x := range rec.Exchanges {
			for _, leaf := range leavesOf(x.answerTree()) {
				if slices.Contains(idNames, folded(leaf.name())) && !isWords(leaf.text) {
					ids[leaf.text] = true
				}
			}
		}
	}
	return ids
}

// hasID reports whether a segment of the path is a value: it looks like one, or the shop issued it.
func (x *Exchange) hasID(segment string) bool { return isVariable(segment) || x.issued[segment] }

// Lengths from which a part without a word of shops is no name of a page: with a digit or two capitals side by side, and
// of other letters.
const (
	shortestID      = 8
	shortestLetters = 16
)

var noWord = regexp.MustCompile(`[0-9]|[A-Z]{2}`)

// isWords reports whether a text may be the name of a page or of a step, which answers call an id too.
func isWords(text string) bool {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("-_.~", r) }) {
		named := func(word string) bool { return strings.Contains(folded(part), folded(word)) }
		long := len(part) >= shortestLetters || len(part) >= shortestID && noWord.MatchString(part)
		if long && !slices.ContainsFunc(orderWords, named) && !slices.ContainsFunc(otherWords, named) {
			return false
		}
	}
	return true
}
