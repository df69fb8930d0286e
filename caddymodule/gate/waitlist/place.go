package waitlist

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// told is where a person stands.
type told struct {
	// State is waiting, offered or ended.
	State    string `json:"state"`
	SKU      string `json:"sku,omitempty"`
	Region   string `json:"region,omitempty"`
	Quantity int64  `json:"quantity,omitempty"`
	// Place counts from 1. About is in seconds, by the pace of the last minutes; absent: no offer was made lately.
	Place int   `json:"place,omitempty"`
	About int64 `json:"about,omitempty"`
	// SoldOut: no unit is free, offered, held or in doubt. Who stays is offered later returns.
	SoldOut bool `json:"sold_out,omitempty"`
	// Paused: no offers are made now, because the sale is paused or an operator has paused them.
	Paused bool `json:"paused,omitempty"`
	// Until is when an offer ends, Now the time of the edge; absent: in a pause, which does not count.
	Until time.Time `json:"until,omitzero"`
	Now   time.Time `json:"now,omitzero"`
	// Why says how it has ended: accepted, lapsed, left, closed, or a reason of a refusal. Absent: it is not known.
	Why string `json:"why,omitempty"`
}

// mostTold is room for nearly every told.
const mostTold = 512

// append appends what encoding/json writes, without an allocation.
func (t *told) append(b []byte) []byte {
	b = append(append(append(b, `{"state":"`...), t.State...), '"')
	b = appendText(b, `,"sku":"`, t.SKU)
	b = appendText(b, `,"region":"`, t.Region)
	b = appendNumber(b, `,"quantity":`, t.Quantity)
	b = appendNumber(b, `,"place":`, int64(t.Place))
	b = appendNumber(b, `,"about":`, t.About)
	if t.SoldOut {
		b = append(b, `,"sold_out":true`...)
	}
	if t.Paused {
		b = append(b, `,"paused":true`...)
	}
	b = appendTime(b, `,"until":"`, t.Until)
	b = appendTime(b, `,"now":"`, t.Now)
	return append(appendText(b, `,"why":"`, t.Why), '}')
}

func appendText(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return append(refuse.AppendJSON(append(b, name...), value), '"')
}

func appendNumber(b []byte, name string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, name...), n, 10)
}

func appendTime(b []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return append(t.AppendFormat(append(b, name...), time.RFC3339Nano), '"')
}

// A tag is what a client has been told, in short: o with what is offered and until when, e for ended, and with the place
// w, s when it is sold out, p when offers are paused, b when both are so.
type tag [40]byte

// appendTag appends the tag.
func (t *told) appendTag(b []byte) []byte {
	switch {
	case t.State == "ended":
		return append(b, 'e')
	case t.State == "offered":
		b = append(strconv.AppendInt(append(b, 'o'), t.Quantity, 10), '.')
		if t.Until.IsZero() {
			return b
		}
		return strconv.AppendInt(b, t.Until.UnixMilli(), 10)
	case t.SoldOut && t.Paused:
		b = append(b, 'b')
	case t.SoldOut:
		b = append(b, 's')
	case t.Paused:
		b = append(b, 'p')
	default:
		b = append(b, 'w')
	}
	return strconv.AppendInt(b, int64(t.Place), 10)
}

func (t *told) tag() string {
	var room tag
	return string(t.appendTag(room[:0]))
}

// newsIn is the part of a tag that a change of the place alone leaves as it is.
func newsIn(tag string) string {
	if strings.HasPrefix(tag, "o") {
		return tag
	}
	return tag[:min(1, len(tag))]
}

// asker is who asks at a place: the sale, and the hash of the buyer.
type asker struct {
	runtime     *edge.Edge
	sale, buyer string
}

func (a *asker) listing() (l *edge.Listing, there bool) { return a.runtime.Catalogue().Sale(a.sale) }

// asks reads the place in a path. ok is false where the request has its answer.
func (l *WaitlistHandler) asks(w http.ResponseWriter, r *http.Request) (a asker, ok bool, err error) {
	d := l.OpenRuntime(r, false)
	if d == nil {
		return a, false, l.later(w, r)
	}
	a, ok = askerAt(d.Edge, r.URL.Path)
	if !ok {
		return a, false, caddyhttp.Error(http.StatusNotFound, nil)
	}
	return a, true, nil
}

// askerAt reads the place in a path; false: there is none.
func askerAt(e *edge.Edge, path string) (a asker, ok bool) {
	saleID, buyer, ok := e.ReadWaitTicket(path[strings.LastIndexByte(path, '/')+1:])
	if ok {
		_, ok = e.Catalogue().Sale(saleID)
	}
	return asker{e, saleID, buyer}, ok
}

