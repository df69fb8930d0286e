package measure

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Print writes one case as a table. Columns in which nothing was measured are left out.
func (c *Case) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s\n", c.Name, c.About)
	columns := []struct {
		title string
		cell  func(Row) string
	}{
		{"peer", func(r Row) string { return r.Peer }},
		{"per second", func(r Row) string { return Thousands(r.Rate.Median) }},
		{"least to most", func(r Row) string { return between(r.Rate) }},
		{"ratio", func(r Row) string { return decimal(r.Ratio, 2) }},
		{"p50 ms", func(r Row) string { return decimal(r.P50.Median, 2) }},
		{"p99 ms", func(r Row) string { return decimal(r.P99.Median, 2) }},
		{"cpu µs each", func(r Row) string { return decimal(r.Micros.Median, 1) }},
		{"busy", func(r Row) string { return decimal(r.Busy.Median, 2) }},
		{"script calls each", func(r Row) string { return decimal(r.Calls.Median, 3) }},
		{"per redis core", func(r Row) string { return Thousands(r.PerCore.Median) }},
		{"redis bytes each", func(r Row) string { return Thousands(r.Bytes.Median) }},
		{"seconds", func(r Row) string { return decimal(r.Whole.Median, 1) }},
		{"cpu seconds", func(r Row) string { return processes(r.CPU) }},
		{"connections", func(r Row) string { return Thousands(float64(r.Connections)) }},
		{"RSS KiB each", func(r Row) string { return decimal(r.Memory.Median, 1) }},
		{"least to most", func(r Row) string { return betweenDecimals(r.Memory) }},
		{"live KiB each", func(r Row) string { return decimal(r.Live.Median, 1) }},
		{"script calls", func(r Row) string { return Thousands(r.Scripts.Median) }},
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	var lines = make([]string, len(c.Rows)+1)
	for i, column := range columns {
		cells, any := make([]string, len(c.Rows)), false
		for j, r := range c.Rows {
			cells[j] = column.cell(r)
			any = any || cells[j] != ""
		}
		if !any {
			continue
		}
		title := column.title
		if i == 0 { // the names stand left
			width := 0
			for _, cell := range cells {
				width = max(width, len(cell))
			}
			title += strings.Repeat(" ", max(0, width-len(title)))
			for j := range cells {
				cells[j] += strings.Repeat(" ", width-len(cells[j]))
			}
		}
		lines[0] += title + "\t"
		for j := range cells {
			if cells[j] == "" {
				cells[j] = "-"
			}
			lines[j+1] += cells[j] + "\t"
		}
	}
	for _, line := range lines {
		fmt.Fprintln(tw, line)
	}
	if c.Sync.Most != 0 {
		defer fmt.Fprintf(w, "the disk syncs a record in %s ms, %s\n", decimal(c.Sync.Median, 2), betweenDecimals(c.Sync))
	}
	return tw.Flush()
}

// PrintGoals writes what was hoped for beside what was measured.
func PrintGoals(w io.Writer, goals []Judged) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "goal\twanted\tmeasured\t\tby cpu")
	for _, g := range goals {
		fmt.Fprintf(tw, "%s: %s\t%s\t%.2f\t%s\t%s\n", g.Case, g.What, g.Goal, g.Got, g.Verdict(), decimal(g.ByCPU, 2))
	}
	return tw.Flush()
}

// Short writes a round number as in a name: 1, 10k, 1m.
func Short(n int) string {
	switch {
	case n > 0 && n%1_000_000 == 0:
		return strconv.Itoa(n/1_000_000) + "m"
	case n > 0 && n%1000 == 0:
		return strconv.Itoa(n/1000) + "k"
	}
	return strconv.Itoa(n)
}

// Thousands writes a number as 12,345; nothing for 0.
func Thousands(f float64) string {
	if f == 0 {
		return ""
	}
	digits := strconv.FormatInt(int64(f+0.5), 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

func decimal(f float64, digits int) string {
	if f == 0 {
		return ""
	}
	return strconv.FormatFloat(f, 'f', digits, 64)
}

func between(s Spread) string {
	if s.Most == 0 {
		return ""
	}
	return Thousands(s.Least) + " to " + Thousands(s.Most)
}

func betweenDecimals(s Spread) string {
	if s.Most == 0 {
		return ""
	}
	return decimal(s.Least, 1) + " to " + decimal(s.Most, 1)
}

func processes(cpu map[string]Spread) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(cpu)) {
		parts = append(parts, fmt.Sprintf("%s %.1f", name, cpu[name].Median))
	}
	return strings.Join(parts, ", ")
}
