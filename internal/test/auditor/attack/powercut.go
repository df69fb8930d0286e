package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/auditor/shop"
)

var powerCut = scenario{
	name: "power-cut", asked: true,
	about: "The disk of a store forgets at random moments under buyers what was not synced, bytes and names of files, and Caddy and its redis-server are killed: every order that a buyer heard of is in the books, and nothing is sold twice",
	run: func(a *attack) {
		disk := a.startDisk()
		dir := filepath.Join(disk.dir, "stock")
		a.redis = rig.Store(dir)
		options := "\n\t\ttimeout 5s"
		if fsync := os.Getenv("FSYNC"); fsync != "" {
			options += "\n\t\tredis_server " + a.redisWith("--appendfsync "+fsync)
		}
		a.stage(1, rig.Site{Store: dir + " {" + options + "\n\t}", Outcome: "hold_for 4s\n\t\tforward_timeout 2s"})
		a.h.EdgesDie, a.h.Max = true, 2
		a.shop.Conduct = func(o *auditor.Order) shop.Conduct {
			return shop.Slow(time.Duration(a.chance(40, o.Attempt))*time.Millisecond, shop.Sells)
		}
		a.sell("store", one(int64(a.size(1000, 50_000))), perBuyer)
		a.crowdWhile("store", a.size(12, 32), func() {
			for round := range a.size(5, 50) {
				pause(time.Duration(100+a.dice.IntN(2000))*time.Millisecond, nil)
				a.cutPower(disk, round)
			}
		})
		a.settle()
		a.sellsAgain("7")
		a.settle()
	},
}

// redisWith is a redis-server with more arguments than its configuration has.
func (a *attack) redisWith(arguments string) string {
	name := filepath.Join(a.dir, "redis-with")
	a.must(os.WriteFile(name, []byte("#!/bin/sh\nexec redis-server \"$@\" "+arguments+"\n"), 0o700))
	return name
}

// cutPower cuts the power under Caddy and its server, and starts Caddy with what is left.
func (a *attack) cutPower(disk *powerDisk, round int) {
	server := a.redis.StorePID() // its socket is on that disk
	a.must(disk.ask("cut", "cut"))
	a.edges[0].Kill()
	rig.Kill(server)
	a.must(disk.ask(fmt.Sprintf("mount %d", a.chance(1<<30, "cut", round)), "mounted"))
	var bytes, files, changes, of int
	if _, err := fmt.Sscanf(disk.said, "mounted without %d bytes of %d files and %d of %d changes of directories", &bytes, &files, &changes, &of); err != nil {
		a.must(err)
	}
	a.count("power cuts", 1)
	a.count("bytes forgotten", bytes)
	a.count("names forgotten", changes)
	a.must(a.edges[0].Run(a.site))
	a.until("the store answers after cut "+fmt.Sprint(round), func() bool {
		answer, err := a.redis.Do("PING")
		return err == nil && answer == "PONG"
	})
}

// powerDisk is a disk that forgets, see bench/powercut.
type powerDisk struct {
	dir   string
	to    io.Writer
	lines *bufio.Scanner
	said  string
}

func (a *attack) startDisk() *powerDisk {
	d := &powerDisk{dir: filepath.Join(a.dir, "disk")}
	a.must(os.Mkdir(d.dir, 0o700))
	cmd := exec.Command(cmp.Or(os.Getenv("POWERCUT"), "bin/powercut"), d.dir)
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	a.must(err)
	said, err := cmd.StdoutPipe()
	a.must(err)
	a.must(cmd.Start())
	a.cleanup = append(a.cleanup, func() {
		a.redis.KillStore()
		to.Close()
		_ = cmd.Wait()
	})
	d.to, d.lines = to, bufio.NewScanner(said)
	a.must(d.hears("mounted"))
	return d
}

// ask gives a command, and waits for its answer.
func (d *powerDisk) ask(command, answer string) error {
	if _, err := fmt.Fprintln(d.to, command); err != nil {
		return err
	}
	return d.hears(answer)
}

func (d *powerDisk) hears(answer string) error {
	if d.said = ""; d.lines.Scan() {
		d.said = d.lines.Text()
	}
	if !strings.HasPrefix(d.said, answer) {
		return fmt.Errorf("the disk says %q, not %s", d.said, answer)
	}
	return nil
}
