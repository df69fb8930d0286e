package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

func backupStore(c *call) error {
	name := c.args[0]
	temp, err := beginBackup(name)
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	ctx, stop := signal.NotifyContext(c.cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	about, err := c.fetchBackup(ctx, temp)
	if err == nil {
		err = giveName(temp, name)
	}
	if err != nil {
		return err
	}
	if c.flag("json") {
		return json.NewEncoder(c.cmd.OutOrStdout()).Encode(about)
	}
	c.printf("%s has the store as of %s: %s, %s\n", name, adminapi.LocalTime(about.At), humanize.IBytes(uint64(about.Bytes)), salesText(about))
	return nil
}

// salesText tells how many sales a backup has, and which.
func salesText(b *adminapi.StoreBackup) string {
	text := plural(b.Sales, "sale")
	if b.Sales == 0 {
		return text
	}
	text += " (" + strings.Join(b.Named, ", ")
	if more := b.Sales - len(b.Named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ")"
}

// beginBackup makes the temporary file, before the server has any work.
func beginBackup(name string) (*os.File, error) {
	if err := isFree(name); err != nil {
		return nil, err
	}
	temp, err := os.OpenFile(fmt.Sprintf("%s.%d.part", name, os.Getpid()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, usageError{fmt.Errorf("the file cannot be written: %w", err)}
	}
	return temp, nil
}

// isFree refuses the name of a file that exists.
func isFree(name string) error {
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return usageError{fmt.Errorf("the file cannot be written: %w", err)}
		}
		return existsError(name)
	}
	return nil
}

func existsError(name string) error {
	return usageError{fmt.Errorf("%s exists, and a backup overwrites nothing: name another file", name)}
}

// giveName gives a file that is complete its name, unless another file has it. It is on the disk then.
func giveName(temp *os.File, name string) error {
	if err := errors.Join(temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("the backup cannot be written: %w", err)
	}
	err := os.Link(temp.Name(), name)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = takeName(temp.Name(), name) // some file systems have no links
	}
	if errors.Is(err, fs.ErrExist) {
		return existsError(name)
	}
	if err != nil {
		return fmt.Errorf("the backup cannot be written: %w", err)
	}
	_ = os.Remove(temp.Name())
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return nil // some directories may be written and not read
	}
	defer dir.Close()
	_ = dir.Sync()
	return nil
}

// takeName renames a file without a link. For a moment an empty file keeps the name from others.
func takeName(temp, name string) error {
	taken, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	taken.Close()
	if err := os.Rename(temp, name); err != nil {
		_ = os.Remove(name)
		return err
	}
	return nil
}

// fetchBackup writes a backup of the running Caddy to a file.
func (c *call) fetchBackup(ctx context.Context, to io.Writer) (*adminapi.StoreBackup, error) {
	address, err := c.adminAddress()
	if err != nil {
		return nil, usageError{err}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(adminapi.BackupTimeout+callTimeout, cancel) // for the begin of the answer
	defer late.Stop()
	const path = "store/backup"
	resp, err := openAdmin(c.tellStages(ctx), address, http.MethodPost, "/stockgate/"+path, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.Header.Get(adminapi.ServedHeader) == "" {
		return nil, notServed(address, resp.StatusCode)
	}
	about := &adminapi.StoreBackup{}
	if resp.StatusCode != http.StatusOK || json.Unmarshal([]byte(resp.Header.Get(adminapi.BackupHeader)), about) != nil {
		raw, err := io.ReadAll(io.LimitReader(resp.Body, callAnswer))
		if err != nil {
			return nil, brokeOff(address, err)
		}
		return nil, (&reply{address, path, resp.StatusCode, raw}).read(http.MethodPost, about)
	}
	late.Stop()
	return about, c.copyBackup(to, resp.Body, about.Bytes, address)
}

// tellStages has what a backup waits for said on standard error.
func (c *call) tellStages(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
		if what := header.Get(adminapi.StageHeader); what != "" && terminal.Is(c.cmd.ErrOrStderr()) {
			fmt.Fprintln(c.cmd.ErrOrStderr(), what)
		}
		return nil
	}})
}

// copyBackup copies a backup of a size.
func (c *call) copyBackup(to io.Writer, from io.Reader, size int64, address string) error {
	read := &readError{from: from}
	n, err := io.Copy(to, read)
	switch {
	case read.err != nil:
		return brokeOff(address, read.err)
	case err != nil:
		return fmt.Errorf("the backup cannot be written, and nothing is left of it: %w", err)
	case n != size:
		return brokeOff(address, io.ErrUnexpectedEOF)
	}
	return nil
}

// readError keeps the error of its reader, so that it is not taken for one of the writer.
type readError struct {
	from io.Reader
	err  error
}

func (r *readError) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
