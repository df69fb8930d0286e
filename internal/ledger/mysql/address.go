package mysql

import (
	"errors"
	"net"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// ErrAddress says that the address of a database cannot be read. It does not repeat the address, which may
// have a password.
var ErrAddress = errors.New("the address of the database cannot be read: write mysql://user:password@host:3306/database, " +
	"special characters in the password percent-encoded; ?tls=true for TLS, ?socket=/run/mysqld/mysqld.sock with an empty host for a socket")

// IsAddress tells whether an address is one of MySQL or MariaDB.
func IsAddress(address string) bool {
	scheme, _, isURL := strings.Cut(address, "://")
	return isURL && (scheme == "mysql" || scheme == "mariadb") || strings.Contains(address, "@tcp(") || strings.Contains(address, "@unix(")
}

// Config reads an address: mysql://user:password@host:3306/database, with the parameters tls and socket, or
// user:password@tcp(host:3306)/database as the driver writes it. The session is strict, in UTC, whatever the server's
// settings are.
func Config(address string) (*mysql.Config, error) {
	c, err := parse(address)
	if err != nil || c.DBName == "" {
		return nil, ErrAddress
	}
	c.MultiStatements, c.ParseTime, c.InterpolateParams, c.ClientFoundRows = false, false, false, true
	c.Logger = &mysql.NopLogger{} // errors are returned too
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Params == nil {
		c.Params = make(map[string]string)
	}
	// NO_ENGINE_SUBSTITUTION: without InnoDB there is an error, and no table of another engine
	c.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE'"
	c.Params["time_zone"], c.Params["autocommit"] = "'+00:00'", "1"
	return c, nil
}

func parse(address string) (*mysql.Config, error) {
	if !IsAddress(address) {
		return nil, ErrAddress
	}
	if !strings.Contains(address, "://") {
		return mysql.ParseDSN(address)
	}
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" || u.Fragment != "" || strings.Count(u.Path, "/") != 1 {
		return nil, ErrAddress
	}
	c := mysql.NewConfig()
	c.User, c.DBName, c.Net = u.User.Username(), u.Path[1:], "tcp"
	c.Passwd, _ = u.User.Password()
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	c.Addr = net.JoinHostPort(u.Hostname(), port)
	for name, values := range u.Query() {
		switch {
		case len(values) != 1:
			return nil, ErrAddress
		case name == "tls":
			c.TLSConfig = values[0]
		case name == "socket" && u.Host == "" && path.IsAbs(values[0]):
			c.Net, c.Addr = "unix", values[0]
		default:
			return nil, ErrAddress
		}
	}
	if c.Net == "tcp" && u.Hostname() == "" {
		return nil, ErrAddress
	}
	// the driver checks tls where it reads its own form
	return mysql.ParseDSN(c.FormatDSN())
}
