package option

// Conflict is a row of the table of conflicts, with each other option that it excludes or needs.
type Conflict struct {
	Option string
	Check  bool
	Needs  bool
	Others []string
	Why    string
}

// Conflicts returns the table.
func Conflicts() (all []Conflict) {
	for _, c := range conflicts {
		one := Conflict{c.option, c.check, c.needs != "", c.excludes, c.why}
		if one.Needs {
			one.Others = []string{c.needs}
		}
		all = append(all, one)
	}
	return all
}
