package capacity

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WriteTo prints the plan with its arithmetic.
func (p *Plan) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	s := &p.Sale
	fmt.Fprintf(&b, "%s buyers in %s s, %s: %s\n", number(float64(s.Buyers)), number(s.Seconds), s.protocol(), p.summary())
	width := 0
	for _, step := range p.Steps {
		if step.Formula != "" {
			width = max(width, utf8.RuneCountInString(step.Name))
		}
	}
	for _, step := range p.Steps {
		if step.Formula == "" {
			fmt.Fprintf(&b, "\n%s\n", step.Name)
			continue
		}
		result := strings.TrimSpace(number(step.Value) + " " + step.Unit)
		if step.Unit == "/s" {
			result = number(step.Value) + "/s"
		}
		fmt.Fprintf(&b, "  %s  %s = %s\n", padded(step.Name, width), step.Formula, result)
	}
	fmt.Fprintf(&b, "\nRates, which flags of the same names replace by your own\n")
	width = 0
	for _, r := range p.Rates {
		width = max(width, len(r.Flag))
	}
	for _, r := range p.Rates {
		fmt.Fprintf(&b, "  %s  %s %s: %s\n", padded(r.Flag, width), number(r.Value), r.Unit, r.Source)
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// summary is what the sale needs, in one line.
func (p *Plan) summary() string {
	n := &p.Needs
	plural := func(count int64, word string) string {
		if count != 1 {
			word += "s"
		}
		return number(float64(count)) + " " + word
	}
	return fmt.Sprintf("%s with %s and %s GiB each, %s of Redis", plural(n.Edges, "edge"), plural(int64(p.Sale.Cores), "core"), number(n.EdgeMemory), plural(n.Shards, "shard"))
}

func padded(text string, width int) string {
	return text + strings.Repeat(" ", width-utf8.RuneCountInString(text))
}

// number writes a number with three significant digits or more: 12,345, 123, 12.3, 0.0123.
func number(f float64) string {
	if f == math.Trunc(f) || math.Abs(f) >= 1000 {
		return thousands(f)
	}
	digits := 0
	if f != 0 {
		digits = max(0, 2-int(math.Floor(math.Log10(math.Abs(f)))))
	}
	text := strconv.FormatFloat(f, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func thousands(f float64) string {
	digits := strconv.FormatFloat(math.Round(math.Abs(f)), 'f', 0, 64)
	var b strings.Builder
	if f < 0 {
		b.WriteByte('-')
	}
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
