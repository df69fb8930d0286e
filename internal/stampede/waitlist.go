package stampede

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/sale"
)

// DefaultPatience is how long a person waits on the waiting list.
const DefaultPatience = time.Minute

// Waitlist says what buyers do who are told that all units are held, or that it is the turn of others: they enter the
// waiting list of the sale, ask at their place as often as its answers say, and order when they have an offer.
type Waitlist struct {
	// Path of the site is where they enter, by the request of their order. Required.
	Path string
	// Share of those buyers enters, from 0 to 1; the others do as without a list. Default: all.
	Share float64
	// Decline: of the persons with an offer, one in this many leaves. Default: none.
	Decline int
	// Patience is how long a person waits before leaving. Default: 1 minute.
	Patience time.Duration
	// Over ends all waiting: nothing can come back. Default: never.
	Over func() bool
}

// Waited is what became of persons who waited.
type Waited struct {
	// Entered is how many were on the list, and Refused why others could not enter.
	Entered int            `json:"entered"`
	Refused map[string]int `json:"refused"`
	// Offered is how many had an offer, Ordered how many of them were told that they have it.
	Offered int `json:"offered"`
	Ordered int `json:"ordered"`
	// Ended is how others ended, as their places told: lapsed, left (by another request of the person) or another reason;
	// declined: they left with an offer; patience: they waited in vain.
	Ended map[string]int `json:"ended"`
}

// How a person ends that has left the list: without an offer, and with one.
const (
	WaitedInVain = "patience"
	Declined     = "declined"
)

func (w *Waitlist) check() error {
	at, err := url.Parse(w.Path)
	switch {
	case err != nil || at.Host != "" || len(w.Path) == 0 || w.Path[0] != '/':
		return fmt.Errorf("the waiting list at %q: give a path of the site, such as /waitlist", w.Path)
	case !(w.Share >= 0 && w.Share <= 1):
		return fmt.Errorf("a share of %v enters the waiting list: it must lie between 0 and 1", w.Share)
	case w.Decline < 0 || w.Patience < 0:
		return errors.New("on the waiting list no number may be negative")
	}
	return nil
}

// comesBack reports whether a refusal says that units may come back.
func comesBack(refusal string) bool {
	return refusal == string(sale.AllHeld) || refusal == string(sale.NotYourTurn)
}

// enters reports whether the buyer of an order enters the list after a refusal.
func (r *run) enters(n int, refusal string) bool {
	if r.Waitlist == nil || !comesBack(refusal) {
		return false
	}
	share := r.Waitlist.Share
	return share == 0 || share == 1 || rand.New(rand.NewPCG(r.Seed, uint64(n))).Float64() < share
}

// person is a buyer who waits.
type person struct {
	*run
	name          string
	buyer, basket int
	place         *url.URL
}

// wait is a buyer on the waiting list, until they have ordered or give up.
func (r *run) wait(ctx context.Context, buyer, basket int) {
	p := &person{run: r, name: r.name(buyer), buyer: buyer, basket: basket}
	until := time.Now().Add(r.Waitlist.Patience)
	for {
		refusal, after := p.enter(ctx)
		switch {
		case refusal == "":
			r.book.waits(func(w *Waited) { w.Entered++ })
		case refusal == string(sale.UnitsFree): // that was before others took them
			if a := p.orders(ctx); comesBack(a.refusal) && time.Now().Before(until) {
				continue
			}
			return
		case mayPass(refusal) && !p.isOver(until):
			if !loop.Rest(ctx, after, nil) {
				return
			}
			continue
		default:
			r.book.waits(func(w *Waited) { w.Refused[refusal]++ })
			return
		}
		break
	}
	p.ask(ctx, until)
}

// stands is what a place says.
type stands struct{ State, Why string }

