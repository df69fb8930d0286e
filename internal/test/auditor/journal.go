package auditor

import (
	"fmt"
	"strconv"
	"strings"
)

// Units is a quantity of a cell.
type Units struct {
	Cell string
	Qty  int64
}

// Movement is one movement of stock, as docs/books.md#the-journal has it.
type Movement struct {
	Seq, Time int64
	Kind, ID  string
	Was       string
	Lines     []Units
	Buyer     string // keyed hash
	Cause     string
	Record    string
	Merges    bool // the first of another epoch: what a rebuild has merged begins here
}

func (m Movement) String() string {
	return fmt.Sprintf("movement %d: %s %s, was %q, %v, cause %q", m.Seq, m.Kind, m.ID, m.Was, m.Lines, m.Cause)
}

// Shard is what Redis keeps of a sale.
type Shard struct {
	Sale      string
	Movements []Movement // from the first on
	Cells     map[string]string
	Limits    map[string]string
	Records   map[string]string
	Deadlines []string // reservations listed as held
	InDoubt   []string
	Unbacked  []string
	Waitlist  map[string]string // fields of the people who wait
}

// Entry is one entry of the stream: its id and the fields time and movements.
type Entry struct {
	ID, Time, Movements string
}

// ParseEntries reads entries in their order. An entry's id is the number of its last
// movement, and each begins where the one before it ended.
func ParseEntries(entries []Entry) ([]Movement, error) {
	var all []Movement
	for _, e := range entries {
		last, err := strconv.ParseInt(strings.TrimSuffix(e.ID, "-0"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("entry %q: its id is not <seq>-0", e.ID)
		}
		at, err := strconv.ParseInt(e.Time, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("entry %q: time %q", e.ID, e.Time)
		}
		lines := strings.Split(e.Movements, "\n")
		for i, line := range lines {
			m, err := ParseMovement(line)
			if err != nil {
				return nil, fmt.Errorf("entry %q: %w", e.ID, err)
			}
			m.Seq, m.Time = last-int64(len(lines)-1-i), at
			all = append(all, m)
		}
	}
	return all, nil
}

// ParseMovement reads the seven fields of a movement.
func ParseMovement(text string) (Movement, error) {
	f := strings.SplitN(text, "\t", 7)
	if len(f) != 7 {
		return Movement{}, fmt.Errorf("a movement of %d fields: %q", len(f), text)
	}
	lines, err := ParseUnits(f[3])
	return Movement{Kind: f[0], ID: f[1], Was: f[2], Lines: lines, Buyer: f[4], Cause: f[5], Record: f[6]}, err
}

// ParseUnits reads "cell quantity cell quantity …".
func ParseUnits(text string) ([]Units, error) {
	words := strings.Fields(text)
	if len(words)%2 != 0 {
		return nil, fmt.Errorf("lines %q: a cell without a quantity", text)
	}
	var lines []Units
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i+1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("lines %q: quantity %q", text, words[i+1])
		}
		lines = append(lines, Units{words[i], n})
	}
	return lines, nil
}

// recordField is a field of a record by its number in docs/books.md#the-journal, from 1.
func recordField(record string, number int) string {
	f := strings.Split(record, "\t")
	if number > len(f) {
		return ""
	}
	return f[number-1]
}
