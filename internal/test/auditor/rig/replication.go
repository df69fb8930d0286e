package rig

import "strings"

// Info is one field of a section of INFO; empty: Redis does not answer, or has no such field.
func (r *Redis) Info(section, field string) string {
	info, err := r.Do("INFO", section)
	text, _ := info.(string)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Follows reports whether this replica has a link to its primary.
func (r *Redis) Follows() bool { return r.Info("replication", "master_link_status") == "up" }

// Follow makes it a replica of an address.
func (r *Redis) Follow(addr string) error {
	host, port, _ := strings.Cut(addr, ":")
	_, err := r.Do("REPLICAOF", host, port)
	return err
}

// Promote makes it a primary.
func (r *Redis) Promote() error {
	_, err := r.Do("REPLICAOF", "NO", "ONE")
	return err
}
