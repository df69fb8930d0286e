package command_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runRunbook runs the sale of the runbook, and each of its later sections on a site of its own.
func runRunbook(d *doc) {
	d.in("the sale", runSaleOfRunbook)
	for heading, scenario := range map[string]func(*doc){
		"Bypass": runBypass, "Reconcile": runReconcile, "The doctor": runDoctor, "Upgrade": runUpgrade,
	} {
		d.in(heading, scenario)
	}
}

// in runs a scenario on a site of its own, for the section of that heading if the page has one.
func (d *doc) in(heading string, scenario func(*doc)) {
	d.Run(heading, func(t *testing.T) {
		part := *d
		part.T, part.dir, part.done = t, t.TempDir(), make(map[string]bool)
		if strings.Contains(d.text, "\n## "+heading+"\n") {
			part.lines = commands(section(t, d.text, heading))
		}
		scenario(&part)
		maps.Copy(d.done, part.done)
	})
}

// runSaleOfRunbook runs the runbook from the week before to the week after.
func runSaleOfRunbook(d *doc) {
	w := d.site()
	d.file("double11.yaml", strings.Replace(docSale, "%s", "double11", 1))
	for _, heading := range []string{"The week before", "The hour before"} {
		for _, c := range commands(section(d.T, d.text, heading)) {
			d.run(c.line)
		}
	}
	w.shopper.Hold("r1", "20002001", 1, time.Hour)
	for _, c := range commands(section(d.T, d.text, "During the sale")) {
		d.run(c.line, " ID", " r1")
	}
	w.shopper.Must(w.shopper.Confirm(d.Context(), "double11", "r1", "answer", "status_201"))

	// before it is closed: what it takes when Redis has lost it, and when the shop was away
	d.file("orders.csv", "reservation\nr1\n")
	caughtUp(d.T, d.s, w.ledger)
	if err := w.redis.Client().FlushAll(d.Context()).Err(); err != nil {
		d.Fatal(err)
	}
	for _, c := range commands(section(d.T, d.text, "When something fails")) {
		if elsewhere["docs/runbook.md"][c.line] == "" {
			d.run(c.line)
		}
	}
	for _, c := range commands(section(d.T, d.text, "After the sale")) {
		if strings.Contains(c.line, "reconcile") { // when the ledger's lag is 0
			caughtUp(d.T, d.s, w.ledger)
		}
		d.run(c.line)
	}
	if len(d.done) < 20 {
		d.Errorf("only %d commands were found", len(d.done))
	}
}

// runInstall loads and opens the page's sale as printed. Its Caddyfile satisfies the doctor, and
// the completion knows the commands.
func runInstall(d *doc) {
	w := d.site()
	for line := range strings.Lines(d.blockOf("conf")) { // the doctor below finds no error in it
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if err := w.redis.Client().ConfigSet(d.Context(), name, value).Err(); err != nil {
			d.Error(err)
		}
	}
	d.fileOf("caddyfile", "Caddyfile")
	d.fileOf("yaml", "sale.yaml")
	d.all("caddy stockgate")
	if out := d.run("caddy stockgate sale list"); !strings.Contains(out, "double11  open") {
		d.Error(out)
	}
	delete(d.done, "caddy stockgate sale list")
	for _, dir := range []string{".config/fish/completions", "of-bash", "of-zsh"} {
		if err := os.MkdirAll(filepath.Join(d.dir, dir), 0o700); err != nil {
			d.Fatal(err)
		}
	}
	files := []string{"/etc/bash_completion.d", "of-bash", "${fpath[1]}", "of-zsh"}
	for _, of := range []string{"bash >", "zsh", "fish"} {
		d.run(d.line("caddy completion "+of).line, files...)
	}
	d.run(d.line("source <(caddy completion bash)").line)
	for _, file := range []string{"of-bash/caddy", "of-zsh/_caddy", ".config/fish/completions/caddy.fish"} {
		if script, err := os.ReadFile(filepath.Join(d.dir, file)); err != nil || !strings.Contains(string(script), "__complete") {
			d.Errorf("the completion %s: %v", file, err)
		}
	}
	if out := d.run("caddy __complete stockgate sale o"); !strings.HasPrefix(out, "open\t") {
		d.Errorf("%q completes to %q", "caddy stockgate sale o", out)
	}
}
