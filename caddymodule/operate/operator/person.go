package operator

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate/option/accesslist"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// unsearched are the places in which Redis and an edge may have a person and that nothing searches.
var unsearched = []string{
	"the journal: only the reservations to which its movements belong",
	"buckets of shared rates, which end by themselves",
	"lists in Redis that this configuration does not name, and entries that are prefixes of an address",
	"the shop, the outbox's receiver, backups, and access logs of Caddy",
}

// person is what a request says of one.
type person struct {
	adminapi.PersonRequest
	hashes  []reservation.HashedIdentity
	entries accesslist.Entries
}

// readPerson reads a request, and hashes the identities as gates do. No error has a value: errors are logged.
func readPerson(o *serve.Operator, r *http.Request) (*person, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	p := new(person)
	if err := request.JSON(r, 8*serve.SmallBody, &p.PersonRequest); err != nil {
		return nil, err
	}
	if len(p.Identities) == 0 {
		return nil, request.Bad("name the person: {\"identities\":{\"buyer\":\"u42\"}}, by %s", strings.Join(adminapi.PersonKinds, ", "))
	}
	rules, err := o.App.IdentityRules()
	if err != nil {
		return nil, err
	}
	secret, err := o.Runtime.Secret()
	if err != nil {
		return nil, err
	}
	for _, kind := range slices.Sorted(maps.Keys(p.Identities)) {
		value, err := normalPerson(rules, kind, p.Identities[kind])
		if err != nil {
			return nil, err
		}
		p.hashes = append(p.hashes, reservation.HashedIdentity{Kind: kind, Hash: secret.Identity(kind, value)})
		p.entries = append(p.entries, accesslist.EntriesFor(kind, p.Identities[kind], rules)...)
	}
	return p, nil
}

// normalPerson brings an identity into the form in which gates count it.
func normalPerson(rules sale.IdentityRules, kind, value string) (string, error) {
	if !slices.Contains(adminapi.PersonKinds, kind) {
		return "", request.Bad("an identity is one of %s", strings.Join(adminapi.PersonKinds, ", "))
	}
	if !accesslist.CanBeValue(value) {
		return "", request.Bad("the %s must be 1 to %d bytes of UTF-8", kind, accesslist.MaxValue)
	}
	if value = rules.Normalise(kind, value); value == "" {
		return "", request.Bad("no gate would read this as the %s of a buyer: nothing is left of it that could be compared", kind)
	}
	return value, nil
}

func showPerson(o *serve.Operator, r *http.Request) (any, error) {
	p, err := readPerson(o, r)
	if err != nil {
		return nil, err
	}
	if p.DryRun || p.Lists {
		return nil, request.Bad("dry_run and lists are for person/erase")
	}
	return findPerson(o, p)
}

// findPerson searches a stretch of the sales, and at the end of the last one the lists and the ledger.
func findPerson(o *serve.Operator, p *person) (*adminapi.PersonData, error) {
	found := &adminapi.PersonData{Sales: []adminapi.PersonSale{}, Lists: []adminapi.PersonListed{}, Ledger: []adminapi.PersonRows{}, Unsearched: []string{}}
	ids, err := o.Runtime.Store.Journal().Sales(o.Ctx)
	if err != nil {
		return nil, err
	}
	var looked int64
	for _, id := range ids {
		if id <= p.After {
			continue
		}
		size, err := o.Runtime.Store.TraceSize(o.Ctx, id)
		if err != nil {
			return nil, err
		}
		if looked > 0 && looked+size > reservation.MaxTraced {
			return found, nil
		}
		looked += size
		found.Next = id
		if err := findInSale(o, found, id, p.hashes); err != nil {
			return nil, err
		}
	}
	found.Next = ""
	found.Unsearched = append(found.Unsearched, unsearched...)
	if err := findInLists(o, found, p.entries); err != nil {
		return nil, err
	}
	findInLedger(o, found, p.hashes)
	return found, nil
}

func findInSale(o *serve.Operator, found *adminapi.PersonData, id string, who []reservation.HashedIdentity) error {
	trace, err := o.Runtime.Store.Trace(o.Ctx, id, who)
	if err != nil {
		return err
	}
	if trace.Partly {
		found.Unsearched = append(found.Unsearched, fmt.Sprintf("all of sale %s: it has more than %d records and counters, or %d reservations of the person", id, reservation.MaxTraced, reservation.MaxTracedRecords))
	}
	if trace.Empty() {
		return nil
	}
	s := adminapi.PersonSale{ID: id, Trace: *trace}
	if l, ok := o.Runtime.Catalogue().Sale(id); ok {
		s.Status = l.Status
	}
	found.Sales = append(found.Sales, s)
	return nil
}

