package h2

import (
	"bytes"
	"io"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// blocks decodes the client's header blocks, and encodes those for the server.
type blocks struct {
	decoder *hpack.Decoder
	list    uint32 // the server's MAX_HEADER_LIST_SIZE
	frame   uint32 // its MAX_FRAME_SIZE
	source  *blockReader

	encoder *hpack.Encoder
	encoded bytes.Buffer

	// of the block that is being decoded
	fields               []hpack.HeaderField
	emit                 func(hpack.HeaderField)
	left, trailersLeft   uint32
	regular              bool // a field has come that is no pseudo field
	isInvalid, truncated bool
}

func (b *blocks) init(c *Conn, l limits) {
	b.decoder = hpack.NewDecoder(l.table, nil)
	b.source = &blockReader{c: c}
	b.encoder = newEncoder(&b.encoded)
	b.list, b.frame = l.list, l.frame
	b.emit = b.field
}

// newEncoder returns an encoder without a dynamic table.
func newEncoder(w io.Writer) *hpack.Encoder {
	e := hpack.NewEncoder(w)
	e.SetMaxDynamicTableSize(0)
	return e
}

// framer returns a Framer that reads a block of several frames. It keeps its longest frame, so that
// each block has its own.
func (b *blocks) framer() *http2.Framer {
	f := http2.NewFramer(nil, b.source)
	f.ReadMetaHeaders = b.decoder
	f.MaxHeaderListSize = b.list
	f.SetMaxReadFrameSize(b.frame)
	return f
}

// blockError says how a header block is wrong.
type blockError uint8

const (
	blockRight       blockError = iota
	blockStream                 // the stream is reset with PROTOCOL_ERROR
	blockCompression            // the connection ends with COMPRESSION_ERROR
	blockProtocol               // it ends with PROTOCOL_ERROR, for this block
	blockOrder                  // the same, for another frame within it
	blockFrameSize              // it ends with FRAME_SIZE_ERROR
)

// decode decodes a block of one frame into fields, as x/net's Framer does (readMetaFrame).
func (b *blocks) decode(fragment []byte) blockError {
	b.fields = b.fields[:0]
	b.left, b.trailersLeft = b.list, b.list
	b.regular, b.isInvalid, b.truncated = false, false, false
	d := b.decoder
	d.SetEmitEnabled(true)
	d.SetMaxStringLength(int(b.list))
	d.SetEmitFunc(b.emit)
	if int64(len(fragment)) > 2*int64(b.left+b.trailersLeft) {
		return blockProtocol
	}
	if _, err := d.Write(fragment); err != nil {
		return blockCompression
	}
	if d.Close() != nil {
		return blockCompression
	}
	if b.isInvalid || !arePseudos(b.fields) {
		return blockStream
	}
	return blockRight
}

// field takes a field.
func (b *blocks) field(f hpack.HeaderField) {
	if !httpguts.ValidHeaderFieldValue(f.Value) {
		b.isInvalid = true
	}
	if strings.HasPrefix(f.Name, ":") {
		b.isInvalid = b.isInvalid || b.regular
	} else {
		b.regular = true
		b.isInvalid = b.isInvalid || !isWireName(f.Name)
	}
	if b.isInvalid {
		b.decoder.SetEmitEnabled(false)
		return
	}
	left, size := &b.left, f.Size()
	if f.Name == "trailer" {
		left = &b.trailersLeft
		count := uint32(strings.Count(f.Value, ",") + 1)
		size = uint32(len(f.Value)) - count + 1 + count*hpack.HeaderField{}.Size()
	}
	if size > *left {
		b.decoder.SetEmitEnabled(false)
		b.truncated, b.left, b.trailersLeft = true, 0, 0
		return
	}
	*left -= size
	b.fields = append(b.fields, f)
}

// isWireName reports whether a field's name is valid in HTTP/2.
func isWireName(name string) bool {
	for _, r := range name {
		if !httpguts.IsTokenRune(r) || 'A' <= r && r <= 'Z' {
			return false
		}
	}
	return name != ""
}

// arePseudos reports whether the pseudo fields are those of a request, each once, or of an answer.
func arePseudos(fields []hpack.HeaderField) bool {
	var request, answer bool
	for i, f := range fields {
		switch f.Name {
		case ":method", ":path", ":scheme", ":authority", ":protocol":
			request = true
		case ":status":
			answer = true
		default:
			if strings.HasPrefix(f.Name, ":") {
				return false
			}
			return !request || !answer
		}
		for _, before := range fields[:i] {
			if before.Name == f.Name {
				return false
			}
		}
	}
	return !request || !answer
}
