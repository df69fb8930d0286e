package main

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// mount is a disk as the kernel sees it, until its power is cut.
type mount struct {
	fuse.RawFileSystem
	mu   sync.Mutex
	disk *disk
	dead atomic.Bool
}

const eio = fuse.Status(syscall.EIO)

// with runs something on a node.
func (m *mount) with(id uint64, do func(n *inode) fuse.Status) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.disk.nodes[id]
	if m.dead.Load() || n == nil {
		return eio
	}
	return do(n)
}

func (n *inode) attr(a *fuse.Attr) {
	a.Ino, a.Mode, a.Nlink, a.Size, a.Blksize = n.id, n.mode, 1, uint64(len(n.data)), 4096
	a.Blocks = (a.Size + 511) / 512
	a.SetTimes(&n.changed, &n.changed, &n.changed)
}

func (n *inode) out(o *fuse.EntryOut) fuse.Status {
	o.NodeId = n.id
	n.attr(&o.Attr)
	return fuse.OK
}

func (m *mount) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return m.with(h.NodeId, func(dir *inode) fuse.Status {
		if n := dir.entries[name]; n != nil {
			return n.out(out)
		}
		return fuse.ENOENT
	})
}

func (m *mount) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return m.with(in.NodeId, func(n *inode) fuse.Status {
		n.attr(&out.Attr)
		return fuse.OK
	})
}

func (m *mount) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return m.with(in.NodeId, func(n *inode) fuse.Status {
		if size, ok := in.GetSize(); ok {
			n.resize(int(size))
		}
		if mode, ok := in.GetMode(); ok {
			n.mode = n.mode&syscall.S_IFMT | mode&^uint32(syscall.S_IFMT)
		}
		n.attr(&out.Attr)
		return fuse.OK
	})
}

// make adds a node to a directory.
func (m *mount) make(dir uint64, name string, mode uint32, out *fuse.EntryOut) fuse.Status {
	return m.with(dir, func(in *inode) fuse.Status {
		if in.entries[name] != nil {
			return fuse.Status(syscall.EEXIST)
		}
		n := m.disk.add(mode)
		m.disk.do(change{{in, n, name}})
		return n.out(out)
	})
}

func (m *mount) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return m.make(in.NodeId, name, in.Mode, out)
}

func (m *mount) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return m.make(in.NodeId, name, in.Mode&^uint32(syscall.S_IFMT)|syscall.S_IFDIR, out)
}

func (m *mount) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return m.make(in.NodeId, name, in.Mode&^uint32(syscall.S_IFMT)|syscall.S_IFREG, &out.EntryOut)
}

func (m *mount) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return m.with(h.NodeId, func(dir *inode) fuse.Status {
		if dir.entries[name] == nil {
			return fuse.ENOENT
		}
		m.disk.do(change{{dir, nil, name}})
		return fuse.OK
	})
}

func (m *mount) Rmdir(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return m.Unlink(cancel, h, name)
}

func (m *mount) Rename(_ <-chan struct{}, in *fuse.RenameIn, old, name string) fuse.Status {
	return m.with(in.NodeId, func(from *inode) fuse.Status {
		n, to := from.entries[old], m.disk.nodes[in.Newdir]
		if n == nil || to == nil {
			return fuse.ENOENT
		}
		m.disk.do(change{{from, nil, old}, {to, n, name}})
		return fuse.OK
	})
}

func (m *mount) open(id uint64) fuse.Status {
	return m.with(id, func(*inode) fuse.Status { return fuse.OK })
}

func (m *mount) Open(_ <-chan struct{}, in *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	return m.with(in.NodeId, func(n *inode) fuse.Status {
		if in.Flags&syscall.O_TRUNC != 0 {
			n.resize(0)
		}
		return fuse.OK
	})
}

func (m *mount) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	return m.open(in.NodeId)
}

func (m *mount) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (r fuse.ReadResult, s fuse.Status) {
	s = m.with(in.NodeId, func(n *inode) fuse.Status {
		at := min(int(in.Offset), len(n.data))
		r = fuse.ReadResultData(buf[:copy(buf, n.data[at:])])
		return fuse.OK
	})
	return r, s
}

func (m *mount) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	return uint32(len(data)), m.with(in.NodeId, func(n *inode) fuse.Status {
		n.write(data, int(in.Offset))
		return fuse.OK
	})
}

func (m *mount) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status { return m.open(in.NodeId) }

func (m *mount) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return m.with(in.NodeId, func(n *inode) fuse.Status {
		m.disk.sync(n)
		return fuse.OK
	})
}

func (m *mount) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return m.Fsync(cancel, in)
}

func (m *mount) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return m.with(in.NodeId, func(dir *inode) fuse.Status {
		names := slices.Sorted(maps.Keys(dir.entries))
		for i := int(in.Offset); i < len(names); i++ {
			n := dir.entries[names[i]]
			if !out.AddDirEntry(fuse.DirEntry{Name: names[i], Mode: n.mode, Ino: n.id, Off: uint64(i + 1)}) {
				break
			}
		}
		return fuse.OK
	})
}

func (m *mount) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Blocks, out.Bfree, out.Bavail, out.Bsize, out.NameLen = 1<<24, 1<<24, 1<<24, 4096, 255
	return fuse.OK
}
