package adminapi

// ListBatch is how many entries one request changes.
const ListBatch = 5_000

// ListState is a named list in GET lists and GET lists/{name}.
type ListState struct {
	Name string `json:"name"`
	// Source is file or redis.
	Source string `json:"source"`
	Path   string `json:"path,omitempty"`
	// Entries counts those of the file that this edge uses, or those in Redis.
	Entries int64 `json:"entries"`
	// Error says why this edge cannot use the list, or not its present content.
	Error string `json:"error,omitempty"`
}

// ListStates answers GET lists.
type ListStates struct {
	Lists []ListState `json:"lists"`
}

// ListChanged answers POST lists/{name}/add and remove.
type ListChanged struct {
	Name string `json:"name"`
	// Changed is how many entries were added or removed.
	Changed int `json:"changed"`
}