// ask asks at the place until the person has an offer or is not on the list.
func (p *person) ask(ctx context.Context, until time.Time) {
	for unsure := 0; ; {
		told, after, err := p.at(ctx, http.MethodGet)
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case err != nil: // asked again: the person is on the list
		case told.State == "offered":
			p.book.waits(func(w *Waited) { w.Offered++ })
			p.use(ctx)
			return
		case told.State == "ended" && told.Why == "" && unsure < 2: // the edge may not have heard yet of the person
			unsure++
		case told.State == "ended":
			p.book.waits(func(w *Waited) { w.Ended[told.Why]++ })
			return
		}
		if p.isOver(until) {
			_, _, _ = p.at(ctx, http.MethodDelete)
			p.book.waits(func(w *Waited) { w.Ended[WaitedInVain]++ })
			return
		}
		if !loop.Rest(ctx, after, nil) {
			return
		}
	}
}

// isOver reports whether the person waits no longer.
func (p *person) isOver(until time.Time) bool {
	return time.Now().After(until) || p.Waitlist.Over != nil && p.Waitlist.Over()
}

// use orders what is offered, or declines it.
func (p *person) use(ctx context.Context) {
	if d := p.Waitlist.Decline; d > 0 && p.offers.Add(1)%int64(d) == 0 {
		if _, _, err := p.at(ctx, http.MethodDelete); err == nil {
			p.book.waits(func(w *Waited) { w.Ended[Declined]++ })
		}
		return
	}
	if a := p.orders(ctx); a.Accepted {
		p.book.waits(func(w *Waited) { w.Ordered++ })
	}
}

// orders sends the ordinary order.
func (p *person) orders(ctx context.Context) Answer {
	if p.slots == nil { // of an open loop the attempt takes one itself
		if !p.takeTurn(ctx) {
			return Answer{}
		}
		defer func() { <-p.asking }()
	}
	return p.attempt(ctx, p.buyer, p.basket, time.Now(), waiting)
}

// takeTurn waits for one of the connections on which persons who wait ask.
func (p *person) takeTurn(ctx context.Context) bool {
	select {
	case p.asking <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// enter enters the list, and returns why not, and when to try again.
func (p *person) enter(ctx context.Context) (refusal string, after time.Duration) {
	request, err := p.request(p.name, p.buyer, p.basket)
	if err != nil {
		return "other", least
	}
	request.Method = http.MethodPost
	request.URL = request.URL.ResolveReference(&url.URL{Path: p.Waitlist.Path})
	response, _, err := p.exchange(ctx, request)
	if err != nil {
		return failure(err), least
	}
	place, err := url.Parse(response.Header.Get("Location"))
	if no := response.Header.Get("Stockgate-Refusal"); no != "" {
		return no, retryAfter(response)
	}
	if response.StatusCode/100 != 2 || err != nil || place.String() == "" {
		return "status_" + strconv.Itoa(response.StatusCode), least
	}
	place = request.URL.ResolveReference(place)
	place.Scheme, place.Host = request.URL.Scheme, request.URL.Host // requests go nowhere else
	p.place = place
	return "", 0
}

// least is the pause before the same question again where an answer says nothing.
const least = time.Second

// at asks at the place, or leaves.
func (p *person) at(ctx context.Context, method string) (told stands, after time.Duration, err error) {
	request := &http.Request{Method: method, URL: p.place, Host: p.place.Host, Header: http.Header{}}
	response, body, err := p.exchange(ctx, request)
	if err != nil {
		return told, least, err
	}
	after = retryAfter(response)
	if response.StatusCode != http.StatusOK {
		return told, after, fmt.Errorf("the place answers %d", response.StatusCode)
	}
	return told, after, json.Unmarshal(body, &told)
}

func retryAfter(response *http.Response) time.Duration {
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return least
}

// exchange sends a request of a person who waits.
func (p *person) exchange(ctx context.Context, request *http.Request) (*http.Response, []byte, error) {
	if !p.takeTurn(ctx) {
		return nil, nil, ctx.Err()
	}
	defer func() { <-p.asking }()
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	response, err := p.transport.RoundTrip(request.WithContext(ctx))
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	return response, body, err
}

// waits notes what became of persons who wait.
func (b *notebook) waits(note func(*Waited)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	note(b.t.Waited)
}
