package attempt

// lookedAt are the headers that Check and the reading of a body look at.
var lookedAt = []string{"Upgrade", "Connection", "Content-Encoding", contentType, "Trailer"}

// nameSet is a set of header names by length and first letter: what it has not is surely
// not in it.
type nameSet [64]uint32

func (n *nameSet) add(name string) { n[len(name)%len(n)] |= 1 << (name[0] % 32) }

func (n *nameSet) may(name string) bool { return n[len(name)%len(n)]&(1<<(name[0]%32)) != 0 }

// heed notes the headers that matter.
func (rd *Reader) heed() {
	for _, name := range lookedAt {
		rd.heeds.add(name)
	}
	for i := range rd.headers {
		rd.heeds.add(rd.headers[i].name)
	}
	if len(rd.cookies) > 0 {
		rd.heeds.add("Cookie")
	}
}

// Heeds says, in any case of letters, whether a header may matter to Check and Read:
// without the others a request is read the same. A text with placeholders may read any.
func (rd *Reader) Heeds(name string) bool {
	return rd.heeds.may(name) || rd.needs.Has(NeedReplace)
}
