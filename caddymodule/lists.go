package caddymodule

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

	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/list"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

// ListSource says where a named list is kept.
type ListSource struct {
	// Source is file or redis.
	Source string `json:"source"`
	// Path is the file: one entry a line, read when the configuration loads and
	// again when it changes. A placeholder such as {env.LISTS} may be in it. None for
	// redis.
	Path string `json:"path,omitempty"`
}

// The sources of lists.
const (
	fileSource  = "file"
	redisSource = "redis"
)

var listNamed = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

const listNameRule = "the name of a list is 1 to 64 of a-z, 0-9, underscore and hyphen"

// check says what is wrong with a list's definition.
func (s ListSource) check(name string) error {
	switch {
	case !listNamed.MatchString(name):
		return fmt.Errorf("list %q: %s", name, listNameRule)
	case s.Source != fileSource && s.Source != redisSource:
		return fmt.Errorf("list %s: source %q: there are file and redis", name, s.Source)
	case s.Source == fileSource && s.Path == "":
		return fmt.Errorf("list %s: no path: write `list %s file <path>`", name, name)
	case s.Source == redisSource && s.Path != "":
		return fmt.Errorf("list %s is kept in redis: it has no path", name)
	}
	return nil
}

// openLists has the lists of all configurations that live at the same time: a
// reload neither reads a file again nor forgets a filter. Those in Redis are used
// only while their desk is, so that they end before it.
var openLists = caddy.NewUsagePool()

// fileList is a list from a file, in the pool.
type fileList struct{ *list.File }

// Destruct ends the looking at the file. Requests of an old configuration may still
// look into the list.
func (f fileList) Destruct() error {
	f.Stop()
	return nil
}

// redisList is a list that is kept in Redis, in the pool.
type redisList struct {
	*list.Mirror
	view *reservation.ListView
}

// Destruct ends the following. Requests of an old configuration soon find the list
// unavailable.
func (l redisList) Destruct() error {
	l.view.Stop()
	return nil
}

// appList is a named list of one configuration.
type appList struct {
	name   string
	source ListSource
	path   string                    // of a file, absolute
	now    atomic.Pointer[list.List] // nil: the app has not started
	file   *list.File                // of a file
}

// appLists are the named lists of one configuration, and what it has taken from the
// pool.
type appLists struct {
	named map[string]*appList
	taken []string
}

// open opens the lists that are files, all at once. The configuration waits for
// them: whoever is in a list of the unwanted must not buy while it is being read.
// Only files that no living configuration has open are read.
func (a *appLists) open(sources map[string]ListSource) error {
	a.named = make(map[string]*appList, len(sources))
	for name, s := range sources {
		if err := s.check(name); err != nil {
			return err
		}
		a.named[name] = &appList{name: name, source: s}
	}
	var mu sync.Mutex
	var failed []error
	var readers sync.WaitGroup
	for _, l := range a.named {
		if l.source.Source != fileSource {
			continue
		}
		readers.Go(func() {
			key, err := l.open()
			mu.Lock()
			defer mu.Unlock()
			if key != "" {
				a.taken = append(a.taken, key)
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("list %s: %w", l.name, err))
			}
		})
	}
	readers.Wait()
	return errors.Join(failed...)
}

// open opens a list that is a file. It returns what is to be given back to the pool.
func (l *appList) open() (key string, err error) {
	if l.path, err = filepath.Abs(caddy.NewReplacer().ReplaceKnown(l.source.Path, "")); err != nil {
		return "", err
	}
	if _, err := os.Stat(l.path); err != nil { // gone, though another configuration may have it open
		return "", err
	}
	key = fileSource + "\x00" + l.path
	v, _, err := openLists.LoadOrNew(key, func() (caddy.Destructor, error) {
		f, err := list.OpenFile(l.path, list.FileOptions{Normal: sale.NormaliseIdentity, Report: reporter(l.path)})
		return fileList{f}, err
	})
	if err != nil {
		return "", err
	}
	l.file = v.(fileList).File
	l.now.Store(&l.file.List)
	return key, nil
}

