package postgres

import "fmt"

// migrations are run in their order, each once; stockgate_schema has the number of
// those that were run. They are never changed, only added to.
var migrations = []string{`
-- How many of these migrations were run.
CREATE TABLE stockgate_schema (version bigint NOT NULL);

-- Every movement of stock, once, in order. Never changed and never deleted.
CREATE TABLE stockgate_movements (
	sale    text   NOT NULL,
	epoch   bigint NOT NULL, -- the life of the sale in Redis
	seq     bigint NOT NULL, -- its number in the journal
	kind    text   NOT NULL,
	time    bigint NOT NULL, -- ms since 1970, by Redis's clock
	id      text   NOT NULL, -- the reservation, the adjustment, or the sale's version
	was     text   NOT NULL, -- the state before
	lines   text   NOT NULL, -- cell quantity …
	buyer   text   NOT NULL, -- keyed hash
	cause   text   NOT NULL,
	record  text   NOT NULL, -- the whole reservation, where the journal tells it
	PRIMARY KEY (sale, epoch, seq)
);
CREATE INDEX stockgate_movements_id ON stockgate_movements (sale, id);

-- What the movements say of each reservation. Times are ms since 1970.
CREATE TABLE stockgate_reservations (
	sale     text   NOT NULL,
	id       text   NOT NULL,
	state    text   NOT NULL,
	created  bigint NOT NULL,
	changed  bigint NOT NULL,
	deadline bigint NOT NULL,
	exp      bigint NOT NULL,
	mode     text   NOT NULL,
	buyer    text   NOT NULL,
	lines    text   NOT NULL,
	returned text   NOT NULL,
	charges  text   NOT NULL, -- what it costs of purchase limits: limit amount …
	cause    text   NOT NULL,
	version  bigint NOT NULL, -- of the sale
	guard    text   NOT NULL,
	print    text   NOT NULL,
	key_ttl  bigint NOT NULL, -- ms
	ref      text   NOT NULL, -- the shop's own name of the order
	gate     text   NOT NULL,
	PRIMARY KEY (sale, id)
);

-- What the movements say of each stock cell (sku or sku@region).
CREATE TABLE stockgate_stock (
	sale      text   NOT NULL,
	cell      text   NOT NULL,
	stock     bigint NOT NULL,
	available bigint NOT NULL,
	held      bigint NOT NULL,
	in_doubt  bigint NOT NULL,
	confirmed bigint NOT NULL,
	PRIMARY KEY (sale, cell)
);

-- How far each sale has been drained, and who drains it.
CREATE TABLE stockgate_drains (
	sale        text   NOT NULL PRIMARY KEY,
	epoch       bigint NOT NULL,
	seq         bigint NOT NULL,
	owner       text   NOT NULL,
	lease_until timestamptz NOT NULL
);

-- The sales' files as they were when a change of them was drained.
CREATE TABLE stockgate_sales (
	sale    text   NOT NULL PRIMARY KEY,
	version bigint NOT NULL,
	status  text   NOT NULL,
	file    text   NOT NULL
);
`, `
-- The counters of unpaid holds that a reservation is in while it is not paid: field …
ALTER TABLE stockgate_reservations ADD COLUMN unpaid text NOT NULL DEFAULT '';
`}

// Migrations are what Migrate runs in an empty database, in order. A database that is
// already at this version is left as it is.
func Migrations() []string {
	out := make([]string, len(migrations))
	for i := range migrations {
		out[i] = migration(i)
	}
	return out
}

func migration(i int) string {
	return fmt.Sprintf("%s\nINSERT INTO stockgate_schema (version) VALUES (%d);\n", migrations[i], i+1)
}
