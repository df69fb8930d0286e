package h2

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

// flow is the credit that the client gives the connection for DATA (RFC 9113, section 5.2).
type flow struct {
	server int64 // what the server may send
	own    int64 // what may be sent here
	back   int64 // what the server gets back when Read looks
	wanted bool  // an answer has lacked credit
}

// grant divides a WINDOW_UPDATE. It returns what the server gets, and false if the client gives
// more than it may: then back is all that was withheld.
func (f *flow) grant(n int64) (int64, bool) {
	if f.server+f.own+f.back+n > maxWindow {
		f.back += f.own
		f.own = 0
		return 0, false
	}
	keeps := int64(ampleCredit)
	if f.wanted {
		keeps = scarceCredit
	}
	withheld := min((f.server+n-f.own)/2, f.server+n-keeps, n)
	withheld = max(withheld, 0)
	f.own += withheld
	f.server += n - withheld
	return n - withheld, true
}

// starves reports whether the server has little credit while some was withheld. Then it gets
// all of that.
func (f *flow) starves() bool {
	if f.server >= lowCredit || f.own == 0 {
		return false
	}
	f.back += f.own
	f.own, f.wanted = 0, false
	return true
}

// peer is what the client has announced in its SETTINGS. It counts when the server has
// acknowledged it; until then, the smaller window does.
type peer struct {
	window  int64
	table   uint32
	pending []settings
	// lowered: the client has made its table smaller. The server says so at the beginning of
	// its next header block, which must be the first that the client gets.
	lowered bool
	acked   bool // the server has acknowledged that
}

// settings are those of one frame.
type settings struct {
	window int64 // -1: as it was
	table  int64
}

// maxPending bounds the SETTINGS that are not acknowledged.
const maxPending = 16

// announce notes the SETTINGS of the client.
func (p *peer) announce(b []byte) {
	s := settings{-1, -1}
	for ; len(b) >= 6; b = b[6:] {
		switch v := int64(binary.BigEndian.Uint32(b[2:])); http2.SettingID(binary.BigEndian.Uint16(b)) {
		case http2.SettingInitialWindowSize:
			s.window = v
		case http2.SettingHeaderTableSize:
			s.table = v
		}
	}
	if s.table >= 0 {
		if s.table < int64(p.table) {
			p.lowered, p.acked = true, false
		}
		p.table = uint32(s.table)
	}
	if len(p.pending) == maxPending { // no answers any more
		p.pending[0].window = 0
		return
	}
	p.pending = append(p.pending, s)
}

// acknowledge notes that the server has acknowledged SETTINGS. It may acknowledge several at
// once, so that some stay pending: that only makes the windows smaller.
func (p *peer) acknowledge() {
	if len(p.pending) == 0 {
		return
	}
	if w := p.pending[0].window; w >= 0 {
		p.window = w
	}
	p.pending = p.pending[1:]
	p.acked = len(p.pending) == 0
}

// wroteHeaders notes that a header block of the server is out.
func (p *peer) wroteHeaders() {
	if p.acked {
		p.lowered = false
	}
}

// mostWindow is the window that a new stream has at most.
func (p *peer) mostWindow() int64 {
	most := p.window
	for _, s := range p.pending {
		most = max(most, s.window)
	}
	return most
}

// leastWindow is the window that a new stream has at least.
func (p *peer) leastWindow() int64 {
	least := p.window
	for _, s := range p.pending {
		if s.window >= 0 {
			least = min(least, s.window)
		}
	}
	return least
}
