package child

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// syncedFile notes how far the append-only file is known to be on the disk. A file that is shorter at the
// next start has lost answers that were given. Two notes take turns, so that a crash spoils one at most.
const syncedFile = "synced"

// noteSize is the room of a note: a sector, which a disk writes as a whole.
const noteSize = 512

// appendDir is where a server has its append-only file: a base, and the increments since.
const appendDir = "appendonlydir"

// increment is a file to which the server appends or has appended.
type increment struct {
	name string
	seq  int64
	size int64 // bytes; -1: the file is gone
}

// increments returns those that the server will read, the newest last.
func increments(dir string) (all []increment, err error) {
	text, err := os.ReadFile(filepath.Join(dir, appendDir, appendList))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // file NAME seq N type i
		if len(f) < 6 || f[5] != "i" {
			continue
		}
		i := increment{name: f[1], size: -1}
		i.seq, _ = strconv.ParseInt(f[3], 10, 64)
		if info, err := os.Stat(filepath.Join(dir, appendDir, i.name)); err == nil {
			i.size = info.Size()
		}
		all = append(all, i)
	}
	return all, nil
}

// newest returns the increment to which the server appends; false: there is none.
func newest(dir string) (increment, bool) {
	all, err := increments(dir)
	if err != nil || len(all) == 0 || all[len(all)-1].size < 0 {
		return increment{}, false
	}
	return all[len(all)-1], true
}

// writeNote writes what is known to be on the disk, and returns how long the disk took.
func writeNote(dir string, turn int, i increment) (took time.Duration, err error) {
	f, err := os.OpenFile(filepath.Join(dir, syncedFile), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	text := fmt.Sprintf("%s %d %d", i.name, i.seq, i.size)
	note := bytes.Repeat([]byte{' '}, noteSize)
	copy(note, fmt.Sprintf("%08x %s", crc32.ChecksumIEEE([]byte(text)), text))
	note[noteSize-1] = '\n'
	began := time.Now()
	if _, err := f.WriteAt(note, int64(turn%2)*noteSize); err != nil {
		return 0, err
	}
	err = f.Sync()
	return time.Since(began), err
}

// readNotes returns the notes that are whole.
func readNotes(dir string) (notes []increment, err error) {
	text, err := os.ReadFile(filepath.Join(dir, syncedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		sum, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		var i increment
		if _, err := fmt.Sscanf(rest, "%s %d %d", &i.name, &i.seq, &i.size); err == nil && sum == fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(rest))) {
			notes = append(notes, i)
		}
	}
	return notes, nil
}

// verify returns an error if the append-only file lacks what was on the disk.
func verify(dir string) error {
	notes, err := readNotes(dir)
	if err != nil {
		return err
	}
	files, err := increments(dir)
	if err != nil {
		return err
	}
	for _, note := range notes {
		if why := lacks(files, note); why != "" {
			return fmt.Errorf("%s, with answers that were given: the disk, or another program, has lost them, and the server is not started, because it would sell their units again. "+
				"Put the file back; or go on without them: stop Caddy, delete %s, and start Caddy, which pauses every sale that is open: compare each with the shop before it sells on", why, filepath.Join(dir, syncedFile))
		}
	}
	return nil
}

// lacks says what the files lack of a note; empty: nothing. A rewrite replaces an increment by newer ones.
func lacks(files []increment, note increment) string {
	if note.seq == 0 {
		return "" // of a store that had nothing yet
	}
	for _, f := range files {
		switch {
		case f.name == note.name && f.size >= note.size, f.seq > note.seq:
			return ""
		case f.name == note.name && f.size >= 0:
			return fmt.Sprintf("%s has lost its last %s bytes", filepath.Join(appendDir, f.name), humanize.Comma(note.size-f.size))
		}
	}
	return filepath.Join(appendDir, note.name) + " is gone"
}
