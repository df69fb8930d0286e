package lists

import (
	"context"
	"errors"
	"slices"

	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// listChanges is how many changes are read at a time, up to 8 KiB each.
	listChanges = 64
	// smallFilter is the smallest number of entries for which a filter is made.
	smallFilter = 4096
	// fewRemoved is how many removed entries a filter of any size may have.
	fewRemoved = 10_000
	// maxEarly bounds the memory for counting a new filter's keys exactly: 2 MiB.
	maxEarly = 1 << 16
)

// follower updates a watcher's filter from one change of the list to a later one.
type follower struct {
	*Watcher
	filter Filter
	synced bool // the filter in use has all changes up to at
	at     listPosition
	stale  bool // changes were applied, but the forms were not read yet

	inUse, next filling
	filled      int                           // parts of the list that are in the new filter
	early       map[identity.ListKey]struct{} // in the new filter before their part
}

// filling counts the keys of a filter.
type filling struct {
	entries, room int64
	removed       int64 // the most entries that the list no longer has
}

// errGap says that the log does not reach from the watcher's position to the present list.
var errGap = errors.New("the log of the list does not go back so far")

// look brings the filter up to date once.
func (f *follower) look(ctx context.Context) error {
	secret := f.Secret()
	if secret == nil {
		return shard.ErrStarting
	}
	var err error
	if f.synced {
		err = f.catchUp(ctx, secret)
	}
	if err == nil && f.worn() || errors.Is(err, errGap) {
		err = f.rebuild(ctx, secret)
	}
	if errors.Is(err, errGap) {
		f.hurry() // Redis answers, but other edges have changed more than its log keeps
		return nil
	}
	return err
}

// worn says that there is no filter, or that too many entries were added or removed since it
// was made.
func (f *follower) worn() bool {
	in := f.inUse
	return !f.synced || in.entries > in.room+in.room/8 || in.removed > max(fewRemoved, in.entries/4)
}

// catchUp applies the changes after f.at. On errGap it drops the filter, which may lack entries
// now.
func (f *follower) catchUp(ctx context.Context, secret *identity.Secret) error {
	m, err := f.lists.listMeta(ctx, f.list)
	if err != nil {
		return err
	}
	if err := m.readable(secret); err != nil {
		return err
	}
	if m.listPosition != f.at && m.seq <= f.at.seq {
		err = errGap // Redis has lost changes, or the list was made again
	}
	for err == nil && f.at.seq < m.seq {
		err = f.apply(ctx)
	}
	if errors.Is(err, errGap) {
		f.synced = false
		f.filter.Drop()
	}
	if err == nil && f.stale {
		err = f.readForms(ctx)
	}
	return err
}

// apply applies some of the changes after f.at.
func (f *follower) apply(ctx context.Context) error {
	changes, err := f.lists.shard.StreamFrom(ctx, f.lists.listLogKey(f.list), shard.EntryID(f.at.seq+1), listChanges)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return errGap
	}
	for _, c := range changes {
		prev, _ := c.Values["prev"].(string)
		if c.ID != shard.EntryID(f.at.seq+1) || prev != f.at.tip {
			return errGap
		}
		f.stale = true
		keys := splitKeys(c.Values["keys"])
		if c.Values["op"] == "add" {
			f.filter.Add(keys)
			f.inUse.entries += int64(len(keys))
			f.next.entries += int64(len(keys))
			f.remember(keys)
		} else { // a filter keeps removed keys: each lookup of one asks Redis
			f.inUse.removed += int64(len(keys))
			f.next.removed += int64(len(keys))
		}
		f.at.seq++
		f.at.tip, _ = c.Values["tip"].(string)
	}
	return nil
}

// remember records which keys the new filter has before it reads their part, so that they do
// not count twice. Beyond maxEarly keys they do, and the filter seems fuller than it is.
func (f *follower) remember(keys []identity.ListKey) {
	if f.early == nil {
		return // there is no new filter
	}
	for i := range keys {
		if len(f.early) < maxEarly && listPart(&keys[i]) >= f.filled {
			f.early[keys[i]] = struct{}{}
		}
	}
}

// fill puts keys that were read from the list into the new filter, except those that it already
// has.
func (f *follower) fill(keys []identity.ListKey) {
	keys = slices.DeleteFunc(keys, func(k identity.ListKey) bool {
		_, early := f.early[k]
		delete(f.early, k)
		return early
	})
	f.filter.Fill(keys)
	f.next.entries += int64(len(keys))
}

func splitKeys(field any) []identity.ListKey {
	text, _ := field.(string)
	keys := make([]identity.ListKey, len(text)/len(identity.ListKey{}))
	for i := range keys {
		copy(keys[i][:], text[i*len(identity.ListKey{}):])
	}
	return keys
}

// readForms reads the forms of entries, after the changes that brought new ones.
func (f *follower) readForms(ctx context.Context) error {
	names, err := f.lists.shard.HashNames(ctx, f.lists.listFormsKey(f.list))
	if err != nil {
		return err
	}
	f.filter.Forms(names)
	f.stale = false
	return nil
}

// rebuild makes a filter of the whole list. Meanwhile it keeps the filter in use up to date;
// without one, every lookup asks Redis.
func (f *follower) rebuild(ctx context.Context, secret *identity.Secret) error {
	m, err := f.lists.listMeta(ctx, f.list)
	if err != nil {
		return err
	}
	if err := m.readable(secret); err != nil {
		return err
	}
	if !f.synced {
		if err := f.readForms(ctx); err != nil {
			return err
		}
		f.at = m.listPosition
		f.heard(ctx, nil)
	}
	f.next = filling{room: min(max(2*m.count, smallFilter), MaxEntries)}
	f.filter.Begin(int(f.next.room))
	f.filled, f.early = 0, make(map[identity.ListKey]struct{})
	defer func() { f.early = nil }()
	for f.filled < listParts {
		if err := ctx.Err(); err != nil {
			return err
		}
		keys, to, err := f.lists.listRead(ctx, f.list, m.count, f.filled)
		if err != nil {
			return err
		}
		if err := f.catchUp(ctx, secret); err != nil {
			return err
		}
		f.fill(keys) // after the changes, which name keys that the parts may already have
		f.filled = to
		f.heard(ctx, nil)
	}
	f.filter.Swap()
	f.inUse, f.synced = f.next, true
	return nil
}
