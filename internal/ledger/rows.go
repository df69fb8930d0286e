package ledger

import (
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
)

// All drivers store lines and records as Redis has them, and times as ms since 1970, so that
// operators can compare a row with Redis.

// Text is a text in a form that databases accept: valid UTF-8 without a zero byte. A cause may
// be any bytes that a client sends.
func Text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// MovementColumns are the columns of a movement, in the order of MovementRow.
var MovementColumns = []string{"sale", "epoch", "seq", "kind", "time", "id", "was", "lines", "buyer", "cause", "record"}

// MovementRow is a movement as it is stored.
func MovementRow(sale string, epoch int64, m *journal.Movement) []any {
	text := ""
	if m.Record != nil {
		text = m.Record.Text()
	}
	return []any{sale, epoch, m.Seq, Text(m.Kind), record.MsOf(m.Time), Text(m.ID), Text(string(m.Was)), Text(record.UnitsText(m.Lines)), Text(m.Buyer), Text(m.Cause), Text(text)}
}

// ScanMovement reads a movement; scan puts the columns after epoch into its
// arguments.
func ScanMovement(scan func(...any) error) (*journal.Movement, error) {
	var m journal.Movement
	var at int64
	var was, lines, text string
	err := scan(&m.Seq, &m.Kind, &at, &m.ID, &was, &lines, &m.Buyer, &m.Cause, &text)
	if err != nil {
		return nil, err
	}
	m.Time, m.Was = record.TimeOf(at), record.State(was)
	if m.Lines, err = record.ParseUnits(lines); err != nil {
		return nil, err
	}
	if text != "" {
		m.Record, err = record.Parse(text)
	}
	return &m, err
}

// ScanEpochMovement reads a movement that begins with its epoch, and yields it.
func ScanEpochMovement(scan func(...any) error, yield func(int64, *journal.Movement) error) error {
	var epoch int64
	m, err := ScanMovement(func(into ...any) error { return scan(append([]any{&epoch}, into...)...) })
	if err != nil {
		return err
	}
	return yield(epoch, m)
}

// MoveRow is what a move changes, as it is stored.
func MoveRow(m *Move) (id, from, state, cause string, changed int64) {
	return Text(m.ID), string(m.From), string(m.State), Text(m.Cause), record.MsOf(m.Changed)
}

// ReservationColumns are the columns of a reservation, in the order of
// ReservationRow.
var ReservationColumns = []string{
	"sale", "id", "state", "created", "changed", "deadline", "exp", "mode", "buyer", "lines", "returned", "charges", "cause", "version",
	"guard", "print", "key_ttl", "ref", "gate", "unpaid",
}

// ReservationRow is a reservation as it is stored.
func ReservationRow(sale string, r *Reservation) []any {
	return []any{
		sale, Text(r.ID), Text(string(r.State)), record.MsOf(r.Created), record.MsOf(r.Changed), record.MsOf(r.Deadline), record.MsOf(r.Exp), Text(string(r.Mode)), Text(r.Buyer),
		Text(record.UnitsText(r.Lines)), Text(record.UnitsText(r.Returned)), Text(r.Charges), Text(r.Cause), r.Version, Text(r.Guard), Text(r.Print),
		r.KeyTTL.Milliseconds(), Text(r.Ref), Text(r.Gate), Text(r.Unpaid),
	}
}

// ScanReservation reads a reservation; scan puts the columns after sale into its
// arguments.
func ScanReservation(scan func(...any) error) (*Reservation, error) {
	var r Reservation
	var created, changed, deadline, exp, ttl int64
	var lines, returned string
	err := scan(&r.ID, &r.State, &created, &changed, &deadline, &exp, &r.Mode, &r.Buyer, &lines, &returned, &r.Charges, &r.Cause, &r.Version,
		&r.Guard, &r.Print, &ttl, &r.Ref, &r.Gate, &r.Unpaid)
	if err != nil {
		return nil, err
	}
	r.Created, r.Changed, r.Deadline, r.Exp, r.KeyTTL = record.TimeOf(created), record.TimeOf(changed), record.TimeOf(deadline), record.TimeOf(exp), time.Duration(ttl)*time.Millisecond
	if r.Lines, err = record.ParseUnits(lines); err != nil {
		return nil, err
	}
	r.Returned, err = record.ParseUnits(returned)
	return &r, err
}
