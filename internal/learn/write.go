package learn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Addresses says where the configuration is to run. The zero value is what operators get; the check of a
// configuration has its own.
type Addresses struct {
	Global   string // global options of Caddy
	Store    string // options of stockgate, in place of a Redis
	Site     string // address of the site
	Bind     string // where the site listens
	Shop     string // host:port
	TokenKey string // of jwt, such as hmac SECRET
	Webhook  string // secret of the webhook
}

// Caddyfile writes the configuration. Each line has the recorded request above it on which it rests, or the
// question that is open.
func (l *Learned) Caddyfile(t Addresses) string {
	if l.plan.known != nil {
		return l.knownCaddyfile(t)
	}
	w := &writer{learned: l}
	l.global(w, t)
	p := l.plan
	site := p.atRoot[0]
	if t.Site != "" {
		site.text = t.Site
	}
	w.open(site)
	if t.Bind != "" {
		w.line("bind " + t.Bind)
	}
	l.gate(w)
	for _, o := range p.after {
		w.option(o)
	}
	w.option(option{"reverse_proxy " + shopAddress, l.shopBecause()})
	w.close()
	return l.fill(w.String(), t)
}

// shopBecause names the order where it was sent to the address of the shop itself.
func (l *Learned) shopBecause() string {
	switch l.plan.shop {
	case l.plan.given:
		return "--shop"
	case l.Order.URL.Host:
		return because("went there", l.Order)
	}
	return ""
}

func (l *Learned) global(w *writer, t Addresses) {
	w.line("{")
	w.indent++
	if t.Global != "" {
		w.line(t.Global)
	}
	w.line("stockgate {")
	w.indent++
	if t.Store != "" {
		w.line(t.Store)
	} else {
		w.option(option{text: "redis 127.0.0.1:6379"})
	}
	w.close()
	w.close()
	w.line("")
}

// gate writes the matcher, the guard, the check and the gate.
func (l *Learned) gate(w *writer) {
	p := l.plan
	matcher := p.matcher[0].text
	if len(p.matcher) > 1 {
		matcher = "@order"
		w.block(option{text: "@order"}, p.matcher)
	}
	if len(p.changes) > 0 {
		w.block(option{text: "@changes"}, p.changes)
	}
	w.option(option{text: "stockgate_guard"})
	if len(p.check) > 0 {
		w.block(option{"stockgate_check @changes turns", because("may change the cart", l.changing()...)}, p.check)
	}
	why := because("places the order", l.Order)
	w.block(option{"stockgate " + matcher + " checkout", why}, p.gate)
}

// changing returns an example of what the check is for.
func (l *Learned) changing() []*Exchange {
	i := slices.IndexFunc(l.Others, (*Exchange).changes)
	if i < 0 {
		return nil
	}
	return l.Others[i : i+1]
}

// about names the question whose line begins so.
func (l *Learned) about(line string) string {
	for i, q := range l.Questions {
		if strings.HasPrefix(q.Line, line) {
			return seeQuestion(i + 1)
		}
	}
	return ""
}

// why says on what a line rests: recorded requests, and the questions about it.
func (l *Learned) why(o option) string {
	parts := []string{o.why}
	first, _, _ := strings.Cut(o.text, "\n")
	for i, q := range l.Questions {
		if q.Line == strings.TrimSuffix(first, " {") || q.Line == first {
			if see := seeQuestion(i + 1); see != o.why {
				parts = append(parts, see)
			}
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}

// fill puts the target's addresses in.
func (l *Learned) fill(text string, t Addresses) string {
	shop, key := t.Shop, t.TokenKey
	if shop == "" {
		shop = l.plan.shop
	}
	if key == "" {
		key = l.plan.jwt
	}
	pairs := []string{shopAddress, shop, tokenKey, key}
	if t.Webhook != "" {
		pairs = append(pairs, "{env.WEBHOOK_SECRET}", t.Webhook, "{env.WEBHOOK_ID}", "CHECK1")
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// writer writes blocks with tabs.
type writer struct {
	strings.Builder
	learned *Learned
	indent  int
}

func (w *writer) line(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			w.WriteString(strings.Repeat("\t", w.indent))
		}
		w.WriteString(line + "\n")
	}
}

func (w *writer) option(o option) {
	if why := w.learned.why(o); why != "" {
		w.line("# " + why)
	}
	w.line(o.text)
}

func (w *writer) open(o option) {
	o.text += " {"
	w.option(o)
	w.indent++
}

func (w *writer) block(head option, inner []option) {
	w.open(head)
	for _, o := range inner {
		w.option(o)
	}
	w.close()
}

func (w *writer) close() {
	w.indent--
	w.line("}")
}

// Window is when a sale is open, and how much it has of each item.
type Window struct {
	From, To time.Time
	Stock    int64
}

// SaleID is the id of the sale that is written.
const SaleID = "sale"

// SaleFile writes the sale file of the items that were ordered.
func (l *Learned) SaleFile(window Window) string {
	var items []string
	most := int64(0)
	for _, line := range l.Lines {
		most += line.Quantity
		ids := ""
		if line.ID != "" && line.ID != line.SKU {
			ids = ", ids: [" + strconv.Quote(line.ID) + "]"
		}
		item := fmt.Sprintf("  - {sku: %s%s, stock: %d}", strconv.Quote(line.SKU), ids, window.Stock)
		if !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	return fmt.Sprintf(`id: %s
# %s
starts_at: %s
ends_at: %s
items:
  # %s
%s
limits:
  # as many as were ordered in the recording
  - {per: buyer, every: sale, max: %d, count: units}
`, SaleID, l.about("items:"), window.From.Format(time.RFC3339), window.To.Format(time.RFC3339), because("", l.Order), strings.Join(items, "\n"), most)
}

// QuestionsFile writes the questions, and the warnings of Caddy about the configuration.
func (l *Learned) QuestionsFile(warnings []string) string {
	var b strings.Builder
	b.WriteString("# Questions\n\nThe recordings do not answer these. Answer each in the line that is named, in the Caddyfile or in sale.yaml; then try the gate (docs/connect.md).\n")
	for i, q := range l.Questions {
		fmt.Fprintf(&b, "\n## %d. %s\n\n%s\n\n```\n%s\n```\n", i+1, q.Title, q.Text, q.Line)
	}
	if len(warnings) > 0 {
		b.WriteString("\n## Warnings\n\nCaddy says about this configuration:\n\n")
		for _, w := range warnings {
			b.WriteString("- " + w + "\n")
		}
	}
	if len(l.Notes) > 0 {
		b.WriteString("\n## Not read\n\n")
		for _, note := range l.Notes {
			b.WriteString("- " + note + "\n")
		}
	}
	return l.fill(b.String(), Addresses{})
}

// Leak returns an error if a text has a value that must not be written.
func (l *Learned) Leak(text string) error {
	text = strings.ReplaceAll(text, l.plan.host, "")
	if l.hidden.leaked(text) != "" {
		return fmt.Errorf("a value of a personal field or a credential of the recording would stand in what is written: it is not written; please report this, without the recording")
	}
	return nil
}
