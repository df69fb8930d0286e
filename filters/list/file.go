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
)

const (
	// lookEvery is how often a file is looked at.
	lookEvery = 2 * time.Second
	// coarse is the resolution of the coarsest clock of a file system: a file that
	// is younger may change once more and look the same.
	coarse = 2 * time.Second
)

// FileOptions says how a list is read from a file.
type FileOptions struct {
	// Every is how often the file is looked at; a change counts when two looks in a
	// row find the same. Default: 2 s.
	Every time.Duration
	// Normal makes the values of a kind alike. Default: they stay as they are.
	Normal Normal
	// Report is told each time the list was read anew, or its file is in trouble or
	// out of it, from one goroutine, and only once of the same trouble. Default:
	// nobody.
	Report func(Stats, error)
}

// File is a list from a file with one entry a line, see [Parse]; blank lines and
// those that begin with # do not count. When the file changes it is read again. A
// file that cannot be read, is being written, or has become empty leaves the list
// as it was; a list that shall be empty has a comment in its file.
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

// Err says why the list is not what the file is at present; nil: it is, as far as
// the last look saw.
func (f *File) Err() error {
	if e := f.trouble.Load(); e != nil {
		return *e
	}
	return nil
}

// Start begins to look at the file. Only the first call counts.
func (f *File) Start() {
	f.start.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		f.cancel = cancel
		f.loop.Go(func() {
			ticker := time.NewTicker(f.options.Every)
			defer ticker.Stop()
			for {
				f.look(ctx)
				select {
				case <-ticker.C:
				case <-ctx.Done():
					return
				}
			}
		})
	})
}

// Stop ends what Start began; the list stays as it is. It may be called again, and
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

// look reads the file if it has changed and stands still.
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

func (f *fileMembers) hasText(ctx context.Context, kind form, value string) (bool, error) {
	return f.now.Load().hasText(ctx, kind, value)
}

func (f *fileMembers) hasAddr(ctx context.Context, a netip.Addr) (bool, error) {
	return f.now.Load().hasAddr(ctx, a)
}

func (f *fileMembers) stats() Stats { return f.now.Load().stats() }
