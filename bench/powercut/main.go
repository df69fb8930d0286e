// Powercut mounts a disk in memory. When its power is cut, it forgets all that was not synced: bytes written since the last
// fsync of their file, and names made since the last fsync of their directory. It needs root and /dev/fuse.
//
//	powercut DIRECTORY
//
// It says "mounted", and reads commands: "cut", after which every call fails; and "mount SEED", which mounts what is left.
package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "powercut:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name the directory to mount it on")
	}
	dir, d := args[0], newDisk()
	m, err := mountOn(dir, d)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }()
	fmt.Println("mounted")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var seed uint64
		switch _, err := fmt.Sscanf(lines.Text(), "mount %d", &seed); {
		case lines.Text() == "cut":
			m.dead.Store(true)
			m.mu.Lock() // a call that has begun has ended
			m.mu.Unlock()
			fmt.Println("cut")
		case err == nil:
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				return err
			}
			lost := d.cut(rand.New(rand.NewPCG(seed, 1)))
			if m, err = mountOn(dir, d); err != nil {
				return err
			}
			fmt.Printf("mounted without %d bytes of %d files and %d of %d changes of directories\n", lost.bytes, lost.files, lost.changes, lost.of)
		default:
			return fmt.Errorf("no command is %q", lines.Text())
		}
	}
	return nil
}

func mountOn(dir string, d *disk) (*mount, error) {
	m := &mount{RawFileSystem: fuse.NewDefaultRawFileSystem(), disk: d}
	s, err := fuse.NewServer(m, dir, &fuse.MountOptions{DirectMountStrict: true, FsName: "powercut", Name: "powercut", DisableXAttrs: true, DisableReadDirPlus: true, MaxWrite: 1 << 20})
	if err != nil {
		return nil, fmt.Errorf("FUSE cannot be mounted: %w", err)
	}
	go s.Serve()
	return m, s.WaitMount()
}
