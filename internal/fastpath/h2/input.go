package h2

import (
	"encoding/binary"
	"sync"

	"golang.org/x/net/http2"
)

const (
	headerSize = 9 // of a frame
	smallInput = 256
	// largeInput has room for a frame with the largest body that is answered here.
	largeInput = maxBody + 1024
)

var largeInputs = sync.Pool{New: func() any { return new([largeInput]byte) }}

// input is what has come from the client and was not yet used. A connection that is idle needs
// little memory for it.
type input struct {
	rest       []byte // what came with the preface
	small      [smallInput]byte
	large      *[largeInput]byte
	start, end int
}

// bytes is what is there.
func (i *input) bytes() []byte { return i.buffer()[i.start:i.end] }

func (i *input) buffer() []byte {
	if i.large != nil {
		return i.large[:]
	}
	return i.small[:]
}

// room makes room for at least one more byte. No frame that must be whole is longer than the
// large buffer.
func (i *input) room() []byte {
	switch {
	case i.start == i.end:
		i.start, i.end = 0, 0
		if i.large != nil {
			largeInputs.Put(i.large)
			i.large = nil
		}
	case i.end < len(i.buffer()):
	case i.start > 0 && i.large != nil:
		i.end = copy(i.large[:], i.large[i.start:i.end])
		i.start = 0
	case i.large == nil:
		large := largeInputs.Get().(*[largeInput]byte)
		i.end = copy(large[:], i.small[i.start:i.end])
		i.start, i.large = 0, large
	}
	return i.buffer()[i.end:]
}

// load moves what came with the preface into the buffer, as much as fits. It returns false if
// there is nothing more.
func (i *input) load() bool {
	if len(i.rest) == 0 {
		return false
	}
	n := copy(i.room(), i.rest)
	i.end += n
	if i.rest = i.rest[n:]; len(i.rest) == 0 {
		i.rest = nil
	}
	return true
}

// take moves bytes out of the buffer.
func (i *input) take(p []byte) int {
	if i.start == i.end {
		i.load()
	}
	n := copy(p, i.bytes())
	i.start += n
	return n
}

// frameHeader is the header of a frame (RFC 9113, section 4.1).
type frameHeader struct {
	length uint32
	kind   http2.FrameType
	flags  http2.Flags
	stream uint32
}

func parseHeader(b []byte) frameHeader {
	return frameHeader{
		uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]), http2.FrameType(b[3]), http2.Flags(b[4]), binary.BigEndian.Uint32(b[5:]) & (1<<31 - 1),
	}
}

func appendHeader(b []byte, length int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, stream)
}

func appendWindowUpdate(b []byte, stream, n uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHeader(b, 4, http2.FrameWindowUpdate, 0, stream), n)
}

func appendReset(b []byte, stream uint32, code http2.ErrCode) []byte {
	return binary.BigEndian.AppendUint32(appendHeader(b, 4, http2.FrameRSTStream, 0, stream), uint32(code))
}
