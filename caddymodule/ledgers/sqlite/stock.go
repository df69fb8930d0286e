package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// OpensStock reports whether an address is sqlite:FILE.
func (*SQLite) OpensStock(dsn string) bool { return strings.HasPrefix(dsn, "sqlite:") }

// OpenStock opens a shop's file, sqlite:/path, sqlite:///path or sqlite:path from where
// the command runs. It neither changes nor creates the file. A query ends with its
// context, because it runs in this process.
func (*SQLite) OpenStock(dsn string, _ time.Duration) (*sql.DB, error) {
	file := strings.TrimPrefix(strings.TrimPrefix(dsn, "sqlite:"), "//")
	if file == "" {
		return nil, errors.New("it names no file: write sqlite:/path/to/file")
	}
	switch info, err := os.Stat(file); {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory: name the file of the database", file)
	}
	options := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "query_only(1)"}}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: options.Encode()}).String())
}
