package shard

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Ping returns an error unless the server answers, and has read what it has on its disk.
func (s *Client) Ping(ctx context.Context) error { return Explain(behind(s.redis).Ping(ctx).Err()) }

// Shutdown asks the server to end. It syncs its append-only file before.
func (s *Client) Shutdown(ctx context.Context) error {
	return Explain(behind(s.redis).ShutdownNoSave(ctx).Err())
}

// SetMaxMemory sets the server's maxmemory, in bytes, until its next start.
func (s *Client) SetMaxMemory(ctx context.Context, bytes int64) error {
	return Explain(behind(s.redis).ConfigSet(ctx, "maxmemory", strconv.FormatInt(bytes, 10)).Err())
}

// EndFences ends what sales wait for, so that none waits for an edge that was killed, or for what it knew. Call it
// only where none can live: before the first edge of a server that only this process reaches, and that has kept all
// it acknowledged. The next edge begins a new term.
func (s *Client) EndFences(ctx context.Context) error {
	ids, err := behind(s.redis).SMembers(ctx, s.SalesKey()).Result()
	if err != nil {
		return Explain(err)
	}
	for _, id := range ids {
		switch r, _, _, err := s.Beat(ctx, id, &Beat{Edge: "-", Does: "off"}); {
		case err != nil:
			return err
		case r.Code() == "invalid":
			return fmt.Errorf("sale %s: fence refuses %q", id, r.Text(1))
		}
	}
	return nil
}

// AppendOnlyFile is what a server says of its append-only file.
type AppendOnlyFile struct {
	Size int64 // bytes
	Base int64 // what Size was when the server last read or rewrote the file
	// Rewriting says that the server is making the file smaller. Loading says that it reads the file, and answers
	// nothing else yet.
	Rewriting, Loading bool
}

// AppendOnlyFile asks the server about its append-only file.
func (s *Client) AppendOnlyFile(ctx context.Context) (AppendOnlyFile, error) {
	text, err := behind(s.redis).Info(ctx, "persistence").Result()
	if err != nil {
		return AppendOnlyFile{}, Explain(err)
	}
	info := infoFields(text)
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(info[name], 10, 64)
		return n
	}
	return AppendOnlyFile{
		Size: number("aof_current_size"), Base: number("aof_base_size"),
		Rewriting: info["aof_rewrite_in_progress"] == "1", Loading: info["loading"] == "1",
	}, nil
}

// SaveState is what a server says of the copy of its data that it writes to a file.
type SaveState struct {
	// Server names the process, and differs after each start.
	Server string
	// Rewriting: it rewrites its append-only file, and begins no copy before that has ended. Saving: it writes a copy.
	Rewriting, Saving bool
	// Failed: the last copy could not be written.
	Failed bool
	// Memory is how many bytes it uses: no copy is larger.
	Memory int64
}

// Save asks the server to begin a copy of its data, as they are now, in its directory.
func (s *Client) Save(ctx context.Context) error { return Explain(behind(s.redis).BgSave(ctx).Err()) }

// SaveState returns how far that is.
func (s *Client) SaveState(ctx context.Context) (SaveState, error) {
	text, err := behind(s.redis).Info(ctx, "server", "persistence", "memory").Result()
	if err != nil {
		return SaveState{}, Explain(err)
	}
	info := infoFields(text)
	state := SaveState{
		Server: info["run_id"], Saving: info["rdb_bgsave_in_progress"] == "1", Failed: info["rdb_last_bgsave_status"] != "ok",
		Rewriting: info["aof_rewrite_in_progress"] == "1" || info["aof_rewrite_scheduled"] == "1",
	}
	if state.Memory, err = strconv.ParseInt(info["used_memory"], 10, 64); err != nil {
		return SaveState{}, fmt.Errorf("%w: the server does not say how much memory it uses", ErrUnavailable)
	}
	return state, nil
}

// Prefixes returns the prefixes under which a server has sales.
func (s *Client) Prefixes(ctx context.Context) (all []string, err error) {
	for cursor := uint64(0); ; {
		var keys []string
		if keys, cursor, err = behind(s.redis).ScanType(ctx, cursor, "*:sales", 1000, "set").Result(); err != nil {
			return nil, Explain(err)
		}
		for _, key := range keys {
			all = append(all, strings.TrimSuffix(key, ":sales"))
		}
		if cursor == 0 {
			slices.Sort(all)
			return slices.Compact(all), nil
		}
	}
}
