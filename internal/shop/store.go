package shop

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/stockgate/stockgate/internal/sale"
)

// Order is one order that is written.
type Order struct {
	OrderNo string `json:"order_no"`
	// Reservation is the jti of the token; empty: there was none (only in a
	// shop without a Verifier).
	Reservation string      `json:"reservation,omitempty"`
	Buyer       string      `json:"buyer"`
	Lines       []sale.Line `json:"lines"`
	CreatedAt   time.Time   `json:"created_at"`
}

// decisions holds what was decided about an id: an order (status 201), or a refusal, which
// is as final: a refused id is never sold. The index makes two decisions about one id
// impossible, even if other processes write to the file. A shop that does not verify has no
// ids to be unique (verified 0).
const decisions = `
CREATE TABLE IF NOT EXISTS decisions (
	no       INTEGER PRIMARY KEY AUTOINCREMENT,
	jti      TEXT    NOT NULL,
	verified INTEGER NOT NULL,
	status   INTEGER NOT NULL,
	code     INTEGER NOT NULL,
	msg      TEXT    NOT NULL,
	buyer    TEXT    NOT NULL,
	lines    TEXT    NOT NULL,
	at       INTEGER NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS decided_once ON decisions (jti) WHERE verified = 1;
CREATE INDEX IF NOT EXISTS decision_by_jti ON decisions (jti);`

// store keeps the decisions. All calls go through one connection: SQLite has
// one writer, and a second connection to a database in memory would see
// another database.
type store struct{ db *sql.DB }

// openStore opens the file; "": in memory.
func openStore(file string) (*store, error) {
	name := ":memory:"
	if file != "" {
		// Orders survive a crash of the machine: FULL syncs at every commit.
		pragmas := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)"}}
		name = "file:" + (&url.URL{Path: file}).EscapedPath() + "?" + pragmas.Encode()
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, fmt.Errorf("shop: opening %q: %w", file, err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(decisions); err != nil {
		return nil, errors.Join(fmt.Errorf("shop: opening %q: %w", file, err), db.Close())
	}
	return &store{db}, nil
}

func (s *store) close() error { return s.db.Close() }

// decision is a row: the answer, and what it is about.
type decision struct {
	jti      string
	verified bool
	answer   answer
	buyer    string
	lines    []sale.Line
}

// decide writes the decision unless the id has one already, and returns the valid
// answer; repeated: it is an earlier one.
func (s *store) decide(ctx context.Context, d decision) (stands answer, repeated bool, err error) {
	// A started order is written even if the client leaves; and interrupting the
	// connection would lose a database in memory.
	ctx = context.WithoutCancel(ctx)
	lines, err := json.Marshal(d.lines)
	if err != nil {
		return answer{}, false, err
	}
	var no int64
	err = s.db.QueryRowContext(ctx, `
		INSERT INTO decisions (jti, verified, status, code, msg, buyer, lines, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING RETURNING no`,
		d.jti, d.verified, d.answer.Status, d.answer.Code, d.answer.Msg, d.buyer, string(lines), time.Now().UnixMilli(),
	).Scan(&no)
	if errors.Is(err, sql.ErrNoRows) {
		stands, _, err = s.decided(ctx, d.jti)
		return stands, true, err
	}
	if err != nil {
		return answer{}, false, fmt.Errorf("shop: writing a decision: %w", err)
	}
	return d.answer.of(d.jti, no), false, nil
}

// decided returns the answer that an id was given; false: none yet.
func (s *store) decided(ctx context.Context, jti string) (answer, bool, error) {
	var a answer
	var no int64
	err := s.db.QueryRowContext(context.WithoutCancel(ctx),
		`SELECT no, status, code, msg FROM decisions WHERE jti = ? AND verified = 1`, jti,
	).Scan(&no, &a.Status, &a.Code, &a.Msg)
	if errors.Is(err, sql.ErrNoRows) {
		return answer{}, false, nil
	}
	if err != nil {
		return answer{}, false, fmt.Errorf("shop: reading a decision: %w", err)
	}
	a = a.of(jti, no)
	if a.Status == http.StatusCreated {
		a.Status = http.StatusOK // the same order, but not created now
	}
	return a, true, nil
}

const selectOrders = `SELECT no, jti, buyer, lines, at FROM decisions WHERE status = 201`

func (s *store) orders(ctx context.Context) ([]Order, error) {
	return s.query(ctx, selectOrders+` ORDER BY no`)
}

func (s *store) order(ctx context.Context, jti string) (Order, bool, error) {
	orders, err := s.query(ctx, selectOrders+` AND jti = ? ORDER BY no LIMIT 1`, jti)
	if err != nil || len(orders) == 0 || jti == "" {
		return Order{}, false, err
	}
	return orders[0], true, nil
}

func (s *store) query(ctx context.Context, query string, args ...any) ([]Order, error) {
	rows, err := s.db.QueryContext(context.WithoutCancel(ctx), query, args...)
	if err != nil {
		return nil, fmt.Errorf("shop: reading orders: %w", err)
	}
	defer rows.Close()
	orders := []Order{}
	for rows.Next() {
		var o Order
		var no, at int64
		var lines string
		if err := rows.Scan(&no, &o.Reservation, &o.Buyer, &lines, &at); err != nil {
			return nil, fmt.Errorf("shop: reading orders: %w", err)
		}
		if err := json.Unmarshal([]byte(lines), &o.Lines); err != nil {
			return nil, fmt.Errorf("shop: order %d: %w", no, err)
		}
		o.OrderNo, o.CreatedAt = orderNo(no), time.UnixMilli(at).UTC()
		orders = append(orders, o)
	}
	return orders, rows.Err()
}

func orderNo(no int64) string { return fmt.Sprintf("SO-%08d", no) }
