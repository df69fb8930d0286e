package attempt

// lookedAt are the headers that Check and the reading of a body look at.
var alwaysRead = []string{"Upgrade", "Connection", "Content-Encoding", contentType, "Trailer"}

// nameSet is a set of header names by length and first letter. It may report a name
// that was never added, but never misses one that was.
type nameSet [64]uint32

func (n *nameSet) add(name string) { n[len(name)%len(n)] |= 1 << (name[0] % 32) }

func (n *nameSet) may(name string) bool { return n[len(name)%len(n)]&(1<<(name[0]%32)) != 0 }

// heed records the headers that the reader looks at.
func (rd *Reader) noteHeaders() {
	for _, name := range alwaysRead {
		rd.headersRead.add(name)
	}
	for i := range rd.headers {
		rd.headersRead.add(rd.headers[i].name)
	}
	if len(rd.cookies) > 0 {
		rd.headersRead.add("Cookie")
	}
}

// Heeds says whether a header may affect Check and Read, in any case of letters:
// removing any other header does not change what is read. Text with placeholders may
// read any header.
func (rd *Reader) ReadsHeader(name string) bool {
	return rd.headersRead.may(name) || rd.needs.Has(NeedReplace)
}