// findInLists looks into the lists that this configuration names.
func findInLists(o *serve.Operator, found *adminapi.PersonData, entries accesslist.Entries) error {
	for _, name := range slices.Sorted(maps.Keys(o.App.NamedLists().All())) {
		l := o.App.NamedLists().All()[name]
		if l.File != nil {
			found.Unsearched = append(found.Unsearched, "the list "+name+": it is the file "+l.Path)
			continue
		}
		kinds, unsearchable, err := l.Kinds(o.Ctx, o.Runtime, entries)
		if err != nil {
			return err
		}
		if unsearchable != nil {
			found.Unsearched = append(found.Unsearched, "the list "+name+": "+unsearchable.Error())
		}
		for _, kind := range kinds {
			found.Lists = append(found.Lists, adminapi.PersonListed{List: name, Kind: kind})
		}
	}
	return nil
}

// findInLedger counts rows. Without its answer the rest is told all the same.
func findInLedger(o *serve.Operator, found *adminapi.PersonData, who []reservation.HashedIdentity) {
	db := o.App.Journals().Ledger()
	if db == nil {
		found.Unsearched = append(found.Unsearched, "a ledger: this edge has none")
		return
	}
	for _, h := range who {
		rows, err := db.Trace(o.Ctx, h.Hash)
		if err != nil {
			found.Unsearched = append(found.Unsearched, "the ledger, which does not answer: "+err.Error())
			return
		}
		for _, r := range rows {
			found.Ledger = append(found.Ledger, adminapi.PersonRows{Kind: h.Kind, Sale: r.Sale, Reservations: r.Reservations, Movements: r.Movements})
		}
	}
}

// erasePerson removes what neither the books nor a limit need.
func erasePerson(o *serve.Operator, r *http.Request) (any, error) {
	p, err := readPerson(o, r)
	if err != nil {
		return nil, err
	}
	found, err := findPerson(o, p)
	if err != nil {
		return nil, err
	}
	found.Erased = &adminapi.PersonErased{DryRun: p.DryRun}
	err = eraseAnswers(o, found)
	if err == nil {
		err = eraseEntries(o, found, p)
	}
	if err == nil && !p.DryRun && found.Erased.Answers > 0 {
		err = o.Runtime.Store.Shard().AwaitReplicas(o.Ctx)
	}
	for i := range found.Ledger {
		found.Kept = append(found.Kept, found.Ledger[i].Kept())
	}
	if p.DryRun {
		return found, err
	}
	names := make([]string, len(found.Sales))
	for i := range found.Sales {
		names[i] = found.Sales[i].ID
	}
	// the log does not name buyers
	return found, o.Noted(err, "a person is erased as far as the books allow", zap.Strings("sales", names), zap.Int("answers", found.Erased.Answers), zap.Int("list_entries", found.Erased.ListEntries))
}

func eraseAnswers(o *serve.Operator, found *adminapi.PersonData) error {
	for i := range found.Sales {
		s := &found.Sales[i]
		for _, a := range s.Answers {
			if err := eraseAnswer(o, s.ID, a, found.Erased); err != nil {
				return err
			}
		}
		found.Kept = append(found.Kept, s.Kept()...)
	}
	return nil
}

// eraseAnswer drops one answer, or counts it only.
func eraseAnswer(o *serve.Operator, id string, a reservation.TracedAnswer, erased *adminapi.PersonErased) error {
	if erased.DryRun {
		erased.Answers++
		return nil
	}
	gone, err := true, error(nil)
	if a.Of == reservation.OfQueue {
		err = queue.DropAnswer(o.Ctx, o.Runtime.Store, id, a.Reservation)
	} else {
		gone, err = o.Runtime.Store.DropAnswer(o.Ctx, id, a.Reservation)
	}
	if gone && err == nil {
		erased.Answers++
	}
	return err
}

// eraseEntries removes the person from lists, if the request says so: a denylist lets them buy again then.
func eraseEntries(o *serve.Operator, found *adminapi.PersonData, p *person) error {
	for _, l := range found.Lists {
		if !p.Lists {
			found.Kept = append(found.Kept, adminapi.PersonKept{What: "the entry of the list " + l.List, Until: "`caddy stockgate person erase --lists` removes it"})
			continue
		}
		if p.DryRun {
			found.Erased.ListEntries++
			continue
		}
		n, err := o.App.NamedLists().All()[l.List].Change(o.Ctx, o.Runtime, true, p.entries.OfKind(l.Kind))
		found.Erased.ListEntries += n
		if err != nil {
			return fmt.Errorf("list %s: %w", l.List, err)
		}
	}
	return nil
}
