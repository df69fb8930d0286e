package measure

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Machine is the machine of a measurement, with its programs.
type Machine struct {
	Time     time.Time         `json:"time"`
	CPU      string            `json:"cpu"`
	Cores    int               `json:"cores"`
	Memory   string            `json:"memory"`
	Kernel   string            `json:"kernel"`
	System   string            `json:"system"`
	Go       string            `json:"go"`
	Commit   string            `json:"commit,omitempty"`
	PGO      bool              `json:"pgo"` // the Caddy binary was built with a profile
	Programs map[string]string `json:"programs"`
}

// ThisMachine describes where the process runs. What cannot be found out stays empty.
func ThisMachine() Machine {
	m := Machine{
		Time: time.Now().UTC().Truncate(time.Second), Cores: runtime.NumCPU(), Go: runtime.Version(),
		CPU:    after("/proc/cpuinfo", "model name"),
		Memory: after("/proc/meminfo", "MemTotal"),
		System: after("/etc/os-release", "PRETTY_NAME"),
		Kernel: firstLine("uname", "-sr"),
		Commit: firstLine("git", "describe", "--always", "--dirty"),
		Programs: map[string]string{
			"nginx":        firstLine("nginx", "-v"),
			"redis-server": firstLine("redis-server", "--version"),
			"wrk":          firstLine("wrk", "-v"),
			"h2load":       firstLine("h2load", "--version"),
		},
	}
	return m
}

// after returns what stands behind a name and a colon or an equals sign in a file.
func after(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		rest, found := strings.CutPrefix(line, name)
		if found {
			return strings.Trim(rest, " \t\n:=\"")
		}
	}
	return ""
}

// firstLine is the first line that a program prints, wherever it prints it; some
// tell their version and exit with an error.
func firstLine(name string, args ...string) string {
	out, _ := exec.Command(name, args...).CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}
