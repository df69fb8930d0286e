// Package accesslist has the named lists of a configuration, and looks up the buyers of attempts
// in the denylists and allowlists of a gate. Package lists has those that are kept in Redis.
package accesslist

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/list"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/lists"
)

// Source says where a named list is kept.
type Source struct {
	// Source is file or redis.
	Source string `json:"source"`
	// Path is the file: one entry a line. It is read when the configuration loads and again
	// when it changes. It may contain a placeholder such as {env.LISTS}. Not for redis.
	Path string `json:"path,omitempty"`
}

// The sources of lists.
const (
	FileSource  = "file"
	RedisSource = "redis"
)

var named = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// isName reports whether a list can have that name.
func isName(name string) bool { return named.MatchString(name) }

// nameRule is the rule for names, for errors.
const nameRule = "the name of a list is 1 to 64 of a-z, 0-9, underscore and hyphen"

// Check validates a list's definition.
func (s Source) Check(name string) error {
	switch {
	case !isName(name):
		return fmt.Errorf("list %q: %s", name, nameRule)
	case s.Source != FileSource && s.Source != RedisSource:
		return fmt.Errorf("list %s: source %q: there are file and redis", name, s.Source)
	case s.Source == FileSource && s.Path == "":
		return fmt.Errorf("list %s: no path: write `list %s file <path>`", name, name)
	case s.Source == RedisSource && s.Path != "":
		return fmt.Errorf("list %s is kept in redis: it has no path", name)
	}
	return nil
}

// openLists has the lists of all configurations that exist at the same time: a reload
// neither reads a file again nor drops a filter. Lists in Redis are used only while their
// edge runtime is, so that they end before it.
var openLists = caddy.NewUsagePool()

// fileList is a list from a file, in the pool.
type fileList struct{ *list.File }

// Destruct stops watching the file. Requests of an old configuration may still read the
// list.
func (f fileList) Destruct() error {
	f.Stop()
	return nil
}

// redisList is a list that is kept in Redis, in the pool.
type redisList struct {
	*list.Hashed
	view *lists.Watcher
}

// Destruct stops following the list. Requests of an old configuration soon find it
// unavailable.
func (l redisList) Destruct() error {
	l.view.Stop()
	return nil
}

// List is a named list of one configuration.
type List struct {
	Name   string
	Source Source
	Path   string                    // of a file, absolute
	now    atomic.Pointer[list.List] // nil: the app has not started
	File   *list.File                // of a file
}

// Lists are the named lists of one configuration, and what it has taken from the pool.
type Lists struct {
	named map[string]*List
	taken []string
}

// Open opens the lists that are files, all at once. The configuration waits for them: a
// buyer on a denylist must not buy while the list is being read. Only files that no other
// current configuration has open are read.
//
// rules are those by which gates read identities: entries fold as they do.
func (a *Lists) Open(sources map[string]Source, rules sale.IdentityRules) error {
	a.named = make(map[string]*List, len(sources))
	for name, s := range sources {
		if err := s.Check(name); err != nil {
			return err
		}
		a.named[name] = &List{Name: name, Source: s}
	}
	var mu sync.Mutex
	var failed []error
	var readers sync.WaitGroup
	for _, l := range a.named {
		if l.Source.Source != FileSource {
			continue
		}
		readers.Go(func() {
			key, err := l.open(rules)
			mu.Lock()
			defer mu.Unlock()
			if key != "" {
				a.taken = append(a.taken, key)
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("list %s: %w", l.Name, err))
			}
		})
	}
	readers.Wait()
	return errors.Join(failed...)
}

// open opens a list that is a file. It returns the pool key to release.
func (l *List) open(rules sale.IdentityRules) (key string, err error) {
	if l.Path, err = filepath.Abs(caddy.NewReplacer().ReplaceKnown(l.Source.Path, "")); err != nil {
		return "", err
	}
	if _, err := os.Stat(l.Path); err != nil { // the file is gone, although another configuration may have it open
		return "", err
	}
	key = FileSource + "\x00" + l.Path + "\x00" + rules.String()
	v, _, err := openLists.LoadOrNew(key, func() (caddy.Destructor, error) {
		f, err := list.OpenFile(l.Path, list.FileOptions{Every: timing.ListFile.Now(), Normal: rules.Normalise, Report: reporter(l.Path)})
		return fileList{f}, err
	})
	if err != nil {
		return "", err
	}
	l.File = v.(fileList).File
	l.now.Store(&l.File.List)
	return key, nil
}

// reporter logs what happens to a file, with the logger of the current configuration.
func reporter(path string) func(list.Stats, error) {
	return func(s list.Stats, err error) {
		log := caddy.Log().Named("stockgate").With(zap.String("file", path), zap.Int("entries", s.Entries))
		if err != nil {
			log.Error("a list stays as it was: its file cannot be read", zap.Error(err))
			return
		}
		log.Info("a list is what its file says")
	}
}

