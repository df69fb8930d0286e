package list

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/loop"
)

const (
	// lookEvery is how often a file is checked for changes.
	lookEvery = 2 * time.Second
	// coarse is the resolution of the coarsest file system clock: a younger file may
	// change once more and look the same.
	coarse = 2 * time.Second
)

// FileOptions says how a list is read from a file.
type FileOptions struct {
	// Every is how often the file is checked; a change counts when two checks in a row
	// find the same. Default: 2 s.
	Every time.Duration
	// Normal normalises the values of a kind. Default: they stay as they are.
	Normal Normal
	// Report is called, from one goroutine, each time the list has been read again,
	// when its file cannot be used and when it can be again. The same error is reported
	// once. Default: nothing is reported.
	Report func(Stats, error)
}

// File is a list from a file with one entry per line, see [Parse]; blank lines and
// lines that begin with # are ignored. When the file changes it is read again. A file
// that cannot be read, is being written, or has become empty leaves the list as it was;
// to empty a list, leave a comment in its file.
//
// A File that was not started never changes.
type File struct {
	List
	path    string
	options FileOptions
	now     atomic.Pointer[set]
	trouble atomic.Pointer[error]

	// of the one goroutine that looks
	loaded os.FileInfo // what now was read from; nil: look at it again
	seen   os.FileInfo // at the last look
	failed os.FileInfo // was read and is no list

	start, stop sync.Once
	cancel      context.CancelFunc
	loop        sync.WaitGroup
}

// OpenFile reads a list from a file. It fails when the file is no list: the error
// names file and line.
func OpenFile(path string, o FileOptions) (*File, error) {
	if o.Every <= 0 {
		o.Every = lookEvery
	}
	if o.Report == nil {
		o.Report = func(Stats, error) {}
	}
	f := &File{path: path, options: o}
	f.List.in = (*fileMembers)(f)
	for tries := 0; ; tries++ {
		opened := time.Now()
		s, info, err := read(context.Background(), path, o.Normal)
		if errors.Is(err, errChanged) && tries < 3 {
			continue
		} else if err != nil {
			return nil, named(path, err)
		}
		f.now.Store(s)
		if opened.Sub(info.ModTime()) >= coarse {
			f.loaded = info
		}
		return f, nil
	}
}

// named puts the file's name in front of errors that lack it.
func named(path string, err error) error {
	if errors.Is(err, errChanged) || errors.Is(err, errTooLarge) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// Err says why the list does not match the file; nil: it did at the last check.
func (f *File) Err() error {
	if e := f.trouble.Load(); e != nil {
		return *e
	}
	return nil
}

// Start begins to check the file. Only the first call has an effect.
func (f *File) Start() {
	f.start.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		f.cancel = cancel
		f.loop.Go(func() { loop.Every(ctx, f.options.Every, nil, func() { f.look(ctx) }) })
	})
}

// Stop ends the checks; the list stays as it is. It may be called more than once, and
// without Start.
func (f *File) Stop() {
	f.stop.Do(func() {
		f.start.Do(func() {}) // a later Start does nothing
		if f.cancel != nil {
			f.cancel()
			f.loop.Wait()
		}
	})
}

// look reads the file if it has changed and is no longer being written.
func (f *File) look(ctx context.Context) {
	info, err := os.Stat(f.path)
	if err != nil {
		f.seen, f.failed = nil, nil
		f.report(err)
		return
	}
	before := f.seen
	f.seen = info
	switch {
	case same(info, f.loaded):
		f.failed = nil
		if f.trouble.Swap(nil) != nil {
			f.options.Report(f.now.Load().stats(), nil)
		}
		return
	case same(info, f.failed), !same(info, before):
		return
	}
	f.failed = nil
	if info.Size() == 0 && f.now.Load().entries > 0 {
		f.failed = info
		f.report(fmt.Errorf("%s: the file has become empty: is it still being written? A list without entries needs a comment", f.path))
		return
	}
	s, read, err := read(ctx, f.path, f.options.Normal)
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, errChanged):
		f.seen = nil // it must stand still anew
		return
	case err != nil:
		f.failed = read
		f.report(err)
		return
	}
	f.loaded = read
	f.now.Store(s)
	f.trouble.Store(nil)
	f.options.Report(s.stats(), nil)
}

func (f *File) report(err error) {
	if old := f.Err(); old == nil || old.Error() != err.Error() {
		f.trouble.Store(&err)
		f.options.Report(f.now.Load().stats(), err)
	}
}

// fileMembers looks into the file's list of the moment.
type fileMembers File

func (f *fileMembers) hasText(ctx context.Context, began time.Time, kind form, value string) (bool, error) {
	return f.now.Load().hasText(ctx, began, kind, value)
}

func (f *fileMembers) hasAddr(ctx context.Context, began time.Time, a netip.Addr) (bool, error) {
	return f.now.Load().hasAddr(ctx, began, a)
}

func (f *fileMembers) stats() Stats { return f.now.Load().stats() }
