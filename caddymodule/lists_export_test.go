package caddymodule

// OpenLists are the lists in use, by what they are, and ItemKeepers how many edges
// keep the items of all sales.
func OpenLists() map[any]any {
	all := make(map[any]any)
	openLists.Range(func(key, value any) bool {
		all[key] = value
		return true
	})
	return all
}

func ItemKeepers() (n int) {
	itemKeepers.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}
