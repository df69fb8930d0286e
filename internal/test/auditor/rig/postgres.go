package rig

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// Postgres is a PostgreSQL with a directory of its own, on a unix socket.
type Postgres struct {
	*Process
	dir string
	uid uint32
	gid uint32
}

// StartPostgres makes a cluster of databases and runs it. It survives kill -9.
func StartPostgres() (*Postgres, error) {
	dir, err := os.MkdirTemp("", "pga")
	if err != nil {
		return nil, err
	}
	p := &Postgres{dir: dir}
	if os.Geteuid() == 0 { // PostgreSQL refuses root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		p.uid, p.gid = uint32(uid), uint32(gid)
		if err := os.Chown(dir, int(uid), int(gid)); err != nil {
			return nil, err
		}
	}
	initdb, err := program("initdb")
	if err != nil {
		return nil, err
	}
	cmd := p.as(exec.Command(initdb, "--pgdata="+p.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"))
	if out, err := cmd.CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return p, p.Run()
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

func (p *Postgres) as(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = p.dir
	if p.uid != 0 {
		runAs(cmd, p.uid, p.gid)
	}
	return cmd
}

// DSN is how an edge reaches it.
func (p *Postgres) DSN() string {
	return "host=" + p.dir + " user=postgres sslmode=disable dbname=postgres"
}

// Run starts the process, for the first time or again. After a kill it waits for the children of
// the one before: until they have gone, their shared memory keeps it from starting.
func (p *Postgres) Run() error {
	var err error
	late := Until("the processes of the last postgresql have gone", func() bool {
		err = p.run()
		return err == nil || !strings.Contains(err.Error(), "shared memory block")
	})
	return cmp.Or(err, late)
}

func (p *Postgres) run() error {
	postgres, err := program("postgres")
	if err != nil {
		return err
	}
	os.Remove(filepath.Join(p.data(), "postmaster.pid")) // of one that was killed
	log := new(Log)
	cmd := p.as(exec.Command(postgres, "-D", p.data(), "-c", "listen_addresses=", "-c", "unix_socket_directories="+p.dir,
		"-c", "fsync=off", "-c", "shared_buffers=32MB", "-c", "max_connections=50", "-c", "autovacuum=off"))
	if p.Process, err = start("postgres", cmd, log); err != nil {
		return err
	}
	err = Until("postgresql answers", func() bool {
		_, err := p.Query("SELECT 1")
		return err == nil || !p.Alive()
	})
	if err == nil && !p.Alive() {
		err = fmt.Errorf("postgresql ended at its start:\n%s", log.Tail(20))
	}
	return err
}

// Kill ends the server and its children at once, and waits.
func (p *Postgres) Kill() {
	if !p.Alive() {
		return
	}
	p.Stop() // stopped, it starts no others in place of those that are killed
	for _, pid := range children(p.cmd.Process.Pid) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	p.Process.Kill()
}

// Remove kills it and deletes its files.
func (p *Postgres) Remove() {
	p.Kill()
	os.RemoveAll(p.dir)
}

// Query asks by psql, a process of its own. Rows are lines, columns have a | between them.
func (p *Postgres) Query(statement string) ([]string, error) {
	psql, err := program("psql")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(psql, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", p.dir, "-U", "postgres", "-d", "postgres", "-c", statement)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("psql: %w", err)
	}
	text := strings.TrimRight(string(out), "\n")
	if text == "" {
		return nil, nil
	}
	return strings.Split(text, "\n"), nil
}

// Movements are all that the ledger has of a sale, in the order of epochs and numbers. Texts
// come in hex, so that no separator can be in them.
func (p *Postgres) Movements(sale string) ([]auditor.Movement, error) {
	hex := func(column string) string { return "encode(convert_to(coalesce(" + column + ", ''), 'UTF8'), 'hex')" }
	rows, err := p.Query("SELECT epoch, seq, time, kind, " + hex("id") + ", " + hex("was") + ", " + hex("lines") + ", " + hex("cause") + ", " + hex("record") +
		" FROM stockgate_movements WHERE sale = '" + sale + "' ORDER BY epoch, seq")
	if err != nil {
		return nil, err
	}
	return ledgerRows(rows)
}

func children(parent int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		words := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && len(words) > 1 && words[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// program finds one of PostgreSQL's programs: in PATH, or where packages put them.
func program(name string) (string, error) {
	if found, err := exec.LookPath(name); err == nil {
		return found, nil
	}
	var found []string
	for _, dirs := range []string{"/usr/lib/postgresql/*/bin/", "/usr/pgsql-*/bin/", "/opt/homebrew/opt/postgresql@*/bin/"} {
		more, _ := filepath.Glob(dirs + name) // the patterns are right
		found = append(found, more...)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no %s found; install PostgreSQL: scripts/need postgres", name)
	}
	slices.Sort(found)
	return found[len(found)-1], nil
}
