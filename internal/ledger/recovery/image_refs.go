package recovery

import (
	"hash/maphash"
	"strings"

	"github.com/stockgate/stockgate/internal/store/record"
)

// addRef lets a reservation be found by its ref.
func (m *Image) addRef(binds []string, id, ref string) []string {
	hash := maphash.String(m.seed, record.FirstNameField+ref)
	if _, ok := m.bound[hash]; !ok {
		m.bound[hash] = priority{}
		return append(binds, record.FirstNameField+ref)
	}
	switch others := m.others[ref]; {
	case others == "":
		m.others[ref] = id
	case strings.Count(others, " ") < record.MaxNamed-2:
		m.others[ref] = others + " " + id
	case !strings.HasSuffix(others, record.MoreNamed):
		m.others[ref] = others + " " + record.MoreNamed
	}
	return binds
}

// Others calls yield for every binding field that names further reservations of a ref, with
// their ids.
func (m *Image) Others(yield func(field, ids string) bool) {
	for ref, ids := range m.others {
		if !yield(record.OtherNamesField+ref, ids) {
			return
		}
	}
}
