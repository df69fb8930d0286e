package adminapi

// ListBatch is how many entries one request changes.
const ListBatch = 5_000

// ListState is a named list in GET lists and GET lists/{name}.
type ListState struct {
	Name string `json:"name"`
	// Source is file or redis.
	Source string `json:"source"`
	Path   string `json:"path,omitempty"`
	// Entries are those of the file that this edge uses, or those in Redis.
	Entries int64 `json:"entries"`
	// Error says why this edge cannot use the list, or not as it is now.
	Error string `json:"error,omitempty"`
}

// listLists answers GET lists.
type ListStates struct {
	Lists []ListState `json:"lists"`
}

// ListChanged answers POST lists/{name}/add and remove.
type ListChanged struct {
	Name string `json:"name"`
	// Changed is how many entries were not in the list, or were.
	Changed int `json:"changed"`
}
