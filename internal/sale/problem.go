package sale

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxProblems is how many problems one answer lists. More do not help, and a file full
// of mistakes must not make an answer of its own size.
const maxProblems = 100

// Problem is one thing that is wrong with a sale.
type Problem struct {
	// Line counts from 1; 0: the sale did not come from a file.
	Line int `json:"line,omitempty"`
	// Field is where it is, as in items[0].stock; empty: the whole file.
	Field string `json:"field,omitempty"`
	// Text says what is wrong and what to do.
	Text string `json:"text"`
}

// String is the problem as a message: "line 7: items[0].stock: must …".
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Field != "" {
		b.WriteString(p.Field)
		b.WriteString(": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Problems is everything that is wrong with a sale, by line. It is the error
// that Parse, Decode, New and Validate return. The first hundred are listed; if
// there are more, the last entry says how many.
type Problems []Problem

// Error lists the problems, one per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// findings collects problems while a sale is read and checked.
type findings struct {
	list Problems
	more int
}

func (f *findings) add(line int, field, format string, args ...any) {
	if len(f.list) == maxProblems {
		f.more++
		return
	}
	f.list = append(f.list, Problem{line, field, fmt.Sprintf(format, args...)})
}

func (f *findings) any() bool { return len(f.list) > 0 }

// err is nil if nothing was found.
func (f *findings) err() error {
	if !f.any() {
		return nil
	}
	slices.SortStableFunc(f.list, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	if f.more > 0 {
		f.list = append(f.list, Problem{Text: fmt.Sprintf("and %d more", f.more)})
	}
	return f.list
}

// quote shows a piece of the input: safe to print, and short.
func quote(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "…"
	}
	return fmt.Sprintf("%+q", s)
}

// nearest returns the known name that word probably misspells; empty: none.
func nearest(word string, names []string) string {
	if len(word) > MaxName {
		return ""
	}
	word = strings.ToLower(word)
	best, least := "", 3
	for _, name := range names {
		switch d := distance(word, name); {
		case d < least && d < len(name):
			best, least = name, d
		case best == "" && len(word) >= 3 && strings.HasPrefix(name, word):
			best = name
		}
	}
	return best
}

// distance counts the insertions, deletions, substitutions and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			same := last[j-1]
			if a[i-1] != b[j-1] {
				same++
			}
			row[j] = min(same, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
