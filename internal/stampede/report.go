package stampede

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// Report is a stampede in numbers, for people and as JSON.
type Report struct {
	Tally *Tally `json:"tally"`
	// Evidence and Verdict are nil without a check.
	Evidence *Evidence    `json:"-"`
	Verdict  *CheckResult `json:"verdict,omitempty"`
}

// WriteTo writes the report in aligned lines.
func (r Report) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	row := func(label, number, note string) {
		fmt.Fprintf(&b, "  %-20s %9s  %s", label, number, note)
		text := strings.TrimRight(b.String(), " ") + "\n"
		b.Reset()
		b.WriteString(text)
	}
	t := r.Tally
	if v := r.Verdict; v != nil && r.Evidence.NoOrders {
		row("oversold", Count(v.Oversold), "")
	} else if v != nil {
		note := fmt.Sprintf("of %s units, in %s orders", Count(v.Stock), Count(v.Orders))
		row("sold", Count(v.Ordered), note)
		row("oversold", Count(v.Oversold), "")
	}
	if t != nil {
		r.answers(row, t)
	}
	if t != nil && t.Waited != nil {
		t.Waited.rows(row)
	}
	if r.Verdict != nil {
		r.stock(row)
	}
	if t != nil && t.Busy > 0 {
		row("answers", Count(t.Answered()), fmt.Sprintf("%s a second while any buyer waited", Count(int(t.AnswersPerSecond()))))
	}
	if t != nil && t.Busy > 0 && t.Answered() > 0 {
		row("latency p50", milliseconds(t.Latency.P50), fmt.Sprintf("p99 %s, longest %s", milliseconds(t.Latency.P99), milliseconds(t.Latency.Max)))
	}
	if t != nil && t.Late != nil {
		row("began late by p99", milliseconds(t.Late.P99), "longest "+milliseconds(t.Late.Max))
	}
	if r.Verdict != nil && len(r.Verdict.Violations) > 0 {
		b.WriteString("\nbroken promises:\n")
		for _, v := range r.Verdict.Violations {
			fmt.Fprintf(&b, "  - %s\n", v)
		}
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// answers adds what the buyers were told.
func (r Report) answers(row func(label, number, note string), t *Tally) {
	if r.Verdict == nil || r.Evidence.NoOrders {
		row("told yes", Count(t.Accepted), "")
	}
	row("refused", Count(t.TotalRefused()), "")
	for _, reason := range slices.SortedFunc(maps.Keys(t.Refused), func(a, b string) int {
		if d := t.Refused[b] - t.Refused[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	}) {
		kind, _ := sale.KindOf(sale.Reason(reason))
		row("  "+reason, Count(t.Refused[reason]), kind.Title)
	}
	if n := t.Unclear(); n > 0 {
		row("answered otherwise", Count(n), statuses(t))
	}
	if n := t.TotalFailed(); n > 0 {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(t.Failed)) {
			kinds = append(kinds, fmt.Sprintf("%s %s", kind, Count(t.Failed[kind])))
		}
		row("no answer", Count(n), strings.Join(kinds, ", "))
	}
}

// stock adds the sum of all cells, which balance or not one by one.
func (r Report) stock(row func(label, number, note string)) {
	var available, held, inDoubt, confirmed, stock int64
	balanced := r.Evidence.Stock.Balanced
	for _, c := range r.Evidence.Stock.Items {
		balanced = balanced && c.Balanced()
		available, held, inDoubt, confirmed, stock = available+c.Available, held+c.Held, inDoubt+c.InDoubt, confirmed+c.Confirmed, stock+c.Stock
	}
	word := "balance"
	if !balanced {
		word = "DO NOT"
	}
	row("books", word, fmt.Sprintf("stock %s = %s available + %s held + %s in doubt + %s confirmed",
		Count(stock), Count(available), Count(held), Count(inDoubt), Count(confirmed)))
}

// rows adds what became of persons who waited.
func (w *Waited) rows(row func(label, number, note string)) {
	row("on the waiting list", Count(w.Entered), "")
	row("  had an offer", Count(w.Offered), fmt.Sprintf("%s of them ordered", Count(w.Ordered)))
	for _, why := range slices.Sorted(maps.Keys(w.Ended)) {
		row("  "+cmp.Or(map[string]string{WaitedInVain: "waited in vain", "left": "left by another request"}[why], why, "not known"), Count(w.Ended[why]), "")
	}
	for _, why := range slices.Sorted(maps.Keys(w.Refused)) {
		kind, _ := sale.KindOf(sale.Reason(why))
		row("  not on it: "+why, Count(w.Refused[why]), kind.Title)
	}
}

// statuses lists how answers ended that neither accepted nor refused.
func statuses(t *Tally) string {
	counts := map[int]int{}
	for _, a := range t.Answers {
		if !a.Accepted && a.Failure == "" {
			counts[a.Status]++
		}
	}
	var words []string
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("status %d: %s", status, Count(counts[status])))
	}
	return strings.Join(words, ", ")
}

// Count writes a number with commas between the thousands.
func Count[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

func milliseconds(d time.Duration) string {
	if d < 10*time.Millisecond {
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64) + " ms"
	}
	return Count(d.Milliseconds()) + " ms"
}
