package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	driversql "github.com/go-sql-driver/mysql"

	"github.com/stockgate/stockgate/internal/ledger/mysql"
)

// OpensStock reports whether an address is one of MySQL or MariaDB.
func (*MySQL) OpensStock(dsn string) bool { return mysql.IsAddress(dsn) }

// OpenStock opens a shop's database. It refuses one that is read-only: a replica may be behind, and show
// units that are already sold.
func (*MySQL) OpenStock(dsn string) (*sql.DB, error) {
	c, err := mysql.Config(dsn)
	if err != nil {
		return nil, fmt.Errorf("dsn: %w", err)
	}
	connector, err := driversql.NewConnector(c)
	if err != nil { // the error may repeat a password
		return nil, fmt.Errorf("dsn: %w", mysql.ErrAddress)
	}
	return sql.OpenDB(primary{connector}), nil
}

// primary connects to servers that are written to.
type primary struct{ driver.Connector }

func (p primary) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := writes(ctx, c); err != nil {
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
		return errors.New("it is read-only, so it may be a replica that is behind and shows units that are already sold: give the address of the primary")
	}
	return nil
}
