package postgres

import (
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"
)

// OpensStock reports whether an address is a URL or a keyword string of PostgreSQL.
func (*Postgres) OpensStock(dsn string) bool {
	scheme, _, isURL := strings.Cut(dsn, "://")
	return isURL && (scheme == "postgres" || scheme == "postgresql") || !isURL && strings.Contains(dsn, "=")
}

// OpenStock opens a shop's database. A query that takes too long is canceled
// in the database too, so that the database does not work for a client that has disconnected.
func (*Postgres) OpenStock(dsn string, _ time.Duration) (*sql.DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil { // the error may repeat a password that is written in the wrong place
		return nil, errors.New("the address cannot be read: write postgres://user:password@host:5432/database, " +
			"special characters in the password percent-encoded, or host=… user=… password=… dbname=…")
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "stockgate"
	}
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 5 * time.Second}
	}
	return stdlib.OpenDB(*config), nil
}
