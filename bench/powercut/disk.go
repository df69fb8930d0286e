package main

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// inode is a file, a directory or a socket.
type inode struct {
	id      uint64
	mode    uint32
	changed time.Time

	data, synced []byte // of a file: as it is, and as it is on the disk
	dirty        int    // data is as synced before this offset

	entries, kept map[string]*inode // of a directory: as it is, and as it is on the disk
}

// change is what one call did to directories. It comes to the disk as a whole.
type change []entry

type entry struct {
	dir, of *inode // of: nil where the name is gone
	name    string
}

// disk keeps two states: the one that processes see, and the one that a power cut leaves.
type disk struct {
	root    *inode
	nodes   map[uint64]*inode
	pending []change // in their order; not on the disk yet
}

func newDisk() *disk {
	d := &disk{nodes: map[uint64]*inode{}}
	d.root = d.add(syscall.S_IFDIR | 0o755)
	return d
}

func (d *disk) add(mode uint32) *inode {
	n := &inode{id: uint64(len(d.nodes)) + 1, mode: mode, changed: time.Now()}
	if n.isDir() {
		n.entries, n.kept = map[string]*inode{}, map[string]*inode{}
	}
	d.nodes[n.id] = n
	return n
}

func (n *inode) isDir() bool { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }

func (n *inode) resize(size int) {
	if size < len(n.data) {
		n.data = n.data[:size]
	} else {
		n.data = append(n.data, make([]byte, size-len(n.data))...)
	}
	n.dirty, n.changed = min(n.dirty, size), time.Now()
}

func (n *inode) write(data []byte, at int) {
	if end := at + len(data); end > len(n.data) {
		n.data = append(n.data, make([]byte, end-len(n.data))...)
	}
	copy(n.data[at:], data)
	n.dirty, n.changed = min(n.dirty, at), time.Now()
}

// do changes directories.
func (d *disk) do(c change) {
	for _, e := range c {
		put(e.dir.entries, e)
		e.dir.changed = time.Now()
	}
	d.pending = append(d.pending, c)
}

func put(entries map[string]*inode, e entry) {
	if e.of == nil {
		delete(entries, e.name)
	} else {
		entries[e.name] = e.of
	}
}

// keep has a change on the disk.
func keep(c change) {
	for _, e := range c {
		put(e.dir.kept, e)
	}
}

// sync has a file, or the entries of a directory, on the disk: of a file not its name, and of a directory not its own.
func (d *disk) sync(n *inode) {
	if !n.isDir() {
		n.synced = append(n.synced[:min(n.dirty, len(n.synced))], n.data[min(n.dirty, len(n.synced)):]...)
		n.dirty = len(n.data)
		return
	}
	d.pending = slices.DeleteFunc(d.pending, func(c change) bool {
		touches := slices.ContainsFunc(c, func(e entry) bool { return e.dir == n })
		if touches {
			keep(c)
		}
		return touches
	})
}

// dropped is what a cut has dropped.
type dropped struct {
	bytes, files, changes, of int
}

// cut drops all changes that were not synced, except the first ones: the dice say how many changes of directories stay, and
// how many bytes at the end of each file.
func (d *disk) cut(dice *rand.Rand) (lost dropped) {
	some := func(n int) int { return []int{0, n, dice.IntN(n + 1)}[dice.IntN(3)] }
	lost.of = len(d.pending)
	stay := some(len(d.pending))
	for _, c := range d.pending[:stay] {
		keep(c)
	}
	lost.changes = lost.of - stay
	d.pending = nil
	for _, id := range slices.SortedFunc(maps.Keys(d.nodes), cmp.Compare[uint64]) {
		n := d.nodes[id]
		if n.isDir() {
			n.entries = maps.Clone(n.kept)
			continue
		}
		left := n.synced
		if n.dirty >= len(left) && len(n.data) > len(left) {
			left = n.data[:len(left)+some(len(n.data)-len(left))]
		}
		if len(left) != len(n.data) || n.dirty < len(left) {
			lost.bytes += max(len(n.data)-len(left), 0)
			lost.files++
		}
		n.data, n.synced, n.dirty = slices.Clone(left), slices.Clone(left), len(left)
	}
	return lost
}
