package lists

import "strconv"

// A named list has a hash tag of its own, so that one script sees all of it. Its entries are
// spread by their hashes over many sets: in the largest list each set has ten thousand entries,
// and no command on one set takes long.
const listParts = 1 << listPartBits

const listPartBits = 10

// listMetaKey is the hash that names the last change of a list.
func (l *Lists) listMetaKey(list string) string { return l.shard.ListKey(list, "meta") }

// listLogKey is the stream of a list's last changes.
func (l *Lists) listLogKey(list string) string { return l.shard.ListKey(list, "log") }

// listFormsKey is the hash of the forms of a list's entries.
func (l *Lists) listFormsKey(list string) string { return l.shard.ListKey(list, "forms") }

// listPartKey is one of the sets of a list's entries.
func (l *Lists) listPartKey(list string, part int) string {
	return l.shard.ListKey(list, strconv.Itoa(part))
}

// listChannel is where changes of a list are published.
func (l *Lists) listChannel(list string) string { return l.shard.ListKey(list, "notices") }
