package ports_test

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/ports"
)

// many is more than a share has.
const many = 450

// Processes that run at the same time get different ports, also if each needs more than one share, and a server that is
// down finds its port free.
func TestNoPortIsGivenTwice(t *testing.T) {
	if os.Getenv("PORTS_OF") == "child" {
		os.Stdout.WriteString("ports:")
		for range many {
			os.Stdout.WriteString(" " + ports.For(t))
		}
		os.Stdout.WriteString("\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent has what it needs
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self, "-test.run", "^TestNoPortIsGivenTwice$")
	child.Env = append(os.Environ(), "PORTS_OF=child")
	end, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for part := make([]byte, 4096); !strings.Contains(text.String(), "\n"); {
		n, err := out.Read(part)
		if err != nil {
			t.Fatalf("%v: %s", err, text.String())
		}
		text.Write(part[:n])
	}
	given := map[string]bool{}
	all := strings.Fields(strings.TrimPrefix(text.String(), "ports:"))
	for range many {
		all = append(all, ports.For(t))
	}
	for _, port := range all {
		if given[port] {
			t.Errorf("the port %s is given twice", port)
		}
		given[port] = true
		ln, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Errorf("the port %s is not free: %v", port, err)
			continue
		}
		ln.Close()
	}
	if len(given) != 2*many {
		t.Errorf("%d ports", len(given))
	}
	end.Close()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}
