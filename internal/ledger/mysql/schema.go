package mysql

import "fmt"

// text is a text of any length, key one that is part of a key. Both compare byte by byte, whatever
// the database's collation is.
const (
	text = "mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"
	key  = "varchar(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"
)

// migrations are run in their order, each once; stockgate_schema has the number of those that were
// run. They are never changed, only added to. MySQL commits after each statement, so each can be run
// again after a crash.
var migrations = [][]string{{
	`-- How many of these migrations were run.
CREATE TABLE IF NOT EXISTS stockgate_schema (version bigint NOT NULL) ENGINE=InnoDB`,
	`-- Every movement of stock, once, in order. Never changed and never deleted.
CREATE TABLE IF NOT EXISTS stockgate_movements (
	sale   ` + key + `,
	epoch  bigint NOT NULL, -- the life of the sale in Redis
	seq    bigint NOT NULL, -- its number in the journal
	kind   ` + key + `,
	time   bigint NOT NULL, -- ms since 1970, by Redis's clock
	id     ` + key + `, -- the reservation, the adjustment, or the sale's version
	was    ` + key + `, -- the state before
	` + "`lines`" + `  ` + text + `, -- cell quantity …
	buyer  ` + text + `, -- keyed hash
	cause  ` + text + `,
	record ` + text + `, -- the whole reservation, where the journal tells it
	PRIMARY KEY (sale, epoch, seq),
	KEY stockgate_movements_id (sale, id)
) ENGINE=InnoDB`,
	`-- Each reservation, as the movements have it. Times are ms since 1970.
CREATE TABLE IF NOT EXISTS stockgate_reservations (
	sale     ` + key + `,
	id       ` + key + `,
	state    ` + key + `,
	created  bigint NOT NULL,
	changed  bigint NOT NULL,
	deadline bigint NOT NULL,
	exp      bigint NOT NULL,
	mode     ` + key + `,
	buyer    ` + text + `,
	` + "`lines`" + `    ` + text + `,
	returned ` + text + `,
	charges  ` + text + `, -- what it costs of purchase limits: limit amount …
	cause    ` + text + `,
	version  bigint NOT NULL, -- of the sale
	guard    ` + text + `,
	print    ` + text + `,
	key_ttl  bigint NOT NULL, -- ms
	ref      ` + text + `, -- the shop's own name of the order
	gate     ` + text + `,
	unpaid   ` + text + `, -- the counters of unpaid holds that it is in while it is not paid: field …
	PRIMARY KEY (sale, id)
) ENGINE=InnoDB`,
	`-- Each stock cell, as the movements have it (sku or sku@region).
CREATE TABLE IF NOT EXISTS stockgate_stock (
	sale      ` + key + `,
	cell      ` + key + `,
	stock     bigint NOT NULL,
	available bigint NOT NULL,
	held      bigint NOT NULL,
	in_doubt  bigint NOT NULL,
	confirmed bigint NOT NULL,
	PRIMARY KEY (sale, cell)
) ENGINE=InnoDB`,
	`-- How far each sale has been drained, and who drains it.
CREATE TABLE IF NOT EXISTS stockgate_drains (
	sale        ` + key + `,
	epoch       bigint NOT NULL,
	seq         bigint NOT NULL,
	owner       ` + key + `,
	lease_until bigint NOT NULL, -- ms since 1970, by the database's clock
	PRIMARY KEY (sale)
) ENGINE=InnoDB`,
	`-- The sales' files as they were when a change of them was drained.
CREATE TABLE IF NOT EXISTS stockgate_sales (
	sale    ` + key + `,
	version bigint NOT NULL,
	status  ` + key + `,
	file    ` + text + `,
	PRIMARY KEY (sale)
) ENGINE=InnoDB`,
}}

// Migrations are what Migrate runs in an empty database, in order. A database that is already at this
// version is left as it is.
func Migrations() (out []string) {
	for i := range migrations {
		for _, statement := range migration(i) {
			out = append(out, statement+";\n")
		}
	}
	return out
}

func migration(i int) []string {
	return append(migrations[i][:len(migrations[i]):len(migrations[i])], fmt.Sprintf("INSERT INTO stockgate_schema (version) VALUES (%d)", i+1))
}
