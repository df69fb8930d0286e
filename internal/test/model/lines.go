package model

import (
	"strconv"
	"strings"
)

// Line is units of one cell; in the journal they may be negative.
type Line struct {
	Cell  string
	Units int64
}

// Words writes lines as they are kept: "cell units cell units …".
func Words(lines []Line) string {
	words := make([]string, len(lines))
	for i, l := range lines {
		words[i] = l.Cell + " " + strconv.FormatInt(l.Units, 10)
	}
	return strings.Join(words, " ")
}

// summed adds equal cells up, each where it comes first.
func summed(lines []Line) (sum []Line) {
	for _, line := range lines {
		if units(sum, line.Cell) == 0 && line.Units != 0 {
			sum = append(sum, Line{line.Cell, units(lines, line.Cell)})
		}
	}
	return sum
}

// sameUnits reports whether two lists are about the same units, in any order.
func sameUnits(a, b []Line) bool {
	a, b = summed(a), summed(b)
	for _, line := range a {
		if units(b, line.Cell) != line.Units {
			return false
		}
	}
	return len(a) == len(b)
}

// units adds up what lines have of a cell.
func units(lines []Line, cell string) (sum int64) {
	for _, line := range lines {
		if line.Cell == cell {
			sum += line.Units
		}
	}
	return sum
}
