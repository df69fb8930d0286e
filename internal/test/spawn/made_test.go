package spawn_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/internal/test/spawn"
)

// A program makes a directory once, also for calls at the same time, and again when its arguments or the program have changed.
func TestMake(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	program, runs := filepath.Join(t.TempDir(), "make"), filepath.Join(t.TempDir(), "runs")
	script := "#!/bin/sh\necho run >> " + runs + "\nmkdir -p $2/sub && echo $1 > $2/sub/text\n"
	write := func(more string) {
		if err := os.WriteFile(program, []byte(script+more), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ran := func() int { text, _ := os.ReadFile(runs); return len(text) / len("run\n") }
	made := func(say string) {
		dir := filepath.Join(t.TempDir(), "data")
		if err := spawn.Make(exec.Command(program, say, dir), dir); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "sub", "text")); err != nil || string(text) != say+"\n" {
			t.Errorf("it has made %q (%v), want %q", text, err, say)
		}
	}
	write("")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { made("a") })
	}
	all.Wait()
	first := ran()
	for _, step := range []struct {
		say  string
		more int
	}{{"a", 0}, {"b", 1}, {"b", 0}, {"a", 0}} {
		before := ran()
		if made(step.say); ran()-before != step.more {
			t.Errorf("%s: the program ran %d times, want %d", step.say, ran()-before, step.more)
		}
	}
	write("# another version\n")
	if before := ran(); first < 1 || first > 4 {
		t.Errorf("the program ran %d times at first", first)
	} else if made("a"); ran() != before+1 {
		t.Errorf("another version ran %d times", ran()-before)
	}
	write("exit 1\n")
	dir := filepath.Join(t.TempDir(), "data")
	for range 2 { // what failed is not kept
		if err := spawn.Make(exec.Command(program, "a", dir), dir); err == nil {
			t.Error("a program that fails has made something")
		}
	}
}
