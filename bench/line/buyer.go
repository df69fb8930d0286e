package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"time"
)

// buyer asks on a connection of its own, with as little work for the crowd's core as that takes.
type buyer struct {
	addr    string
	request []byte
	conn    net.Conn
	answers *bufio.Reader
}

// patience is for how long a buyer waits for an answer.
const patience = 10 * time.Minute

func (b *buyer) connect() error {
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		return err
	}
	if b.answers == nil {
		b.answers = bufio.NewReaderSize(conn, 1024)
	}
	b.conn = conn
	b.answers.Reset(conn)
	return nil
}

func (b *buyer) close() {
	if b.conn != nil {
		_ = b.conn.Close()
		b.conn = nil
	}
}

// ask returns the status, why it was refused, and when to ask again. Without an answer the status
// is 0, and the next attempt connects again.
func (b *buyer) ask() (status int, reason string, wait time.Duration) {
	status, reason, wait, err := b.exchange()
	if err != nil {
		b.close()
		return 0, "no answer", time.Second
	}
	return status, reason, wait
}

func (b *buyer) exchange() (status int, reason string, wait time.Duration, err error) {
	if b.conn == nil {
		if err = b.connect(); err != nil {
			return 0, "", 0, err
		}
	}
	if err = b.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, "", 0, err
	}
	if _, err = b.conn.Write(b.request); err != nil {
		return 0, "", 0, err
	}
	a, err := http.ReadResponse(b.answers, nil)
	if err != nil {
		return 0, "", 0, err
	}
	if _, err = io.Copy(io.Discard, a.Body); err != nil {
		return 0, "", 0, err
	}
	_ = a.Body.Close()
	wait, err = time.ParseDuration(a.Header.Get("Retry-After") + "s")
	if err != nil {
		wait = time.Second
	}
	if a.Close {
		b.close()
	}
	return a.StatusCode, a.Header.Get("Stockgate-Refusal"), wait, nil
}
