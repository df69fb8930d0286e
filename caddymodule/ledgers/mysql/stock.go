package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	driversql "github.com/go-sql-driver/mysql"

	"github.com/stockgate/stockgate/caddymodule/app/journals"
	"github.com/stockgate/stockgate/internal/ledger/mysql"
)

// OpensStock reports whether an address is one of MySQL or MariaDB.
func (*MySQL) OpensStock(dsn string) bool { return mysql.IsAddress(dsn) }

// OpenStock opens a shop's database. It refuses one that is read-only. The database ends a statement that takes longer
// than within: without that it would go on with it for a client that has left.
func (*MySQL) OpenStock(dsn string, within time.Duration) (*sql.DB, error) {
	c, err := mysql.Config(dsn)
	if err != nil {
		return nil, err
	}
	connector, err := driversql.NewConnector(c)
	if err != nil { // the error may repeat a password
		return nil, mysql.ErrAddress
	}
	return sql.OpenDB(primary{connector, within}), nil
}

// primary connects to servers that are written to.
type primary struct {
	driver.Connector
	within time.Duration
}

func (p primary) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := writes(ctx, c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if err := bound(ctx, c, p.within); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// writes returns an error unless a server is written to.
func writes(ctx context.Context, c driver.Conn) error {
	rows, err := c.(driver.QueryerContext).QueryContext(ctx, "SELECT CONCAT(@@global.read_only) NOT IN ('0', 'OFF') OR @@global.innodb_read_only", nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	var value [1]driver.Value
	if err := rows.Next(value[:]); err != nil {
		return err
	}
	if readOnly, err := driver.Bool.ConvertValue(value[0]); err != nil || readOnly != false {
		return journals.ErrReplica
	}
	return nil
}

// unknownVariable is the number of MySQL's error about a setting that it does not have.
const unknownVariable = 1193

// bound sets how long a statement of a session may take: in MariaDB in s, in MySQL in ms.
func bound(ctx context.Context, c driver.Conn, within time.Duration) error {
	set := func(statement string) error {
		_, err := c.(driver.ExecerContext).ExecContext(ctx, statement, nil)
		return err
	}
	err := set(fmt.Sprintf("SET SESSION max_statement_time = %.3f", within.Seconds()))
	if unknown, ok := errors.AsType[*driversql.MySQLError](err); ok && unknown.Number == unknownVariable {
		return set(fmt.Sprintf("SET SESSION max_execution_time = %d", within.Milliseconds()))
	}
	return err
}
