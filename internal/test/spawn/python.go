package spawn

import (
	"os/exec"
	"testing"
)

// Python finds a Python that has a module: the first of the path, or the system's,
// for which distributions have packages.
func Python(t *testing.T, module string) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import "+module).Run() == nil {
			return python
		}
	}
	t.Fatalf("no python3 has the module %s: `scripts/need python3-%s` installs it", module, module)
	return ""
}