// later answers while it is not known where a person stands.
func (l *WaitlistHandler) later(w http.ResponseWriter, r *http.Request) error {
	return l.Refuse(w, r, "", time.Now(), refuse.Unavailable)
}

// pollAfter is the least time in seconds between two questions of a person, and pollsPerSecond how many questions
// of all may come to all edges.
const pollAfter, pollsPerSecond = 2, 30_000

// pollIn is in how many seconds a person may ask again when so many are on the list. It is spread: clients that all
// come back in the same second are the next stampede.
func pollIn(people int) int64 {
	wait := leastPoll(people)
	return wait + refuse.Spread(wait)
}

// leastPoll is the least time in seconds between two questions of a person when so many are on the list. The time is
// spread up to its double.
func leastPoll(people int) int64 {
	return max(pollAfter, (int64(people)+pollsPerSecond-1)/pollsPerSecond)
}

// standing is what is told at a place at a moment.
type standing struct {
	told
	// there is false when the sale is not there any more, and known when this edge cannot tell now.
	there, known bool
	// unsure: the person is not on the list as far as this edge has read, and may have entered at another one a moment ago.
	unsure bool
	// people is how many are on the list; 0: this person is not.
	people int
	// cell is for which the person waits.
	cell string
}

// look finds out where a person stands. It allocates nothing.
func (a *asker) look() (s standing) {
	listing, there := a.listing()
	if s.there = there; !there {
		return s
	}
	p, found, known := a.runtime.Waiting(listing, a.buyer)
	switch s.known = known; {
	case !known:
		return s
	case !found || p.Ended != "":
		s.told, s.unsure = told{State: "ended", Why: p.Ended}, listing.IsLive()
		return s
	}
	line, _ := listing.Sale.LineOf(p.Entry.Cell)
	s.cell, s.people = p.Entry.Cell, p.People
	s.told = told{
		State: "waiting", SKU: line.SKU, Region: line.Region, Quantity: p.Entry.Quantity, Place: p.Place, About: int64(p.About / time.Second),
		SoldOut: p.SoldOut, Paused: p.Paused || listing.Status == sale.Paused,
	}
	if p.Entry.Offered {
		s.SoldOut, s.Paused = false, false
		now := listing.Now().UTC()
		s.State, s.Now = "offered", now.Truncate(time.Second)
		if listing.Status != sale.Paused && !p.Entry.Until.IsZero() {
			s.Until = p.Entry.Until.UTC()
		}
	}
	return s
}

// ask is look, and asks Redis whether a person has entered of whom this edge has read no open entry. What Redis cannot tell is not known.
func (a *asker) ask(ctx context.Context) standing {
	s := a.look()
	if listing, there := a.listing(); there && s.unsure {
		listed, err := a.runtime.IsOnList(ctx, listing, a.buyer)
		s.known = err == nil && !listed
	}
	return s
}

// show answers where a person stands: now, when there is news, or as a stream of news.
func (l *WaitlistHandler) show(w http.ResponseWriter, r *http.Request) error {
	a, ok, err := l.asks(w, r)
	if !ok {
		return err
	}
	h := w.Header()
	if takesEvents(r.Header) {
		if over := l.stream(w, r, &a); over {
			return nil
		}
	} else if l.awaitNews(r, &a, h) {
		return nil // its client has left
	}
	s := a.ask(r.Context())
	switch {
	case !s.there:
		return caddyhttp.Error(http.StatusNotFound, nil)
	case !s.known:
		return l.later(w, r)
	}
	etag := `W/"` + s.tag() + `"`
	h["Etag"] = []string{etag}
	if s.people > 0 && h["Preference-Applied"] == nil {
		h["Retry-After"] = []string{strconv.FormatInt(pollIn(s.people), 10)}
	}
	if _, same := knownTag(r.Header, etag); same {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	tell(w, r, http.StatusOK, &s.told)
	return nil
}

// tell answers what a person is told.
func tell(w http.ResponseWriter, r *http.Request, status int, t *told) {
	var room [mostTold]byte
	body := append(t.append(room[:0]), '\n')
	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that has left does not matter
	}
}

var typeJSON = []string{"application/json"}

// knownTag returns a tag that a client has got here (If-None-Match, RFC 9110); empty: none. same: one is the etag.
func knownTag(h http.Header, etag string) (tag string, same bool) {
	for _, line := range h["If-None-Match"] {
		for one := range strings.SplitSeq(line, ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			same = same || one == strings.TrimPrefix(etag, "W/")
			tag = strings.Trim(one, `"`)
		}
	}
	return tag, same
}
