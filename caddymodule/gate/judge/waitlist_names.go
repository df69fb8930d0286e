package judge

import (
	"slices"
)

// nameWaitlists tells the judges of gates and checks at which path their clients may enter the waiting list.
func (js *Judges) nameWaitlists() {
	for _, j := range js.all {
		if !j.Enters && j.filters.Refuser != nil {
			j.filters.Refuser.NameWaitlist(js.waitlistOf(j))
		}
	}
}

// waitlistOf is the path of the only stockgate_waitlist of a judge's site, or of the only one that is for the same sale;
// empty: there is none, or not only one.
func (js *Judges) waitlistOf(j *Judge) (path string) {
	var lists []*Judge
	for _, other := range js.all {
		if other.Enters && other.server == j.server && slices.Equal(other.Hosts(), j.Hosts()) {
			lists = append(lists, other)
		}
	}
	if len(lists) > 1 {
		lists = slices.DeleteFunc(lists, func(other *Judge) bool { return !slices.Equal(other.Sale, j.Sale) })
	}
	if len(lists) != 1 {
		return ""
	}
	return lists[0].EntersAt
}
