package list

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxLine is how many bytes a line may have: an entry, its kind, and space.
const maxLine = 4096

// scan calls yield for every entry of a file. Lines end with \n or \r\n, the last
// one too; those that are blank or begin with # are no entries. Errors name the
// file and the line.
func scan(ctx context.Context, name string, r io.Reader, normal Normal, yield func(Entry) error) error {
	in := bufio.NewReaderSize(r, 16*maxLine)
	for line, entries := 1, 0; ; line++ {
		text, err := in.ReadSlice('\n')
		if err == nil && len(text) > maxLine {
			err = bufio.ErrBufferFull
		}
		switch {
		case err == nil:
		case err == io.EOF && len(text) == 0:
			return nil
		case err == io.EOF:
			return fmt.Errorf("%s:%d: the last line does not end: is the file still being written? End it with a newline", name, line)
		case err == bufio.ErrBufferFull:
			return fmt.Errorf("%s:%d: the line is longer than %d bytes", name, line, maxLine)
		default:
			return fmt.Errorf("read line %d of %s: %w", line, name, err)
		}
		if line%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if text = bytes.TrimSpace(text); len(text) == 0 || text[0] == '#' {
			continue
		}
		if entries++; entries > MaxEntries {
			return fmt.Errorf("%s:%d: a list has at most %d entries", name, line, MaxEntries)
		}
		e, err := Parse(string(text), normal)
		if err == nil {
			err = yield(e)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
}

// read reads a whole file, twice: to count, and to fill. It returns what the file
// was like when it was opened, and errChanged when that did not last.
func read(ctx context.Context, path string, normal Normal) (*set, os.FileInfo, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, nil, err
	} else if err := regular(path, info); err != nil {
		return nil, info, err // opening a pipe would wait for a writer
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	s, err := build(ctx, path, f, before.Size(), normal)
	after, statErr := f.Stat()
	switch {
	case statErr != nil:
		return nil, before, statErr
	case !same(before, after): // what else went wrong may come from that
		return nil, before, errChanged
	}
	return s, before, err
}

func regular(path string, info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", path)
	}
	return nil
}

// same reports whether two checks saw the same content of the same file.
func same(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// build makes a set of a file's entries.
func build(ctx context.Context, name string, r io.ReadSeeker, size int64, normal Normal) (*set, error) {
	s := &set{exact: newExact(size)}
	var room [maxKey]byte
	err := scan(ctx, name, r, normal, func(e Entry) error { return s.exact.count(e.appendKey(room[:0])) })
	if err != nil {
		return nil, err
	}
	if err := s.exact.lay(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	err = scan(ctx, name, r, normal, func(e Entry) error {
		added, err := s.exact.put(e.appendKey(room[:0]))
		if added {
			s.entries++
			s.forms.add(e.form())
		}
		return err
	})
	if errors.Is(err, errChanged) {
		return nil, errChanged
	} else if err != nil {
		return nil, err
	}
	// in the order of the hashes one part of the filter is filled after the other
	s.filter = newFilter(s.entries)
	s.exact.all(func(key []byte) bool {
		s.filter.add(s.exact.hash(key))
		return true
	})
	return s, nil
}
