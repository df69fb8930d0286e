package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// load reads the file once for this process. Its bypasses were on, or not settled, when the last process ended.
func (bs *bypasses) load(log *zap.Logger) {
	bs.log.Store(log)
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if bs.read {
		return
	}
	bs.read = true
	text, err := os.ReadFile(bs.file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var kept adminapi.BypassList
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil {
		bs.unread = fmt.Errorf("%s cannot be read, so no gate is bypassed: %w; compare the sales with the shop, because orders may have passed without a reservation, and delete the file", bs.file, err)
		log.Error(bs.unread.Error())
		return
	}
	bs.written = text
	for _, p := range kept.Bypasses {
		p.Restarted = true
		b := bs.of(p.Gate)
		b.orders.Store(p.Orders)
		b.taken.Store(p.Taken)
		b.now.Store(&bypassPeriod{p, p.Until})
		if b.State() == BypassOn {
			log.Warn("a bypass is on from before the start: orders of this gate pass without a reservation", zap.String("gate", p.Gate), zap.Time("until", p.Until), zap.String("by", p.By), zap.String("reason", p.Reason))
		}
	}
}

// ours returns an error if another process has written the file since, or this one cannot read it.
func (bs *bypasses) ours() error {
	text, err := os.ReadFile(bs.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		bs.unread = nil
		return nil
	case err != nil:
		return errBypassFile(bs.file, "cannot be read: %w", err)
	case bs.unread != nil:
		return errBypassFile(bs.file, "is no file of bypasses: delete it, and say the same again")
	case !bytes.Equal(text, bs.written):
		return errBypassFile(bs.file, "was changed by another program: if a second Caddy of this user runs here, give each an XDG_DATA_HOME of its own; otherwise delete the file, and say the same again")
	}
	return nil
}

// save writes the file if its content changes; without bypasses there is none.
func (bs *bypasses) save() error { return bs.write(bs.periods()) }

func (bs *bypasses) write(all []adminapi.Bypass) error {
	list := adminapi.BypassList{Bypasses: all}
	if len(list.Bypasses) == 0 {
		if bs.written == nil {
			return nil
		}
		bs.written = nil
		if err := os.Remove(bs.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the bypass has ended, and the next start would go on with it: delete its file: %w", err)
		}
		return nil
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil || bytes.Equal(text, bs.written) {
		return err
	}
	if err := writeSynced(bs.file, text); err != nil {
		return errBypassFile(bs.file, "cannot be written: %w", err)
	}
	bs.written = text
	return nil
}

// writeSynced replaces a file by one that is on the disk.
func writeSynced(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if dir, err := os.Open(filepath.Dir(name)); err == nil { // best effort: not every system syncs directories
		_ = dir.Sync()
		_ = dir.Close()
	}
	return nil
}

// bypassText says what a bypass was, for the journal and the log.
func bypassText(p *adminapi.Bypass) string {
	text := fmt.Sprintf("bypass of gate %q at %s from %s to %s by %s: %d orders passed, %d were taken", p.Gate, p.Edge, p.From.Format(time.RFC3339), p.Until.UTC().Format(time.RFC3339), p.By, p.Orders, p.Taken)
	if p.Restarted {
		text += ", and more may have before a restart"
	}
	if p.Reason != "" {
		text += " (" + p.Reason + ")"
	}
	return text
}
