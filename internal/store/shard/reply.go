package shard

import (
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/lua"
)

// Operation is one operation of a call: what is asked, and its arguments.
type Operation struct {
	*lua.Operation
	Args []any
}

// Op makes an operation.
func Op(what *lua.Operation, args ...any) Operation { return Operation{what, args} }

// Reply is an operation's answer.
type Reply []any

func (r Reply) Code() lua.Code {
	if len(r) == 0 {
		return ""
	}
	word, _ := r[0].(string)
	return lua.Code(word)
}

func (r Reply) Text(i int) string {
	if i >= len(r) {
		return ""
	}
	w, _ := r[i].(string)
	return w
}

func (r Reply) Number(i int) int64 {
	if i >= len(r) {
		return 0
	}
	n, _ := r[i].(int64)
	return n
}

// Time reads a time in ms since 1970.
func (r Reply) Time(i int) time.Time { return time.UnixMilli(r.Number(i)) }

// Duration reads a time span in ms.
func (r Reply) Duration(i int) time.Duration { return time.Duration(r.Number(i)) * time.Millisecond }

// ReplyOf reads an operation's answer. last is a previous answer, which is reused when raw is
// the same text.
func ReplyOf(raw any, last *TextReply) Reply {
	text, ok := raw.(string)
	if !ok {
		r, _ := raw.([]any)
		return r
	}
	if text == last.text {
		return last.reply
	}
	var r Reply
	for word := range strings.SplitSeq(text, " ") {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			r = append(r, n)
		} else {
			r = append(r, word)
		}
	}
	last.text, last.reply = text, r
	return r
}

// TextReply is an answer that came as text, and what it parses to.
type TextReply struct {
	text  string
	reply Reply
}