// reporter logs what becomes of a file, with the logger of the configuration of that
// time.
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

// start begins to look at the files and to follow the lists in Redis. key is that
// of the desk.
func (a *appLists) start(key string, d *desk) error {
	for name, l := range a.named {
		if l.source.Source == fileSource {
			l.file.Start()
			continue
		}
		poolKey := redisSource + "\x00" + key + "\x00" + name
		v, _, err := openLists.LoadOrNew(poolKey, func() (caddy.Destructor, error) {
			view := d.ListView(name)
			mirror := list.NewMirror(view)
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

// close gives everything back, once.
func (a *appLists) close() {
	for _, key := range a.taken {
		_, _ = openLists.Delete(key) // no list fails to end
	}
	a.taken = nil
}

// persons are the lists that a gate asks who may buy.
type persons struct {
	deny, allow []*appList
}

// open finds the lists that deny and allow name.
func (ps *persons) open(all *appLists, deny, allow []string) (err error) {
	if ps.deny, err = all.find("deny", deny); err == nil {
		ps.allow, err = all.find("allow", allow)
	}
	return err
}

// any says that there is a list to ask.
func (ps *persons) any() bool { return len(ps.deny)+len(ps.allow) > 0 }

// all are the lists by name. The map is not to be changed.
func (a *appLists) all() map[string]*appList { return a.named }

// find finds the lists that a gate names.
func (a *appLists) find(option string, names []string) ([]*appList, error) {
	found := make([]*appList, len(names))
	for i, name := range names {
		l, ok := a.named[name]
		if !ok {
			return nil, unknownList(option, name)
		}
		found[i] = l
	}
	return found, nil
}

func unknownList(option, name string) error {
	return fmt.Errorf("%s: there is no list %q: write `list %s file <path>` or `list %s redis` in the global option stockgate", option, name, name, name)
}

// mostLists is how many lists a gate asks without an allocation.
const mostLists = 8

// opened puts the lists of the moment into room; false: the app has not started.
func opened(lists []*appList, room []*list.List) ([]*list.List, bool) {
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

// denied refuses who is in one of the lists of the unwanted.
func (ps *persons) denied(r *http.Request, a *sale.Attempt, log *zap.Logger) *sale.Refusal {
	if len(ps.deny) == 0 {
		return nil
	}
	var room [mostLists]*list.List
	lists, ok := opened(ps.deny, room[:0])
	if !ok {
		return refuseUnavailable
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

// eligible refuses who is in none of the lists of the welcome. What the sale says of
// its state (no) comes before that, what it says of the quantity after.
func (ps *persons) eligible(r *http.Request, a *sale.Attempt, no *sale.Refusal, log *zap.Logger) *sale.Refusal {
	if len(ps.allow) == 0 || no != nil && no.Reason != sale.Quantity {
		return no
	}
	var room [mostLists]*list.List
	lists, ok := opened(ps.allow, room[:0])
	if !ok {
		return refuseUnavailable
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

// unknownPerson refuses, because nobody knows whether a list names the buyer.
func unknownPerson(err error, log *zap.Logger) *sale.Refusal {
	level, message := zap.DebugLevel, "a list could not be asked about a buyer"
	if errors.Is(err, list.ErrAddress) {
		level, message = zap.WarnLevel, "not selling: `deny` needs the client's IP, and Caddy does not know it; "+
			"behind a proxy on a unix socket set trusted_proxies_unix"
	}
	if c := log.Check(level, message); c != nil {
		c.Write(zap.Error(err))
	}
	return refuseUnavailable
}

// person is who makes an attempt, as lists know people.
func person(r *http.Request, a *sale.Attempt) filters.Person {
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return filters.Person{IP: ip, Buyer: a.Buyer, Identities: a.Identities}
}

// Interface guards
var (
	_ caddy.Destructor = fileList{}
	_ caddy.Destructor = redisList{}
)