// Start begins to watch the files and to follow the lists in Redis. key is the pool key of
// the edge runtime.
func (a *Lists) Start(key string, d *edgeruntime.Runtime) error {
	for name, l := range a.named {
		if l.Source.Source == FileSource {
			l.File.Start()
			continue
		}
		poolKey := RedisSource + "\x00" + key + "\x00" + name
		v, _, err := openLists.LoadOrNew(poolKey, func() (caddy.Destructor, error) {
			view := d.ListView(name)
			mirror := list.NewHashed(view)
			view.Start(mirror)
			return redisList{mirror, view}, nil
		})
		if err != nil {
			return err
		}
		a.taken = append(a.taken, poolKey)
		l.now.Store(&v.(redisList).List)
	}
	return nil
}

// Close releases everything, once.
func (a *Lists) Close() {
	for _, key := range a.taken {
		_, _ = openLists.Delete(key) // no list fails to end
	}
	a.taken = nil
}

// DenyAllowLists are the denylists and allowlists of a gate.
type DenyAllowLists struct {
	deny, allow []*List
}

// Open finds the lists that deny and allow name.
func (ps *DenyAllowLists) Open(all *Lists, deny, allow []string) (err error) {
	if ps.deny, err = all.find("deny", deny); err == nil {
		ps.allow, err = all.find("allow", allow)
	}
	return err
}

// Any reports whether the gate has any list.
func (ps *DenyAllowLists) Any() bool { return len(ps.deny)+len(ps.allow) > 0 }

// All returns the lists by name. Callers must not change the map.
func (a *Lists) All() map[string]*List { return a.named }

// Entries returns the number of entries of the list; false: the app has not started.
func (l *List) Entries() (int, bool) {
	now := l.now.Load()
	if now == nil {
		return 0, false
	}
	return now.Stats().Entries, true
}

// find finds the lists that a gate names.
func (a *Lists) find(option string, names []string) ([]*List, error) {
	found := make([]*List, len(names))
	for i, name := range names {
		l, ok := a.named[name]
		if !ok {
			return nil, Unknown(option, name)
		}
		found[i] = l
	}
	return found, nil
}

// Unknown returns the error for an option that names a list that is not configured.
func Unknown(option, name string) error {
	return fmt.Errorf("%s: there is no list %q: write `list %s file <path>` or `list %s redis` in the global option stockgate", option, name, name, name)
}

// maxLists is the number of lists that a gate reads without an allocation.
const maxLists = 8

// opened puts the current lists into room; false: the app has not started.
func opened(lists []*List, room []*list.List) ([]*list.List, bool) {
	for _, l := range lists {
		now := l.now.Load()
		if now == nil {
			return nil, false
		}
		room = append(room, now)
	}
	return room, true
}

var (
	refuseDenied      = sale.Refuse(sale.Denied)
	refuseNotEligible = sale.Refuse(sale.NotEligible)
)

// Denied refuses an attempt that is on a denylist.
func (ps *DenyAllowLists) Denied(r *http.Request, a *sale.Attempt, log *zap.Logger) *sale.Refusal {
	if len(ps.deny) == 0 {
		return nil
	}
	var room [maxLists]*list.List
	lists, ok := opened(ps.deny, room[:0])
	if !ok {
		return refuse.Unavailable
	}
	p := person(r, a)
	switch yes, err := filters.Denied(r.Context(), lists, &p); {
	case err != nil:
		return unknownPerson(err, log)
	case yes:
		return refuseDenied
	}
	return nil
}

// Eligible refuses an attempt that is on no allowlist. A refusal no because of the sale's
// state takes precedence over this one; a refusal because of the quantity does not.
func (ps *DenyAllowLists) Eligible(r *http.Request, a *sale.Attempt, no *sale.Refusal, log *zap.Logger) *sale.Refusal {
	if len(ps.allow) == 0 || no != nil && no.Reason != sale.Quantity {
		return no
	}
	var room [maxLists]*list.List
	lists, ok := opened(ps.allow, room[:0])
	if !ok {
		return refuse.Unavailable
	}
	p := person(r, a)
	switch yes, err := filters.Admitted(r.Context(), lists, &p); {
	case err != nil:
		return unknownPerson(err, log)
	case !yes:
		return refuseNotEligible
	}
	return no
}

// unknownPerson refuses an attempt because it is unknown whether a list names the buyer.
func unknownPerson(err error, log *zap.Logger) *sale.Refusal {
	level, message := zap.DebugLevel, "a list could not be asked about a buyer"
	if errors.Is(err, list.ErrAddress) {
		level, message = zap.WarnLevel, "not selling: `deny` needs the client's IP, and Caddy does not know it; "+
			"behind a proxy on a unix socket set trusted_proxies_unix and trusted_proxies_strict"
	}
	if c := log.Check(level, message); c != nil {
		c.Write(zap.Error(err))
	}
	return refuse.Unavailable
}

// person returns the identities of an attempt, as lists know them.
func person(r *http.Request, a *sale.Attempt) filters.Person {
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return filters.Person{IP: ip, Buyer: a.Buyer, Identities: a.Identities}
}

// Interface guards
var (
	_ caddy.Destructor = fileList{}
	_ caddy.Destructor = redisList{}
)
