package e2e_test

import (
	"net"
	"os/exec"
	"runtime"
	"testing"
)

// runProgram runs a program until the test ends, and waits until it listens.
func runProgram(t *testing.T, cmd *exec.Cmd, addr string) {
	t.Helper()
	log := new(logBuffer)
	cmd.Stdout, cmd.Stderr = log, log
	dieWithParent(cmd)
	gone, started := make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread() // Linux ties the child's life to the thread that started it
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
			close(gone)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-gone
		if t.Failed() {
			t.Logf("%v:\n%s", cmd.Args, log.tail())
		}
	})
	eventually(t, "the program listens", func() bool {
		select {
		case <-gone:
			t.Fatalf("%v ended:\n%s", cmd.Args, log.String())
		default:
		}
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}
