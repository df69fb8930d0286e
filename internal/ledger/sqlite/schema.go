package sqlite

import "fmt"

// applicationID marks a file as a ledger of Stockgate: "SGLg".
const applicationID = 0x53474c67

// migrations are run in their order, each once; the number of those that were run is
// SQLite's user_version. They are never changed, only added to.
var migrations = []string{`
-- Every movement of stock, once, in order. Never changed and never deleted.
CREATE TABLE movements (
	sale    TEXT    NOT NULL,
	epoch   INTEGER NOT NULL, -- the life of the sale in Redis
	seq     INTEGER NOT NULL, -- its number in the journal
	kind    TEXT    NOT NULL,
	time    INTEGER NOT NULL, -- ms since 1970, by Redis's clock
	id      TEXT    NOT NULL, -- the reservation, the adjustment, or the sale's version
	was     TEXT    NOT NULL, -- the state before
	lines   TEXT    NOT NULL, -- cell quantity …
	buyer   TEXT    NOT NULL, -- keyed hash
	cause   TEXT    NOT NULL,
	record  TEXT    NOT NULL, -- the whole reservation, where the journal tells it
	PRIMARY KEY (sale, epoch, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX movements_id ON movements (sale, id);

-- What the movements say of each reservation. Times are ms since 1970.
CREATE TABLE reservations (
	sale     TEXT    NOT NULL,
	id       TEXT    NOT NULL,
	state    TEXT    NOT NULL,
	created  INTEGER NOT NULL,
	changed  INTEGER NOT NULL,
	deadline INTEGER NOT NULL,
	exp      INTEGER NOT NULL,
	mode     TEXT    NOT NULL,
	buyer    TEXT    NOT NULL,
	lines    TEXT    NOT NULL,
	returned TEXT    NOT NULL,
	charges  TEXT    NOT NULL, -- what it costs of purchase limits: limit amount …
	cause    TEXT    NOT NULL,
	version  INTEGER NOT NULL, -- of the sale
	guard    TEXT    NOT NULL,
	print    TEXT    NOT NULL,
	key_ttl  INTEGER NOT NULL, -- ms
	ref      TEXT    NOT NULL, -- the shop's own name of the order
	gate     TEXT    NOT NULL,
	PRIMARY KEY (sale, id)
) STRICT, WITHOUT ROWID;

-- What the movements say of each stock cell (sku or sku@region).
CREATE TABLE stock (
	sale      TEXT    NOT NULL,
	cell      TEXT    NOT NULL,
	stock     INTEGER NOT NULL,
	available INTEGER NOT NULL,
	held      INTEGER NOT NULL,
	in_doubt  INTEGER NOT NULL,
	confirmed INTEGER NOT NULL,
	PRIMARY KEY (sale, cell)
) STRICT, WITHOUT ROWID;

-- How far each sale has been drained, and who drains it.
CREATE TABLE drains (
	sale        TEXT    NOT NULL PRIMARY KEY,
	epoch       INTEGER NOT NULL,
	seq         INTEGER NOT NULL,
	owner       TEXT    NOT NULL,
	lease_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The sales' files as they were when a change of them was drained.
CREATE TABLE sales (
	sale    TEXT    NOT NULL PRIMARY KEY,
	version INTEGER NOT NULL,
	status  TEXT    NOT NULL,
	file    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
`, `
-- The counters of unpaid holds that a reservation is in while it is not paid: field …
ALTER TABLE reservations ADD COLUMN unpaid TEXT NOT NULL DEFAULT '';
`}

// Migrations are what Migrate runs in an empty file, in order. A file that is already
// at this version is left as it is.
func Migrations() []string {
	out := make([]string, len(migrations))
	for i := range migrations {
		out[i] = migration(i)
	}
	return out
}

func migration(i int) string {
	return fmt.Sprintf("%s\nPRAGMA application_id = %d;\nPRAGMA user_version = %d;\n", migrations[i], applicationID, i+1)
}
