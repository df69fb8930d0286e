package sqldb

import "strings"

// Dialect is how the statements for one database differ from those for the others.
type Dialect struct {
	// Prefix begins the name of each table.
	Prefix string
	// Quote is around the name of a column: lines is a word of MySQL's.
	Quote string
	// Find is the function that returns where in its first argument, from 1, the second one begins; 0: nowhere.
	Find string
	// Bytes follows a text after ORDER BY, so that its bytes decide, whatever the database's language is.
	Bytes string
	// Lock ends a SELECT whose row must stay as it is until the transaction ends.
	Lock string
	// Ended is the end of a lease that was given up.
	Ended string
	// Present begins what an INSERT does to a row of this key that is there, New is the value that the INSERT has for a column.
	Present, New func(string) string
}

// OnConflict and Excluded are Present and New of SQLite and PostgreSQL.
func OnConflict(key string) string { return " ON CONFLICT (" + key + ") DO UPDATE SET " }

// Excluded is New of SQLite and PostgreSQL, see [OnConflict].
func Excluded(column string) string { return "excluded." + column }

// names lists columns.
func (d Dialect) names(columns []string) string {
	return d.Quote + strings.Join(columns, d.Quote+", "+d.Quote) + d.Quote
}

// upsert is what an INSERT does to a row that is there: set gives each column its value.
func (d Dialect) upsert(key string, columns []string, set func(column, value string) string) string {
	list := make([]string, len(columns))
	for i, column := range columns {
		list[i] = column + " = " + set(column, d.New(column))
	}
	return d.Present(key) + strings.Join(list, ", ")
}
