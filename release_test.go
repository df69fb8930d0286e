package stockgate_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// The workflow publishes on a tag of a version what scripts/release builds, and may do nothing
// else.
func TestReleaseWorkflow(t *testing.T) {
	var flow struct {
		On struct {
			Push struct{ Tags, Branches []string }
		}
		Permissions map[string]string
		Jobs        map[string]struct {
			Permissions map[string]string
			Env         map[string]string
			Steps       []struct {
				Uses, Run string
				With      map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, ".github/workflows/release.yml")), &flow); err != nil {
		t.Fatal(err)
	}
	if tags := strings.Join(flow.On.Push.Tags, " "); tags != "v*" || len(flow.On.Push.Branches) > 0 {
		t.Errorf("it runs on %+v", flow.On)
	}
	job, ok := flow.Jobs["release"]
	may := map[string]string{"contents": "write", "id-token": "write", "attestations": "write"} // publishes, and signs what it has made
	if !ok || len(flow.Jobs) != 1 || !maps.Equal(flow.Permissions, may) || job.Permissions != nil {
		t.Errorf("permissions %v, jobs %v", flow.Permissions, flow.Jobs)
	}
	if job.Env["VERSION"] != "${{ github.ref_name }}" {
		t.Errorf("its version is %q", job.Env["VERSION"])
	}
	var run []string
	signed := ""
	for _, step := range job.Steps {
		if step.Run != "" {
			run = append(run, step.Run)
		}
		if strings.HasPrefix(step.Uses, "actions/attest-build-provenance@") {
			signed = step.With["subject-path"]
			if built := strings.Join(run, "\n"); !strings.Contains(built, "scripts/release ") || strings.Contains(built, "gh release create") {
				t.Errorf("it signs before it has built, or after it has published: %s", built)
			}
		}
		// text of an event inside a script is code that the event's author has written
		if strings.Contains(step.Run, "${{") {
			t.Errorf("a script with an expression: %s", step.Run)
		}
		for _, script := range regexp.MustCompile(`scripts/[a-z-]+`).FindAllString(step.Run, -1) {
			if info, err := os.Stat(script); err != nil || info.Mode()&0o111 == 0 {
				t.Errorf("%s is no program: %v", script, err)
			}
		}
	}
	all := strings.Join(run, "\n")
	if signed != "dist/stockgate_*\ndist/SHA256SUMS\n" {
		t.Errorf("it signs %q, and publishes other files", signed)
	}
	script := read(t, "scripts/release")
	for _, file := range []string{"dist/stockgate_*", "dist/SHA256SUMS", "dist/NOTES.md"} {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "dist/"), "*")
		if !strings.Contains(all, file) || !strings.Contains(script, name) {
			t.Errorf("%s is not what the script builds and the workflow publishes", file)
		}
	}
	if build := strings.Index(all, `scripts/release "$VERSION"`); build < 0 || build > strings.Index(all, "gh release create") {
		t.Errorf("it does not build before it publishes:\n%s", all)
	}
	install := read(t, "docs/install.md")
	for _, file := range []string{"stockgate_${VERSION}_linux_$ARCH.tar.gz", "stockgate_${VERSION}_$ARCH.deb"} {
		if !strings.Contains(install, file) {
			t.Errorf("docs/install.md does not name %s", file)
		}
	}
}

// A version that is no version, or that CHANGELOG.md does not have, is not released.
func TestReleaseRefuses(t *testing.T) {
	for _, version := range []string{"", "1.2.3", "v1.2", "v1.2.3;x", "v9999.0.0"} {
		if out, err := exec.Command("scripts/release", version).CombinedOutput(); err == nil || !strings.Contains(string(out), "release: ") {
			t.Errorf("%q: %v %s", version, err, out)
		}
	}
}

// Without dpkg-deb there is no Debian package: that is known before anything is built.
func TestReleaseNeedsDpkgDeb(t *testing.T) {
	dir := t.TempDir()
	for _, program := range []string{"bash", "dirname"} {
		path, err := exec.LookPath(program)
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, program))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("scripts/release", "v1.2.3-rc.1")
	cmd.Env = []string{"PATH=" + dir}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "release: this machine has no dpkg-deb") {
		t.Errorf("%v %s", err, out)
	}
}
