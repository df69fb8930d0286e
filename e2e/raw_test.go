package e2e_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw is rawBytes with CRLF for \n in the head, and in a chunked body.
func (e *edge) raw(t *testing.T, text string) result {
	t.Helper()
	head, body, _ := strings.Cut(text, "\n\n")
	if strings.Contains(head, "chunked") {
		body = strings.ReplaceAll(body, "\n", "\r\n")
	}
	return e.rawBytes(t, strings.ReplaceAll(head, "\n", "\r\n")+"\r\n\r\n"+body)
}

// rawBytes sends bytes to an edge, HOST being its address, and reads one answer.
func (e *edge) rawBytes(t *testing.T, text string) result {
	t.Helper()
	var conn net.Conn
	var err error
	if strings.HasPrefix(e.url, "https") {
		conn, err = tls.Dial("tcp", e.addr, &tls.Config{ServerName: "localhost", InsecureSkipVerify: true})
	} else {
		conn, err = net.Dial("tcp", e.addr)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	text = strings.ReplaceAll(text, "HOST", e.addr)
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(text, " ")
	r, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return result{err: err}
	}
	body, err := io.ReadAll(r.Body)
	return result{
		status: r.StatusCode, header: r.Header, body: string(body), err: err,
		reason: r.Header.Get("Stockgate-Refusal"), reservation: r.Header.Get("Stockgate-Reservation"),
	}
}
