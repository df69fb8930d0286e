package learn

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Options are what an operator says beside the recordings.
type Options struct {
	// Order is the entry of the first recording that places the order. Default: the likeliest.
	Order int
	// Shop is where the shop listens, host:port. Default: asked for.
	Shop string
}

// Question is something that no recording shows.
type Question struct {
	Title string
	Text  string
	// Line is the line of the Caddyfile or of the sale file that the answer changes.
	Line string
}

// Learned is what recordings tell of a shop.
type Learned struct {
	Order     *Exchange   // places the order
	Lines     []itemLine  // that were ordered
	Refused   []*Exchange // the same request, refused by the shop
	Others    []*Exchange // all other requests to the shop's host, in order
	Backend   bool        // the shop's answer decides nothing
	Confirms  bool        // the shop's recorded answer confirms the reservation
	Questions []Question
	Notes     []string

	plan   *plan
	hidden secrets
}

type learner struct {
	options    Options
	recordings []*Recording
	documents  documents
	hidden     secrets
	site       string

	order   *candidate
	refused []*candidate
	again   []*candidate // other recordings of an order that was taken
	rivals  []*candidate
	hashes  []*Exchange // GraphQL whose document is unknown

	cart  *cart
	plan  *plan
	looks string // like a known shop: why it is not taken for one
	ask   []Question
}

// Learn infers a configuration. An error says why there is none, and what to record instead.
func Learn(recordings []*Recording, o Options) (*Learned, error) {
	if len(recordings) == 0 || len(recordings[0].Exchanges) == 0 {
		return nil, errors.New("the recording has no request to a shop: record with the network tab open, from the cart to the page of thanks")
	}
	l := &learner{options: o, recordings: recordings, plan: new(plan)}
	l.documents = documentsOf(recordings)
	l.hidden = secretsOf(recordings)
	ids := issuedIn(recordings)
	for _, rec := range recordings {
		for _, x := range rec.Exchanges {
			x.issued = ids
			x.shown = x.pattern(l.hidden)
			if op, _ := l.documents.operation(x); op != nil && l.hidden.path(op.field) {
				x.shown += " " + op.field
			}
		}
	}
	l.site = siteOf(recordings[0].Exchanges[0].URL.Hostname())
	if err := l.chooseOrder(); err != nil {
		return nil, err
	}
	if l.recognise() {
		l.inferKnown()
		return l.learned(), nil
	}
	err := l.complete()
	if err == nil {
		err = l.infer()
	}
	if err != nil && l.looks != "" {
		err = fmt.Errorf("%w. %s", err, l.looks)
	}
	if err != nil {
		return nil, err
	}
	return l.learned(), nil
}

// complete refuses recordings that lack what is needed to tell a buyer or an item.
func (l *learner) complete() error {
	var found []string
	found = append(found, "the order is "+l.order.Name())
	if f := l.requestLines(); f != nil {
		found = append(found, "it names its items itself")
	}
	switch {
	case l.order.LacksBody:
		return fmt.Errorf("%s was recorded without its body (found: %s). %s", l.order.Name(), strings.Join(found, "; "), howToExport)
	case !slices.ContainsFunc(l.fromShop(), (*Exchange).hasCredentials) && !slices.ContainsFunc(l.fromShop(), (*Exchange).setsCookie):
		return fmt.Errorf("%s has neither cookies nor Authorization, so nothing tells the buyer (found: %s). %s", l.order.File, strings.Join(found, "; "), howToExport)
	}
	return nil
}

const howToExport = "Browsers leave these out unless they are told. Chrome and Edge: in the settings of the developer tools, under Preferences, Network, switch on " +
	"\"Allow to generate HAR with sensitive data\"; then hold the export button of the network tab, and choose \"Export HAR (with sensitive data)\". " +
	"Firefox: \"Save All As HAR\" in the network tab; it has cookies and, unless devtools.netmonitor.har.includeResponseBodies is off, bodies"

func (x *Exchange) setsCookie() bool { return x.AnswerHeader.Get("Set-Cookie") != "" }

// fromShop returns the requests of the first recording to the host of the order.
func (l *learner) fromShop() []*Exchange { return l.toHost(l.recordings[0]) }

func (l *learner) toHost(rec *Recording) (all []*Exchange) {
	for _, x := range rec.Exchanges {
		if x.URL.Host == l.order.URL.Host {
			all = append(all, x)
		}
	}
	return all
}

// infer fills the plan.
func (l *learner) infer() error {
	l.place()
	l.askResembling()
	l.askRedis("redis 127.0.0.1:6379")
	if err := l.findItems(); err != nil {
		return err
	}
	if err := l.findBuyer(); err != nil {
		return err
	}
	if !l.canWrite(l.plan.lines.lines) {
		return fmt.Errorf("%s names an item by a value that cannot be written to a sale file, or that looks personal: configure the gate by hand, see docs/configure.md", l.order.Name())
	}
	l.findRef()
	l.findRetries()
	l.findOutcome()
	l.findTurns()
	l.findDoors()
	return nil
}

func (l *learner) askRedis(line string) {
	l.question("Where is the stock kept?", "Give the Redis of the sale, or `store <directory>` for this machine alone (docs/configure.md).", line)
}

// isSKU reports whether a sale file may list an item of that name: printable ASCII, without what quotes or
// begins something in some file.
func isSKU(s string) bool {
	return s != "" && len(s) <= 128 && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("{}\"`<>$\\", r) }) < 0
}

// canWrite reports whether a sale file may list all items.
func (l *learner) canWrite(lines []itemLine) bool {
	return !slices.ContainsFunc(lines, func(line itemLine) bool {
		return !isSKU(line.SKU) || l.hidden.hides(line.SKU) || line.ID != "" && (!isSKU(line.ID) || l.hidden.hides(line.ID))
	})
}

// question adds a question, and returns its number.
func (l *learner) question(title, text, line string) int {
	l.ask = append(l.ask, Question{title, text, line})
	return len(l.ask)
}

func (l *learner) learned() *Learned {
	out := &Learned{Order: l.order.Exchange, Lines: l.plan.lines.lines, Backend: l.plan.backend, Confirms: l.plan.confirms, Questions: l.ask, plan: l.plan, hidden: l.hidden}
	for _, c := range l.refused {
		out.Refused = append(out.Refused, c.Exchange)
	}
	for _, rec := range l.recordings {
		out.Notes = append(out.Notes, rec.Notes...)
		for _, x := range l.toHost(rec) {
			if !l.isOrder(x) {
				out.Others = append(out.Others, x)
			}
		}
	}
	return out
}

// isOrder reports whether a request is one of the orders, whatever was answered.
func (l *learner) isOrder(x *Exchange) bool {
	is := func(c *candidate) bool { return c.Exchange == x }
	return is(l.order) || slices.ContainsFunc(l.refused, is) || slices.ContainsFunc(l.again, is)
}
