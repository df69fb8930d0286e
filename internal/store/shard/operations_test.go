package shard_test

import (
	"testing"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// A call has one script: operations of two, or of a script that takes none beside it, are a mistake in the
// program, which panics before anything is sent.
func TestACallHasOneScript(t *testing.T) {
	s, err := shard.Open(shard.Options{Addresses: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, call := range map[string]func(){
		"of two scripts":  func() { _, _ = s.Run(t.Context(), "s", shard.Op(lua.Confirm), shard.Op(lua.Adjust)) },
		"a whole script":  func() { _, _ = s.Run(t.Context(), "s", shard.Op(lua.Reserve)) },
		"one that shares": func() { _, _ = s.Eval(t.Context(), lua.Confirm, nil, nil, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it was sent")
				}
			}()
			call()
		})
	}
}

// What the caller alone could send is no promise when it is released.
func TestNeedsLease(t *testing.T) {
	for _, c := range []struct {
		op   shard.Operation
		want bool
	}{
		{shard.Op(lua.Release, "r", "shop", 0, ""), true},
		{shard.Op(lua.Release, "r", "unsent", 0, ""), false},
		{shard.Op(lua.Confirm, "r", "unsent", "", ""), true},
		{shard.Op(lua.Free, "r"), false},
	} {
		if c.op.NeedsLease() != c.want {
			t.Errorf("%s %v needs a lease: %v", c.op.Name, c.op.Args, !c.want)
		}
	}
}
